"""Messages between a batch and its workers, small and picklable; and the summary of its reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial, update_wrapper
from typing import Any, Generic, Literal, Protocol, TypeVar

from receipt_cli.definitions.search_path import Folder
from receipt_cli.documents.diff import Difference
from receipt_cli.errors import ExitCode, ReceiptError
from receipt_cli.store.places import Place

Change = Literal["written", "unchanged", "replaced", "quarantined", "gone", "left_out"]
"""Outcome of a path. ``gone``: listed in the archive, but missing when read; ``left_out``: not a log."""
Reason = Literal[
    "hidden", "link", "special", "name", "older", "empty", "binary", "script", "receipt", "header", "document", "series", "store"
]
"""Reason why a path is not a log of the archive: see ``REASONS``."""
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

    ``name`` is its path below the archive's root; ``path`` is its location (a path or URL); ``named``: the caller named this
    file, so it is read whatever its content. ``size_bytes`` is of the stored file. ``stamp`` identifies its state; ``settled``:
    any later change will change the stamp.
    """

    name: str
    path: str
    named: bool
    size_bytes: int
    stamp: str
    settled: bool


@dataclass(frozen=True, slots=True)
class Identity:
    """Digest and size of a log's decompressed bytes; ``steady`` if the file did not change while it was read."""

    sha256: str
    size_bytes: int
    steady: bool = True


@dataclass(frozen=True, slots=True)
class Failure:
    """The reason why a log gave no receipt, as ``receipt parse`` would report it."""

    exit_code: int
    error: str
    why: str
    fatal: bool = False
    """The fault is not in the log: the store cannot be written, or a file of this program cannot be read."""
    gone: bool = False
    detail: str = ""
    """Reported once and not stored."""

    @staticmethod
    def of(error: ReceiptError) -> Failure:
        """Return the failure of ``error`` without its place, which differs between machines."""
        return Failure(int(error.exit_code), error.message, error.why, fatal=error.exit_code == ExitCode.OUTPUT)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A path in a folder that is not a log: ``name`` is its path below the archive's root."""

    name: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Manner:
    """Options for reading the logs of a batch.

    ``folders`` contain definitions that do not ship with the package; ``grammar`` is the only one to read logs with, as for
    ``--grammar``; with ``all_runs`` every run of a log gets a receipt, else only the last; with ``series`` its records are
    written too.
    """

    folders: tuple[Folder, ...] = ()
    grammar: str | None = None
    all_runs: bool = True
    series: bool = False


@dataclass(frozen=True, slots=True)
class Task:
    """Derive the receipt of the bytes ``sha256``, the content of all ``logs``, into the store at ``store``.

    ``definitions`` is the fingerprint of the definitions to use. ``places`` are the places of the logs. With ``compare``
    nothing is written, and the result contains the differences.
    """

    sha256: str
    logs: tuple[Log, ...]
    store: str
    definitions: str
    manner: Manner
    compare: bool = False
    places: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True)
class Lost:
    """The worker died twice on an item, the second time with the machine to itself."""

    why: str


@dataclass(frozen=True, slots=True)
class Report:
    """Outcome of one path of an archive.

    ``receipt`` is its path below the store ("" in a comparison); ``recognised``: a grammar matched the log; ``derived`` is False
    if the log was finished before; ``same_as`` names the log with the same bytes that was derived instead; ``runs`` is the number
    of its runs that have a receipt.
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
    """The reason why the path was left out."""


T = TypeVar("T")
R = TypeVar("R")


class InTwoParts(Generic[T, R]):
    """A module-level function that yields once while it has to wait; meanwhile a worker may begin the next item."""

    def __init__(self, work: Callable[[T], Generator[None, None, R]]) -> None:
        self._work = work
        update_wrapper(self, work)

    def __call__(self, item: T) -> R:
        """Run both parts."""
        return self.begin(item)()

    def begin(self, item: T) -> Callable[[], R]:
        """Run the first part for an item; return a function that runs the second."""
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
        """Yield (position, result of ``work``) of each item, in any order; ``work`` is a module-level function.

        ``sizes`` are the bytes of each item; items with equal ``kinds``, if given, are probably similar, and best done by one
        worker. Exceptions of ``work`` are raised here.
        """

    def close(self) -> None:
        """Stop all work at once."""


MAX_TOLD = 20
"""Most logs listed individually in quarantine, and with differences."""
_CAUSES = {
    "/derivation/grammars": "grammars",
    "/derivation/markers": "failure markers",
    "/derivation/registry": "metrics",
    "/derivation/peaks": "accelerators",
    "/derivation/options": "options",
}


@dataclass
class Tally:
    """Outcomes of a batch so far. Bytes are those of the derived logs, decompressed."""

    changes: Counter[str] = field(default_factory=Counter)
    derived: int = 0
    derived_bytes: int = 0
    same: int = 0
    unrecognised: int = 0
    runs: int = 0
    """Runs in logs with several runs."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Paths that are not logs, by reason."""
    quarantine: list[Report] = field(default_factory=list)
    """The first ``MAX_TOLD`` of them."""
    worst_exit_code: int = 0

    @property
    def logs(self) -> int:
        """Number of paths reported so far."""
        return self.changes.total() + self.same

    def add(self, report: Report) -> None:
        """Count one report; a log with the same bytes as another is counted separately."""
        if report.same_as is not None:
            self.same += 1
            return
        if report.reason is not None:
            self.left_out[report.reason] += 1
            return
        self.changes[report.change] += 1
        self.runs += report.runs if report.runs > 1 else 0
        self.unrecognised += report.recognised is False
        if report.derived and report.identity is not None:
            self.derived += 1
            self.derived_bytes += report.identity.size_bytes
        if report.change == "quarantined" and report.failure is not None:
            self.worst_exit_code = max(self.worst_exit_code, report.failure.exit_code)
            if len(self.quarantine) < MAX_TOLD:
                self.quarantine.append(report)


def left_out_report(path: LeftOut) -> Report:
    """Return the report of a path that is not a log."""
    return Report(Log(path.name, path.name, False, 0, "", False), "left_out", reason=path.reason)


def report_document(report: Report, *, compared: bool = False) -> Mapping[str, Any]:
    """Return the JSON object of one report, the same on any engine for the same archive, definitions and store."""
    identity, failure = report.identity, report.failure
    document: dict[str, Any] = {
        "path": report.log.name,
        "outcome": report.change,
        "log_sha256": identity.sha256 if identity else None,
        "log_size_bytes": identity.size_bytes if identity else None,
        "receipt": report.receipt or None,
        "recognised": report.recognised,
        "derived": report.derived,
        "same_as": report.same_as,
        "runs": report.runs if report.receipt else 0,
        "exit_code": failure.exit_code if failure else None,
        "error": failure.error if failure else report.reason,
        "why": failure.why if failure else REASONS[report.reason] if report.reason else None,
        "notes": list(report.notes),
    }
    if not compared:
        return document
    return {**document, "differences": [d.document() for d in report.differences], "causes": find_causes(report.differences)}


def find_causes(differences: Sequence[Difference]) -> list[str]:
    """Return the inputs of a derivation that have changed: rules, grammars, definitions."""
    causes: list[str] = []
    for difference in differences:
        if difference.pointer == "/derivation/rules":
            causes.append(f"rules {difference.old} → {difference.new}")
        causes += [cause for start, cause in _CAUSES.items() if difference.pointer.startswith(start) and cause not in causes]
    return causes
