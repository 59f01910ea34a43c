"""The errors and exit codes of the command line."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

_LONG = 30
"""Most characters of a path that a hint repeats."""


class ExitCode(IntEnum):
    """Exit codes of ``receipt`` with a ``meaning``; part of the public contract."""

    meaning: str

    def __new__(cls, code: int, meaning: str = "") -> ExitCode:
        """Make a member: an integer with a meaning."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    OK = 0, "done, also for the receipt of a failed run"
    NO = 1, "the answer is no: not healthy, document invalid, not verified, worse"
    USAGE = 2, "wrong usage"
    INPUT = 3, "input missing, unreadable or empty"
    GRAMMAR = 4, "no grammar recognises the log, or two do; check: no step was recognised"
    DATA = 5, "grammar, schema or digest broken or unknown"
    OUTPUT = 6, "cannot write"
    UNAVAILABLE = 69, "a cluster cannot be reached, or does not start"
    BUG = 70, "internal error"
    INTERRUPTED = 130, "interrupted"


class ReceiptError(Exception):
    """A fault that the user can act on.

    ``message`` names the fault (lower case, no final stop), ``where`` is ``file`` or ``file:line``, ``why`` the reason and
    ``try_`` the next step. ``exit_code`` is that of the command line.
    """

    exit_code = ExitCode.BUG

    def __init__(self, message: str, *, why: str = "", try_: str = "", where: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.why = why
        self.try_ = try_
        self.where = where

    def render(self) -> str:
        """Return the text for stderr: the fault, then ``why:`` and ``try:`` lines if known."""
        place = f" ({self.where})" if self.where else ""
        lines = [f"receipt: error: {self.message}{place}"]
        if self.why:
            lines.append(f"  why: {self.why}")
        if self.try_:
            lines.append(f"  try: {self._short_try()}")
        return "\n".join(lines)

    def _short_try(self) -> str:
        """Return the next step, with a word in place of a long path that the first line names."""
        path = re.sub(r":\d+$", "", self.where)
        if len(path) <= _LONG:
            return self.try_
        word = "URL" if "://" in path else "FILE" if path.endswith((".json", ".yaml", ".yml")) else "LOG"
        return self.try_.replace(shlex.quote(path), word).replace(path, word)

    def __str__(self) -> str:
        """Return all of it in one paragraph, for whoever sees the exception itself."""
        place = f" ({self.where})" if self.where else ""
        why = f": {self.why}" if self.why else ""
        return f"{self.message}{place}{why}{f'; try {self.try_}' if self.try_ else ''}"


class UsageError(ReceiptError):
    """The command line is wrong."""

    exit_code = ExitCode.USAGE


class InputError(ReceiptError):
    """A log or document is missing, unreadable, empty or of another kind."""

    exit_code = ExitCode.INPUT


class GrammarChoiceError(ReceiptError):
    """No grammar recognises the log, or two do equally well."""

    exit_code = ExitCode.GRAMMAR


class DataError(ReceiptError):
    """A grammar, schema, registry or digest is broken or unknown."""

    exit_code = ExitCode.DATA


class OutputError(ReceiptError):
    """A result cannot be written."""

    exit_code = ExitCode.OUTPUT


class UnavailableError(ReceiptError):
    """A cluster cannot be reached, refuses us, or does not start."""

    exit_code = ExitCode.UNAVAILABLE


class NotAttested(ReceiptError):
    """An attestation is not of this receipt, or its signer is not the expected one."""

    exit_code = ExitCode.NO


@contextmanager
def system_errors(kind: type[ReceiptError], message: str, where: object = "") -> Iterator[None]:
    """Raise a system error of the block as an error of ``kind`` with ``message`` and the system's reason."""
    try:
        yield
    except OSError as error:
        raise kind(message, where=str(where), why=error.strerror or str(error)) from error
