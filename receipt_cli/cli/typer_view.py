"""The commands as typer has them, made from their declarations: for help and for the completion of words in a shell."""

from __future__ import annotations

import inspect
import sys
from types import GenericAlias
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_install_completion_arguments

from receipt_cli.cli.commands import COMMANDS, GROUPS, load, names
from receipt_cli.cli.output import write_stdout
from receipt_cli.cli.parameters import Argument, Option, Parameter, parameters
from receipt_cli.errors import ExitCode

ABOUT = "Turn the log of a training run into a small, typed record that still opens and compares years later."
HELP = ("-h, --help", "Print this help and exit.")
SETTINGS = {"help_option_names": ["-h", "--help"]}


class _Command(TyperCommand):
    """A command whose help names values without their Python types."""

    declared: list[Parameter]

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        arguments = [each for each in self.declared if isinstance(each.declared, Argument)]
        return ["[OPTIONS]", *(each.metavar if each.required else f"[{each.metavar}]" for each in arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        arguments = [(p.metavar, p.declared.help) for p in self.declared if isinstance(p.declared, Argument)]
        options = [_option_row(p, p.declared) for p in self.declared if isinstance(p.declared, Option)]
        for title, rows in (("Arguments", arguments), ("Options", [*options, HELP])):
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)


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
        return None if name not in COMMANDS else _make_command(name) if ctx.resilient_parsing else _outline(name)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Options"):
            formatter.write_dl([*([] if self.group else [("--version", "Print the version and exit.")]), HELP])
        self.format_commands(ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        if not self.group:
            with formatter.section("Exit codes"):
                formatter.write_dl([(str(code.value), code.meaning) for code in ExitCode])


def _option_row(parameter: Parameter, option: Option) -> tuple[str, str]:
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
        info = typer.Argument(metavar=parameter.metavar, help=declared.help)
    else:
        off = f"/{declared.off}" if declared.off else ""
        info = typer.Option(*(f"{name}{off}" if name.startswith("--") else name for name in parameter.names), help=declared.help)
    default = inspect.Parameter.empty if parameter.required else parameter.default
    kind = kind if parameter.required else kind | None
    return inspect.Parameter(
        parameter.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info]
    )


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
    app.command(name.rpartition(" ")[2], cls=_Command, help=inspect.getdoc(function), context_settings=SETTINGS)(stub)
    made: Any = get_command(app)
    made.declared = declared
    return made


def _outline(name: str) -> TyperCommand:
    """Return a command with its help alone, of which a list shows the first line."""
    return TyperCommand(name.rpartition(" ")[2], help=inspect.getdoc(load(name)))


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


def complete() -> None:
    """Answer a shell that asks for completions of words by environment variables; never returns."""
    get_install_completion_arguments()  # registers the shells
    _Group("").main(prog_name="receipt")
