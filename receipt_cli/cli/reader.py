"""Read the words of a command line: the function to call, and the values of its parameters.

Typer, which would do the same, takes 20 ms to import and 80 ms more to convert values, and optparse 6 ms, beside 100 ms for
the parsing of a log. Typer prints help and completes words, from the same declarations (``typer_view``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from receipt_cli.cli.commands import COMMANDS, load, names
from receipt_cli.cli.parameters import Argument, Option, Parameter, parameters
from receipt_cli.errors import UsageError

if TYPE_CHECKING:
    from receipt_cli.cli.settings import Settings

Call = tuple[Callable[..., None], dict[str, Any]]
"""A function and its arguments."""


class _Splitter:
    """Splits words into options and positional arguments."""

    def __init__(self, command: str, *, mixed: bool = True) -> None:
        """Unless ``mixed``, the words from the first positional one on are positional."""
        self.prog = f"receipt {command}".rstrip()
        self.mixed = mixed
        self._known: dict[str, tuple[str, str | bool]] = {}
        self.add(("-h", "--help"), "help", True)

    def add(self, spellings: Iterable[str], name: str, action: str | bool) -> None:
        """Add an option: ``action`` is the value of a flag, or ``one`` or ``many`` for values that follow."""
        self._known |= dict.fromkeys(spellings, (name, action))

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, try_=f"{self.prog} --help")

    def split(self, words: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
        """Return what is given for each option, by its name, and the positional words. Raises ``UsageError``."""
        given: dict[str, Any] = {}
        rest: list[str] = []
        left = list(words)
        while left:
            word = left.pop(0)
            if word == "--" or (not self.mixed and (word == "-" or not word.startswith("-"))):
                return given, [*rest, *([word] if word != "--" else []), *left]
            if word.startswith("--"):
                spelling, equals, value = word.partition("=")
                self._take(given, spelling, ([value] if equals else None), left)
            elif word.startswith("-") and word != "-":
                self._take_short(given, word, left)
            else:
                rest.append(word)
        return given, rest

    def _take(self, given: dict[str, Any], spelling: str, attached: list[str] | None, left: list[str]) -> None:
        """Take an option with the value ``attached`` to it, else with the next word of ``left``."""
        if spelling not in self._known:
            self.error(f"no such option: {spelling}{_similar(spelling, self._known)}")
        name, action = self._known[spelling]
        if isinstance(action, bool):
            if attached is not None:
                self.error(f"{spelling} takes no value")
            given[name] = action
            return
        values = attached or left
        if not values:
            self.error(f"{spelling} needs a value")
        value = values.pop(0)
        given[name] = [*given.get(name, ()), value] if action == "many" else value

    def _take_short(self, given: dict[str, Any], word: str, left: list[str]) -> None:
        """Take the options of one letter each in ``word``, the last of which may have its value attached."""
        for at in range(1, len(word)):
            spelling, behind = f"-{word[at]}", word[at + 1 :]
            takes = not isinstance(self._known.get(spelling, ("", True))[1], bool)
            self._take(given, spelling, [behind] if takes and behind else None, left)
            if takes:
                return


def read(words: Sequence[str]) -> Call:
    """Return the call that a command line asks for; nothing runs. Raises ``UsageError``."""
    command, rest = "", list(words)
    while command not in COMMANDS:
        splitter = _Splitter(command, mixed=False)
        if not command:
            splitter.add(("--version",), "version", True)
        found, rest = splitter.split(rest)
        if "help" in found:
            return _help(command)
        if "version" in found:
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
    splitter = _Splitter(command, mixed=not any(isinstance(each.declared, Argument) and each.declared.rest for each in declared))
    for each in declared:
        if isinstance(each.declared, Option):
            _add_option(splitter, each, each.declared)
    given, rest = splitter.split(words)
    if "help" in given:
        return _help(command)
    settings = _settings(command)
    for each in declared:
        if isinstance(each.declared, Argument):
            given[each.name] = None if not rest else rest if each.many else rest[0]
            rest = [] if each.many else rest[1:]
    try:
        if rest:
            raise UsageError(f"unexpected argument: {rest[0]}")
        return function, {each.name: _value(each, given.get(each.name, _default(each, settings))) for each in declared}
    except UsageError as error:
        error.try_ = f"{splitter.prog} --help"
        raise


def _settings(command: str) -> Settings:
    """Return the settings of the environment and the file; the folders of definitions in a file become those of the variable."""
    from receipt_cli.cli.settings import find_settings, variable

    found = find_settings(os.environ)
    if found.notes:
        from receipt_cli.cli.output import note

        note(found.notes)
    if "path" in found.values and command != "config":  # which reports where a value comes from
        os.environ.setdefault(variable("path"), found.values["path"].value)
    return found


def _default(parameter: Parameter, settings: Settings) -> str | None:
    """Return the setting that an option has in place of a word of the command line."""
    name = parameter.declared.setting if isinstance(parameter.declared, Option) else ""
    return settings.values[name].value if name in settings.values else None


def _add_option(splitter: _Splitter, parameter: Parameter, option: Option) -> None:
    action = True if parameter.is_flag else "many" if parameter.many else "one"
    splitter.add((*parameter.names, *option.aliases), parameter.name, action)
    if option.off:
        splitter.add((option.off,), parameter.name, False)


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
    from receipt_cli.scan.presence import has_kernel

    write_stdout(f"receipt {__version__} ({'with' if has_kernel() else 'without'} kernel)\n")
