"""Read the command line with Typer: one group, which imports the module of a command when a line names it."""

from __future__ import annotations

import inspect
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cached_property, partial
from itertools import pairwise
from typing import Annotated, Any, NoReturn, get_args, get_origin, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption
from typer.main import get_command, get_install_completion_arguments

from receipt_cli import __version__
from receipt_cli.cli import output
from receipt_cli.cli.commands import ALIASES, COMMANDS, GROUPS, SECTIONS, load, summaries
from receipt_cli.cli.output import note, write_stdout
from receipt_cli.cli.parameters import FromSettings, PassedOn, Was, everywhere
from receipt_cli.cli.settings import Settings, find_settings, variable
from receipt_cli.errors import ExitCode, UsageError
from receipt_cli.scan.presence import has_kernel

ABOUT = "Turn the log of a training run into one answer: what happened, where, how far,\nhow fast."
USAGE = "Usage: receipt COMMAND [OPTIONS]"
_END = """
Everywhere: -h/--help  -q/--quiet  --color auto|always|never
First step: receipt parse train.log
More:       receipt help COMMAND | --all | exit-codes
"""


def short_help() -> str:
    """Return the help of ``receipt``: the commands of each section but the last."""
    shown = dict(list(SECTIONS.items())[:-1])
    return f"{ABOUT}\n\n{USAGE}\n\n{''.join(_lines(shown))}{_END}"


def full_help() -> str:
    """Return every command, also those of groups."""
    groups = {f"receipt {name}": members for name, members in GROUPS.items()}
    return f"{USAGE}\n\n{''.join(_lines(SECTIONS | groups, blank=True))}{_END}"


def group_help(name: str) -> str:
    """Return the commands of a group."""
    rows = "".join(_lines({"Commands": GROUPS[name]}))
    return f"Usage: receipt {name} COMMAND [OPTIONS]\n\n{rows}\nMore: receipt help {name} COMMAND\n"


def exit_codes() -> str:
    """Return what each exit code means."""
    return "".join(_lines({"Exit codes": {str(code.value): code.meaning for code in ExitCode}}))


def _lines(sections: Mapping[str, Mapping[str, str]], *, blank: bool = False) -> Iterator[str]:
    width = max(len(name) for section in sections.values() for name in section)
    for number, (title, rows) in enumerate(sections.items()):
        yield f"{chr(10) if blank and number else ''}{title}\n"
        yield from (f"  {name:<{width}}  {about}\n" for name, about in rows.items())


COMPLETION = "_RECEIPT_COMPLETE"
"""Environment variable by which a shell asks for completions."""
HELP = ("-h, --help", "Print this help and exit.")
METAVARS = {"Path": "FILE", "int": "N", "float": "X", "str": "TEXT"}
"""Type → name of its value in help, if the parameter gives none."""
_SETTINGS = {"help_option_names": ["-h", "--help"]}


class _Plain:
    """Takes the place of Typer's conversion of one parameter as long as its value needs none: text, a choice, or no value.

    Typer converts with pydantic, whose import and schemas take half as long as the rest of a short command.
    """

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        kind, many = param.type_descriptor.annotation, param.multiple or param.nargs == -1
        if value is None:
            return () if many else None
        if isinstance(value, str) and not many and (kind is str or value in (param.type_descriptor.choices or ())):
            return value
        if many and kind == list[str] and all(isinstance(each, str) for each in value):
            return list(value)
        param._runtime_param = None  # so that Typer makes its own
        return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def _plainly(params: list[Any]) -> list[Any]:
    """Return ``params`` with ``_Plain`` in place of what Typer makes at the first value."""
    for param in params:
        if vars(param).get("_runtime_param") is None:
            param._runtime_param = _Plain()
    return params


class Command(TyperCommand):
    """A command; its function is imported for its command line or its help."""

    about = ""
    example = ""

    def __init__(self, path: str) -> None:
        """``path`` is the name with that of the group before it."""
        self._renamed: dict[str, str] = {}
        super().__init__(path.rpartition(" ")[2], context_settings={**_SETTINGS, "allow_extra_args": True}, rich_markup_mode=None)
        self.path = path
        group, _, name = path.rpartition(" ")
        self.short_help = summaries(group)[name]

    def load(self) -> Command:
        """Import the function, read its parameters and return the command."""
        if self.callback is not None:
            return self
        function = load(self.path)
        made, shared = _typed(function), _typed(everywhere).params
        own = {param.name for param in made.params}
        self._shared = [param for param in shared if param.name not in own]
        self.callback, self.params = made.callback, [*made.params, *self._shared]
        self.about, _, self.example = (inspect.getdoc(function) or "").partition("\n\nExample: ")
        hints = get_type_hints(everywhere, include_extras=True) | get_type_hints(function, include_extras=True)
        renamed, defaults = self._renamed, {}
        for param in self.params:
            kind, _, *marks = get_args(hints[param.name])
            param.metavar = param.metavar or _metavar(kind)
            for mark in marks:
                if isinstance(mark, Was):
                    renamed[mark.name] = max(param.opts, key=len).removeprefix("--")
                elif isinstance(mark, FromSettings):
                    defaults[param.name] = partial(self._setting, mark.name)
                elif isinstance(mark, PassedOn):
                    self.allow_interspersed_args = False
        self.context_settings = {
            **self.context_settings,
            "token_normalize_func": lambda name: renamed.get(name, name),
            "default_map": defaults,
        }
        return self

    @cached_property
    def settings(self) -> Settings:
        """The settings of the environment and the file."""
        found = find_settings(os.environ)
        note(found.notes)
        return found

    def _setting(self, name: str) -> str | None:
        return self.settings.values[name].value if name in self.settings.values else None

    def get_params(self, ctx: Any) -> list[Any]:
        return _plainly(super().get_params(ctx))

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        self.load()
        return super().make_context(info_name, args, parent, **extra)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        flags = {f"--{old}": f"--{new}" for old, new in self._renamed.items() if f"--{new}" in _flags(self)}
        for word, value in pairwise(args):
            if word in flags and value.isdecimal() and int(value) < 256:  # an exit code, not the number of a stored run
                message = f"{word} takes no value in {self.path}, where it is called {flags[word]} now"
                raise UsageError(message, try_=_help_of(self.path))
        with _refusing(self):
            rest = super().parse_args(ctx, args)
        if rest and not ctx.resilient_parsing:
            raise UsageError(f"unexpected argument: {rest[0]}", try_=_help_of(self.path))
        return rest

    def invoke(self, ctx: Any) -> Any:
        folders = self.settings.values.get("path")
        if folders is not None and self.path != "config":  # which reports where a value comes from
            os.environ.setdefault(variable("path"), folders.value)
        output.set_up(**{param.name: ctx.params.pop(param.name) for param in self._shared})
        return super().invoke(ctx)

    def format_usage(self, ctx: Any, formatter: Any) -> None:
        words = (param.metavar if param.required else f"[{param.metavar}]" for param in self.arguments)
        formatter.write_usage(f"receipt {self.path}", " ".join(["[OPTIONS]", *words]))

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        self.help = self.about
        super().format_help_text(ctx, formatter)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        rows = [(param.metavar, param.help) for param in self.arguments]
        for title, shown in (("Arguments", rows), ("Options", [*map(option_row, self.options), HELP])):
            if shown:
                with formatter.section(title):
                    formatter.write_dl(shown)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Example"):
            formatter.write(f"  {self.example}\n")  # whole, to be copied

    @property
    def arguments(self) -> list[Any]:
        """The positional arguments, in order."""
        return [param for param in self.load().params if not isinstance(param, TyperOption)]

    @property
    def options(self) -> list[TyperOption]:
        """The options, in the order of the help."""
        return [param for param in self.load().params if isinstance(param, TyperOption)]


class Group(TyperGroup):
    """``receipt`` itself, or a group of its commands."""

    @property
    def path(self) -> str:
        """The name of the group; nothing for ``receipt`` itself."""
        return self.name or ""

    @property
    def options(self) -> Sequence[Any]:
        """The options, which only ``receipt`` itself has."""
        return self.params

    def get_params(self, ctx: Any) -> list[Any]:
        return _plainly(super().get_params(ctx))

    def list_commands(self, ctx: Any) -> list[str]:
        return list(summaries(self.path))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        path = f"{self.path} {cmd_name}".lstrip()
        path = ALIASES.get(path, path)
        if path in GROUPS:
            return Group(name=path, short_help=summaries()[path], context_settings=_SETTINGS, rich_markup_mode=None)
        return Command(path) if path in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if not ctx.resilient_parsing and self.get_command(ctx, args[0]) is None:
            raise self._unknown(args[0])
        return super().resolve_command(ctx, args)

    def _unknown(self, word: str) -> UsageError:
        if not self.path and (os.path.lexists(word) or "." in word or os.sep in word):
            command = "show" if word.endswith(".json") else "parse"
            return UsageError(f"no such command: {word}", try_=f"receipt {command} {shlex.quote(word)}")
        similar = get_close_matches(word, self.list_commands(None), n=2)
        return UsageError(f"no such command: {word}{_similar(similar)}", try_=_help_of(self.path))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args in ([], ["--"]) and not ctx.resilient_parsing:
            print(ctx.get_help(), file=sys.stderr)
            sys.exit(ExitCode.USAGE)
        with _refusing(self):
            return super().parse_args(ctx, args)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        formatter.write(group_help(self.path) if self.path else short_help())


def _metavar(kind: Any) -> str:
    """Return the name of a value of a type: the choices, or what ``METAVARS`` calls it."""
    (kind,) = [each for each in get_args(kind) if each is not type(None)] if type(None) in get_args(kind) else [kind]
    kind = get_args(kind)[0] if get_origin(kind) is list else kind
    return "|".join(get_args(kind)) or METAVARS.get(kind.__name__, "")


def bounds(param: Any) -> str:
    """Return the bounds of a number in words, or nothing."""
    least, most = param.min, param.max
    return "" if least is None else f"at least {least}" if most is None else f"{least} to {most}"


def option_row(param: Any) -> tuple[str, str]:
    """Return how help shows an option: its spellings with the name of its value, and what it does."""
    label = " / ".join([", ".join(sorted(param.opts, key=len)), *param.secondary_opts])
    default = f"default: {param.default}" if param.default is not None and not param.is_flag else ""
    extra = "; ".join(filter(None, [default, bounds(param), "required" if param.required else ""]))
    return label if param.is_flag else f"{label} {param.metavar}", f"{param.help}  [{extra}]" if extra else param.help or ""


def _flags(command: Command | Group) -> list[str]:
    """Return the spellings of the options that take no value."""
    return [name for each in command.options if each.is_flag for name in (*each.opts, *each.secondary_opts)]


def _similar(found: Sequence[str] | None) -> str:
    return f" (similar: {', '.join(found[:2])})" if found else ""


def _print_version(wanted: bool) -> None:
    if wanted:
        write_stdout(f"receipt {__version__} ({'with' if has_kernel() else 'without'} kernel)\n")
        raise typer.Exit


def _typed(function: Callable[..., None]) -> Any:
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command()(function)
    return get_command(app)


def make_group() -> Any:
    """Return the Typer group of ``receipt``."""
    app = typer.Typer(cls=Group, add_completion=False, rich_markup_mode=None, context_settings=_SETTINGS)

    @app.callback()
    def receipt(
        version: Annotated[
            bool, typer.Option("--version", help="Print the version and exit.", callback=_print_version, is_eager=True)
        ] = False,
    ) -> None:
        """Take the options of ``receipt`` itself."""

    return get_command(app)


def run(words: Sequence[str]) -> None:
    """Run the command that a command line names. Raises ``UsageError``, and what the command raises.

    With ``$_RECEIPT_COMPLETE`` the words are a shell's, which asks for completions.
    """
    if os.environ.get(COMPLETION):
        complete(os.environ[COMPLETION])
    group = make_group()
    try:
        with group.make_context("receipt", list(words)) as context:
            group.invoke(context)
    except typer.Exit:
        return  # after help, or the version


def complete(instruction: str) -> NoReturn:
    """Answer a shell: ``complete_bash`` asks for completions by environment variables, ``source_bash`` for its script."""
    get_install_completion_arguments()  # registers the shells
    os.environ[COMPLETION] = instruction
    make_group().main(prog_name="receipt")
    raise AssertionError("the group's main returned")


def _help_of(path: str) -> str:
    return f"receipt {path} --help".replace("  ", " ")


@contextmanager
def _refusing(command: Command | Group) -> Iterator[None]:
    """Turn Typer's errors about a command line into our own."""
    try:
        yield
    except typer.TyperException as error:
        raise _usage_error(error, command) from None


def _usage_error(error: typer.TyperException, command: Command | Group) -> UsageError:
    given: Any = error
    param = getattr(given, "param", None)
    shown = UsageError(error.format_message(), try_=_help_of(command.path))
    option: str = getattr(given, "option_name", "")
    if hasattr(given, "possibilities"):
        shown.message = f"no such option: {option}{_similar(given.possibilities)}"
    elif option:
        shown.message = f"{option} takes no value" if option in _flags(command) else f"{option} needs a value"
    elif param is not None and error.__cause__ is None:
        word, name = ("option", max(param.opts, key=len)) if isinstance(param, TyperOption) else ("argument", param.metavar)
        shown.message = f"missing {word}: {name}"
    elif param is not None:
        name = max(param.opts, key=len) if isinstance(param, TyperOption) else param.metavar
        cause: Any = error.__cause__
        wrong, kind, choices = cause.errors()[0], param.type_descriptor.annotation, param.type_descriptor.choices
        shown.message = f"{name} cannot be {wrong['input']!r}"
        if choices:
            shown.why = f"must be one of {', '.join(choices)}"
        elif wrong["type"].startswith(("greater", "less")):
            shown.why = f"must be {bounds(param)}"
        else:
            shown.why = f"must be a {'whole number' if kind is int else 'number'}"
    return shown
