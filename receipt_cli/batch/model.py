"""Messages between a batch and its workers: small and picklable."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, update_wrapper
from typing import Generic, Literal, Protocol, TypeVar

from receipt_cli.definitions.search_path import Folder
from receipt_cli.documents.diff import Difference
from receipt_cli.errors import ExitCode, ReceiptError
from receipt_cli.store.places import Place

Change = Literal["written", "unchanged", "replaced", "quarantined", "gone", "left_out"]
"""Outcome of a path. ``gone``: listed in the archive, but missing when it was to be read; ``left_out``: no log."""
Reason = Literal[
    "hidden", "link", "special", "name", "older", "empty", "binary", "script", "receipt", "header", "document", "series", "store"
]
"""Why a path is no log of the archive: see ``REASONS``."""
REASONS: Mapping[str, str] = {
    "hidden": "hidden file or folder, or one of a tool",
    "link": "link to a folder, or to nothing",
    "special": "no file: a pipe, a socket or a device",
    "name": "no log has such a name",
    "older": "not changed since --since",
    "empty": "empty file",
    "binary": "no text",
    "script": "a script",
    "receipt": "a receipt: receipt store add",
    "header": "the header of a run",
    "document": "another document of this program: receipt store add",
    "series": "records that --series wrote",
    "store": "inside a store of receipts",
}


@dataclass(frozen=True, slots=True)
class Log:
    """One log of an archive.

    ``name`` is its path below the archive's root, ``path`` where it is (a path or a URL), ``named`` whether the caller named
    this very file, so that it is read whatever it looks like. ``size_bytes`` is that of the stored file. ``stamp`` says in
    which state it is and ``settled`` whether a later change would surely change the stamp.
    """

    name: str
    path: str
    named: bool
    size_bytes: int
    stamp: str
    settled: bool


@dataclass(frozen=True, slots=True)
class Identity:
    """The bytes of a log: their digest and size, decompressed; ``steady`` when the file did not change meanwhile."""

    sha256: str
    size_bytes: int
    steady: bool = True


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a log gave no receipt, in the words of ``receipt parse``."""

    exit_code: int
    error: str
    why: str
    fatal: bool = False
    """The fault is not the log's: the store cannot be written, or a file of this program cannot be read."""
    gone: bool = False
    detail: str = ""
    """Reported once and not stored."""

    @staticmethod
    def of(error: ReceiptError) -> Failure:
        """Return the failure of ``error``, without the place, which differs between machines."""
        return Failure(int(error.exit_code), error.message, error.why, fatal=error.exit_code == ExitCode.OUTPUT)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A path of a folder that is not a log: ``name`` is its path below the archive's root."""

    name: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Manner:
    """How the logs of a batch are read.

    ``folders`` are those of the definitions that do not ship; ``grammar`` is the only one to read logs with, as ``--grammar``
    takes it; with ``all_runs`` every run of a log has its receipt, else the last; with ``series`` its records are written, too.
    """

    folders: tuple[Folder, ...] = ()
    grammar: str | None = None
    all_runs: bool = True
    series: bool = False


@dataclass(frozen=True, slots=True)
class Task:
    """Derive the receipt of the bytes ``sha256``, which all of ``logs`` contain, into the store at ``store``.

    ``definitions`` is the fingerprint of those to derive with. ``places`` are those of the logs. With ``compare`` nothing is
    written: the result contains the differences.
    """

    sha256: str
    logs: tuple[Log, ...]
    store: str
    definitions: str
    manner: Manner
    compare: bool = False
    places: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class Derived:
    """A receipt was made of the bytes ``sha256``, which are those of the task unless the log changed meanwhile.

    ``receipt`` is its path below the store (in a comparison: empty), ``recognised`` whether a
    grammar knew the log; ``runs`` is the number of its runs that have a receipt.
    """

    sha256: str
    size_bytes: int
    change: Literal["written", "unchanged", "replaced"]
    receipt: str
    recognised: bool
    notes: tuple[str, ...] = ()
    differences: tuple[Difference, ...] = ()
    runs: int = 1


@dataclass(frozen=True, slots=True)
class Lost:
    """The worker of an item ended twice without an answer, the second time with the machine to itself."""

    why: str


@dataclass(frozen=True, slots=True)
class Report:
    """Outcome of one path of an archive.

    ``derived`` is false where nothing was to be done. ``same_as`` names the log with the same bytes that was derived instead.
    """

    log: Log
    change: Change
    identity: Identity | None = None
    receipt: str | None = None
    recognised: bool | None = None
    derived: bool = False
    same_as: str | None = None
    failure: Failure | None = None
    notes: tuple[str, ...] = ()
    differences: tuple[Difference, ...] = field(default=())
    runs: int = 1
    reason: Reason | None = None
    """Why the path was left out."""


T = TypeVar("T")
R = TypeVar("R")


class InTwoParts(Generic[T, R]):
    """A function of a module that yields once, where it has to wait: there a worker may begin with the next item."""

    def __init__(self, work: Callable[[T], Generator[None, None, R]]) -> None:
        self._work = work
        update_wrapper(self, work)

    def __call__(self, item: T) -> R:
        """Begin and end."""
        return self.begin(item)()

    def begin(self, item: T) -> Callable[[], R]:
        """Begin with an item, and return what ends it."""
        begun = self._work(item)
        try:
            next(begun)
        except StopIteration as last:
            result: R = last.value
            return lambda: result
        return partial(_ended, begun)

    def __reduce__(self) -> str:
        return self._work.__name__


def _ended(begun: Generator[None, None, R]) -> R:
    try:
        next(begun)
    except StopIteration as last:
        result: R = last.value
        return result
    raise AssertionError("it yields once")


class Engine(Protocol):
    """Runs work on several workers and survives their death."""

    workers: int

    def run(
        self, work: Callable[[T], R], items: Sequence[T], sizes: Sequence[int], kinds: Sequence[int] = ()
    ) -> Iterator[tuple[int, R | Lost]]:
        """Yield the position of each item and what ``work``, a function of a module, made of it, in any order.

        ``sizes`` are the bytes that each item is about; ``kinds``, where they are known, are equal where items are probably
        alike: one worker had best work on them. What ``work`` raises is raised here.
        """

    def close(self) -> None:
        """End all work at once."""
