"""The commands as typer has them, made from their declarations: for help and for the completion of words in a shell."""

from __future__ import annotations

import inspect
import os
import sys
from types import GenericAlias
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_install_completion_arguments

from receipt_cli.cli.commands import COMMANDS, GROUPS, load, names
from receipt_cli.cli.completion import completer
from receipt_cli.cli.output import write_stdout
from receipt_cli.cli.parameters import Argument, Option, Parameter, parameters
from receipt_cli.errors import ExitCode

ABOUT = "Turn the log of a training run into a small, typed record that still opens and compares years later."
COMPLETION = "_RECEIPT_COMPLETE"
"""Environment variable by which a shell asks for completions."""
HELP = ("-h, --help", "Print this help and exit.")
SETTINGS = {"help_option_names": ["-h", "--help"]}


class _Command(TyperCommand):
    """A command whose help names values without their Python types."""

    declared: list[Parameter]
    example: str

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        arguments = [each for each in self.declared if isinstance(each.declared, Argument)]
        return ["[OPTIONS]", *(each.metavar if each.required else f"[{each.metavar}]" for each in arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        arguments = [(p.metavar, p.declared.help) for p in self.declared if isinstance(p.declared, Argument)]
        options = [option_row(p, p.declared) for p in self.declared if isinstance(p.declared, Option)]
        for title, rows in (("Arguments", arguments), ("Options", [*options, HELP])):
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Example"):
            formatter.write(f"  {self.example}\n")  # whole, to be copied


class _Group(TyperGroup):
    """``receipt`` itself, whose help ends with the exit codes, or a group of its commands; each is made when asked for."""

    def __init__(self, group: str) -> None:
        about = GROUPS.get(group, ABOUT)
        super().__init__(name=group or "receipt", help=about, context_settings=SETTINGS, rich_markup_mode=None)
        self.group = group

    def list_commands(self, ctx: Any) -> list[str]:
        return names(self.group)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        name = f"{self.group} {cmd_name}".lstrip()
        if name in GROUPS:
            return _Group(name)
        return _make_command(name) if name in COMMANDS else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        rows = [(name, self._summary(f"{self.group} {name}".lstrip())) for name in names(self.group)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    @staticmethod
    def _summary(name: str) -> str:
        return GROUPS[name] if name in GROUPS else help_of(name)[0].partition("\n\n")[0]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Options"):
            formatter.write_dl([*([] if self.group else [("--version", "Print the version and exit.")]), HELP])
        self.format_commands(ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        if not self.group:
            with formatter.section("Exit codes"):
                formatter.write_dl([(str(code.value), code.meaning) for code in ExitCode])


def option_row(parameter: Parameter, option: Option) -> tuple[str, str]:
    """Return how help shows an option: its spellings with the name of its value, and what it does."""
    spelled = sorted(parameter.names, key=len)
    label = " / ".join([", ".join(spelled), *([option.off] if option.off else [])])
    default = f"default: {parameter.default}" if parameter.default not in (None, False) else ""
    extra = "; ".join(filter(None, [default, parameter.bounds, "required" if parameter.required else ""]))
    return (
        label if parameter.is_flag else f"{label} {parameter.metavar}",
        f"{option.help}  [{extra}]" if extra else option.help,
    )


def _typed(parameter: Parameter) -> inspect.Parameter:
    """Return a parameter as typer declares it."""
    declared = parameter.declared
    kind: Any = GenericAlias(list, (parameter.kind,)) if parameter.many else parameter.kind
    info: Any
    if isinstance(declared, Argument):
        info = typer.Argument(metavar=parameter.metavar, help=declared.help, autocompletion=completer(declared.completes))
    else:
        off = f"/{declared.off}" if declared.off else ""
        spelled = (f"{name}{off}" if name.startswith("--") else name for name in parameter.names)
        info = typer.Option(*spelled, help=declared.help, autocompletion=completer(declared.completes))
    default = inspect.Parameter.empty if parameter.required else parameter.default
    kind = kind if parameter.required else kind | None
    return inspect.Parameter(parameter.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info])


def help_of(name: str) -> tuple[str, str]:
    """Return what a command's docstring says of it, and the command line that it ends with as an example."""
    about, _, example = (inspect.getdoc(load(name)) or "").partition("\n\nExample: ")
    return about, example


def _make_command(name: str) -> Any:
    function = load(name)
    declared = parameters(function)

    def call(**_: Any) -> None:
        """Stand for the function: nothing runs through typer."""

    typed = [_typed(each) for each in declared]
    stub: Any = call
    stub.__signature__ = inspect.Signature(typed)
    stub.__annotations__ = {each.name: each.annotation for each in typed}
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    about, example = help_of(name)
    app.command(name.rpartition(" ")[2], cls=_Command, help=about, context_settings=SETTINGS)(stub)
    made: Any = get_command(app)
    made.declared, made.example = declared, example
    return made


def print_help(command: str, *, asked: bool) -> None:
    """Print the help of a command, a group or ``receipt`` itself; where nobody asked, on stderr, and exit with 2."""
    made = _make_command(command) if command in COMMANDS else _Group(command)
    context = typer.Context(made, info_name=f"receipt {command}".rstrip(), help_option_names=SETTINGS["help_option_names"])
    text = f"{context.get_help()}\n"
    if asked:
        write_stdout(text)
        return
    print(text, end="", file=sys.stderr)
    sys.exit(ExitCode.USAGE)


def complete(instruction: str) -> None:
    """Answer a shell: ``complete_bash`` asks for completions by environment variables, ``source_bash`` for its script.

    Never returns.
    """
    get_install_completion_arguments()  # registers the shells
    os.environ[COMPLETION] = instruction
    _Group("").main(prog_name="receipt")
