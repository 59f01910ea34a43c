"""Arguments and options as the functions of commands declare them: light records, from which words are read and help is made."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from types import FunctionType, NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from receipt_cli.errors import UsageError

REQUIRED = object()
"""In place of a default."""
METAVARS = {Path: "FILE", int: "N", float: "X", str: "TEXT"}
"""Names of values in help, by type, where the declaration has none."""


class Argument:
    """A positional argument; with ``rest`` it takes the remaining words, options of other programs among them.

    ``completes`` is the kind of its values for a shell's completion (``completion.VALUES``).
    """

    def __init__(self, metavar: str, help: str, *, rest: bool = False, completes: str = "") -> None:
        self.metavar = metavar
        self.help = help
        self.rest = rest
        self.completes = completes


class Option:
    """An option; without ``names`` it is called as its parameter is.

    ``off`` is the spelling that turns a flag off, ``aliases`` are spellings without help, ``least`` and ``most`` are the
    bounds of a number, ``completes`` is the kind of its values for a shell's completion (``completion.VALUES``), ``setting`` is
    the setting that is its default (``settings.SETTINGS``).
    """

    def __init__(
        self,
        *names: str,
        help: str,
        metavar: str = "",
        off: str = "",
        aliases: tuple[str, ...] = (),
        least: float = -math.inf,
        most: float = math.inf,
        completes: str = "",
        setting: str = "",
    ) -> None:
        self.setting = setting
        self.names = names
        self.help = help
        self.metavar = metavar
        self.off = off
        self.aliases = aliases
        self.least = least
        self.most = most
        self.completes = completes


class Parameter:
    """A parameter of a command's function: its declaration with its type and default."""

    def __init__(self, name: str, hint: Any, default: Any) -> None:
        kind, declared = get_args(hint)
        if get_origin(kind) in (Union, UnionType):
            (kind,) = (each for each in get_args(kind) if each is not NoneType)
        self.name = name
        self.declared: Argument | Option = declared
        self.many = get_origin(kind) is list
        self.kind = get_args(kind)[0] if self.many else kind
        self.choices: tuple[str, ...] = get_args(self.kind) if get_origin(self.kind) is Literal else ()
        self.required = default is REQUIRED
        self.default = None if self.required else default
        self.is_flag = self.kind is bool

    @property
    def names(self) -> tuple[str, ...]:
        """The spellings of an option that help shows."""
        return (isinstance(self.declared, Option) and self.declared.names) or (f"--{self.name.replace('_', '-')}",)

    @property
    def metavar(self) -> str:
        """The name of the value in help."""
        return self.declared.metavar or "|".join(self.choices) or METAVARS[self.kind]

    @property
    def bounds(self) -> str:
        """The bounds of a number in words, or nothing."""
        least, most = self._limits
        return "" if least == -math.inf else f"at least {least}" if most == math.inf else f"{least} to {most}"

    def convert(self, text: str) -> Any:
        """Return the value that ``text`` stands for. Raises ``UsageError``."""
        if self.choices and text not in self.choices:
            raise UsageError(f"{self._shown} cannot be {text!r}", why=f"must be one of {', '.join(self.choices)}")
        if self.kind is Path:
            return Path(text)
        return self._number(text) if self.kind in (int, float) else text

    def _number(self, text: str) -> int | float:
        try:
            value: int | float = self.kind(text)
        except ValueError:
            word = "whole number" if self.kind is int else "number"
            raise UsageError(f"{self._shown} cannot be {text!r}", why=f"must be a {word}") from None
        least, most = self._limits
        if value < least or value > most:
            raise UsageError(f"{self._shown} cannot be {text}", why=f"must be {self.bounds}")
        return value

    @property
    def _limits(self) -> tuple[float, float]:
        declared = self.declared
        return (declared.least, declared.most) if isinstance(declared, Option) else (-math.inf, math.inf)

    @property
    def _shown(self) -> str:
        return self.names[0] if isinstance(self.declared, Option) else self.metavar


def parameters(function: Callable[..., None]) -> list[Parameter]:
    """Return the declared parameters of a command's function, in order."""
    assert isinstance(function, FunctionType)
    hints = get_type_hints(function, include_extras=True)
    code, defaults = function.__code__, function.__defaults__ or ()
    positional = code.co_varnames[: code.co_argcount]
    known = dict(zip(positional[len(positional) - len(defaults) :], defaults, strict=True)) | (function.__kwdefaults__ or {})
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return [Parameter(name, hints[name], known.get(name, REQUIRED)) for name in names]


Json = Annotated[bool, Option("--json", help="Print JSON for machines on stdout.")]
Color = Annotated[Literal["auto", "always", "never"], Option(help="Colour the output: auto is on a terminal without NO_COLOR.")]
Grammar = Annotated[
    str | None,
    Option("-g", "--grammar", metavar="ID@vN", help="Parse the log with this grammar (or YAML file) only.", completes="grammar"),
]
RunName = Annotated[str | None, Option(metavar="NAME", help="Name of the run.", setting="name")]
Lane = Annotated[
    str | None, Option(metavar="NAME", help="Series of comparable runs (hardware and recipe).", completes="lane", setting="lane")
]
Preset = Annotated[str | None, Option(metavar="NAME", help="Name of the recipe.", setting="preset")]
Attach = Annotated[
    list[str] | None, Option(metavar="KIND=URI", help="An artefact, stored by reference; may be given several times.")
]
Evidence = Annotated[
    list[Path] | None,
    Option(
        metavar="FILE",
        help="What a scheduler records of the job: sacct --json, scontrol show job, condor_history, a pod's JSON, SageMaker, "
        "SkyPilot; may be given several times.",
    ),
]
Fact = Annotated[
    list[str] | None,
    Option(metavar="NAME=VALUE", help="A fact that the log lacks, such as devices=8 or peak_flops=989e12; docs/derived.md."),
]
Policy = Annotated[Path | None, Option(help="YAML: which fields block a comparison, warn or are ignored.", setting="policy")]
AllowTruncated = Annotated[bool, Option(help="Pass a log that stops before its run ends: the run may go on.")]
StoreFolder = Annotated[Path, Argument("STORE", "Folder of the receipts.")]
Documents = Annotated[list[Path], Argument("FILE...", "Receipts and other documents.")]
OnFailure = Annotated[
    str | None,
    Option("--on-failure", metavar="CMD", help="Run this command once the job has failed; its receipt is $RECEIPT_FILE."),
]
OnEnd = Annotated[str | None, Option("--on-end", metavar="CMD", help="Run this command once the job is over.")]
OnStall = Annotated[
    str | None, Option("--on-stall", metavar="CMD", help="Run this command once nothing was printed for --stall seconds.")
]
Stall = Annotated[int | None, Option(least=1, metavar="SECONDS", help="Silence that is a stall; default: 600.")]
