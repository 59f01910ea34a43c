"""The words of a command line → the function to call and the values of its parameters.

optparse splits the words: typer, which would do the same, takes 20 ms to import and 80 ms more to convert values, beside
150 ms for the parsing of a log. Typer prints help and completes words, from the same declarations (``typer_view``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from optparse import OptionParser
from typing import Any, NoReturn

from receipt_cli.cli.commands import COMMANDS, load, names
from receipt_cli.cli.parameters import Argument, Option, Parameter, parameters
from receipt_cli.errors import UsageError

Call = tuple[Callable[..., None], dict[str, Any]]
"""A function and its arguments."""


class _Splitter(OptionParser):
    """optparse without abbreviations of options, and with errors of ours."""

    def __init__(self, command: str) -> None:
        super().__init__(prog=f"receipt {command}".rstrip(), add_help_option=False)
        self.add_option("-h", "--help", action="store_true")

    def error(self, msg: str) -> NoReturn:
        raise UsageError(msg, try_=f"{self.prog} --help")

    def _match_long_opt(self, opt: str) -> str:
        if opt not in self._long_opt:
            self.error(f"no such option: {opt}{_similar(opt, self._long_opt)}")
        return opt


def read(words: Sequence[str]) -> Call:
    """Return the call that a command line asks for; nothing runs. Raises ``UsageError``."""
    command, rest = "", list(words)
    while command not in COMMANDS:
        splitter = _Splitter(command)
        splitter.disable_interspersed_args()
        if not command:
            splitter.add_option("--version", action="store_true")
        found, rest = splitter.parse_args(rest)
        if found.help:
            return _help(command)
        if not command and found.version:
            return _print_version, {}
        if not rest:
            return _help(command, asked=False)
        known, name = names(command), rest.pop(0)
        if name not in known:
            splitter.error(f"no such command: {name}{_similar(name, known)}")
        command = f"{command} {name}".lstrip()
    return _read_command(command, rest)


def _read_command(command: str, words: list[str]) -> Call:
    function = load(command)
    declared = parameters(function)
    splitter = _Splitter(command)
    for each in declared:
        if isinstance(each.declared, Option):
            _add_option(splitter, each, each.declared)
        elif each.declared.rest:
            splitter.disable_interspersed_args()
    found, rest = splitter.parse_args(words)
    if found.help:
        return _help(command)
    given = vars(found)
    for each in declared:
        if isinstance(each.declared, Argument):
            given[each.name] = None if not rest else rest if each.many else rest[0]
            rest = [] if each.many else rest[1:]
    try:
        if rest:
            raise UsageError(f"unexpected argument: {rest[0]}")
        return function, {each.name: _value(each, given[each.name]) for each in declared}
    except UsageError as error:
        error.try_ = f"{splitter.prog} --help"
        raise


def _add_option(splitter: OptionParser, parameter: Parameter, option: Option) -> None:
    spellings = (*parameter.names, *option.aliases)
    action = "store_true" if parameter.is_flag else "append" if parameter.many else "store"
    splitter.add_option(*spellings, dest=parameter.name, action=action)
    if option.off:
        splitter.add_option(option.off, dest=parameter.name, action="store_false")


def _value(parameter: Parameter, given: Any) -> Any:
    """Return the value of a parameter: what is given, converted, or its default. Raises ``UsageError``."""
    if given is None:
        if parameter.required:
            option = isinstance(parameter.declared, Option)
            raise UsageError(f"missing option: {parameter.names[0]}" if option else f"missing argument: {parameter.metavar}")
        return parameter.default
    if parameter.is_flag:
        return given
    return [parameter.convert(text) for text in given] if parameter.many else parameter.convert(given)


def _similar(word: str, known: Sequence[str] | dict[str, Any]) -> str:
    from difflib import get_close_matches

    found = get_close_matches(word, list(known), n=2)
    return f" (similar: {', '.join(found)})" if found else ""


def _help(command: str, *, asked: bool = True) -> Call:
    from receipt_cli.cli.typer_view import print_help

    return print_help, {"command": command, "asked": asked}


def _print_version() -> None:
    from receipt_cli import __version__
    from receipt_cli.cli.output import write_stdout
    from receipt_cli.scan.engine import has_kernel

    write_stdout(f"receipt {__version__} ({'with' if has_kernel() else 'without'} kernel)\n")
