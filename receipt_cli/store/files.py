"""The store: a folder of immutable receipt files, safe for concurrent writers and for a kill at any moment.

::

    receipts/ab/<log sha256>.<n>.json      receipts of one log; the highest n is current, the others are history
    receipts/ab/<log sha256>.<n>.run1.json receipt of the first of several runs in the log; the last run has no number
    places/ab/<log sha256>.<key>.json      a path of the log, and name, lane and preset of its run there (``places``)
    marks/ab/<run>.<n>.json                tags, note and exclusion of a run (``places``)
    documents/<kind>/ab/<sha256>.json      other documents, under the digest of their canonical bytes
    quarantine/ab/<key>.json               logs that gave no receipt, and the reason
    .cache/                                may be deleted at any time; it is rebuilt

The content of the first three depends only on the logs and on what was captured with them, not on clock, host, order of work
or number of workers; marks are the user's. A receipt or document file is created once, under its final name and complete;
it never changes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.errors import InputError, OutputError, UsageError, system_errors
from receipt_cli.io.atomic import NameTaken, make_folder, write_atomically, write_new
from receipt_cli.io.file_kinds import read_regular

RECEIPT = re.compile(r"(?P<log>[0-9a-f]{64})\.(?P<generation>[1-9]\d{0,8})(?:\.run(?P<run>[1-9]\d{0,8}))?\.json")
_DIGEST = re.compile(r"[0-9a-f]{64}\Z")
_KIND = re.compile(r"(?P<kind>[a-z][a-z0-9_]*)/\d+\.\d+\Z")

LEFT_OVER_S = 86400.0
"""Age in seconds after which a temporary file counts as left over: a day."""

Change = Literal["written", "unchanged", "replaced"]


@dataclass(frozen=True, slots=True)
class StoredReceipt:
    """One receipt file: its path, the digest of its log, and its generation among that log's receipts, from 1.

    ``run`` is the number of its run, from 1, in a log of several runs; None for the last run.
    """

    path: Path
    log_sha256: str
    generation: int
    run: int | None = None

    @property
    def run_id(self) -> str:
        """The identity of the run, as in ``documents.run_id``."""
        return self.log_sha256 if self.run is None else f"{self.log_sha256}.run{self.run}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of adding a document: the change, and the document's path below the store, with ``/``."""

    change: Change
    path: str


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A log that gave no receipt.

    ``path`` is relative to the archive's root; ``sha256`` is of the decompressed bytes, ``size_bytes`` of the stored file, each
    None if unknown; ``exit_code`` is the one that ``receipt parse`` would have.
    """

    path: str
    sha256: str | None
    size_bytes: int | None
    exit_code: int
    error: str
    why: str

    @property
    def key(self) -> str:
        """Name of the record: the log's digest, or that of its path if the log could not be read."""
        return self.sha256 or hashlib.sha256(self.path.encode("utf-8")).hexdigest()


class Store:
    """The documents below the folder ``root``, which is created with the first one."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def check_exists(self) -> None:
        """Raise ``InputError`` if the store does not exist."""
        if not self.root.is_dir():
            raise InputError("no such store", where=str(self.root), try_="receipt store build LOGS --store DIR makes one")

    @property
    def scratch(self) -> Path:
        """Folder for files being written; leftovers of killed processes are removed."""
        return self.root / ".cache" / "tmp"

    def check_writable(self) -> None:
        """Raise ``OutputError`` if the store is not writable; delete old leftovers of killed processes."""
        make_folder(self.root / "receipts")
        make_folder(self.scratch)
        with system_errors(OutputError, "cannot write", self.scratch), contextlib.suppress(FileNotFoundError):
            tempfile.TemporaryFile(dir=self.scratch).close()
            for path in self.scratch.iterdir():  # another batch may delete one at the same time
                if path.stat().st_mtime < time.time() - LEFT_OVER_S:
                    path.unlink()

    def receipts(self) -> Iterator[StoredReceipt]:
        """Yield the current receipt of every run, by the log's digest, the last run of a log last. Raises ``InputError``."""
        for _, receipts in groupby(self.all_receipts(), key=lambda receipt: receipt.log_sha256):
            yield from _current(list(receipts))

    def all_receipts(self) -> Iterator[StoredReceipt]:
        """Yield every receipt file by log, generation and run, the last run of a log last. Raises ``InputError``."""
        for folder in _listed(self.root / "receipts"):
            yield from _receipts_in(folder)

    def history(self, log_sha256: str) -> list[StoredReceipt]:
        """Return all receipts of a log's last run, oldest first; the last one is current. Raises ``InputError``."""
        return [receipt for receipt in _receipts_in(self._folder(log_sha256), log_sha256) if receipt.run is None]

    def runs(self, log_sha256: str) -> list[StoredReceipt]:
        """Return the current receipts of a log's runs, the last run's last; [] for an unknown log. Raises ``InputError``."""
        return _current(_receipts_in(self._folder(log_sha256), log_sha256))

    def current(self, log_sha256: str) -> bytes | None:
        """Return the bytes of the current receipt of a log's last run, or None. Raises ``InputError``."""
        receipts = self.history(log_sha256)
        return _read(receipts[-1].path) if receipts else None

    def add(self, document: Mapping[str, Any]) -> Outcome:
        """Store a valid document unless its bytes exist: a receipt under its log, any other document under its digest.

        A receipt that differs from the log's current one only in the tool's version counts as the same. Receipts of earlier
        runs of the log stay current. Raises ``UsageError`` for a document that a store does not take, ``OutputError`` if it
        cannot be written.
        """
        kind = kind_of(document)
        data = canonical_bytes(document)
        if kind == "receipt":
            log = _log_of(document)
            earlier = [_read(receipt.path) for receipt in self.runs(log)[:-1]]
            launches = document["derivation"].get("launches") or {"count": 1}
            return self._add_receipt(log, data, earlier if launches["count"] == len(earlier) + 1 else [])
        digest = hashlib.sha256(data).hexdigest()
        path = self.root / "documents" / kind / digest[:2] / f"{digest}.json"
        return Outcome("written" if self._create(path, data) else "unchanged", self._name(path))

    def add_runs(self, documents: Sequence[Mapping[str, Any]], contents: Sequence[bytes] = ()) -> Outcome:
        """Store the valid receipts of all runs of one log, in order; return the outcome of the last run's.

        ``contents`` are their canonical bytes, if known. They become current together: a reader finds all or none. Raises
        ``UsageError`` and ``OutputError`` as ``add`` does.
        """
        log = _log_of(documents[-1])
        contents = contents or [canonical_bytes(each) for each in documents]
        return self._add_receipt(log, contents[-1], contents[:-1])

    def documents(self) -> Iterator[Path]:
        """Yield the paths of all documents other than receipts, in order. Raises ``InputError``."""
        for kind in _listed(self.root / "documents"):
            for folder in _listed(kind):
                yield from (path for path in _listed(folder) if path.suffix == ".json")

    def quarantine(self, record: Quarantined) -> bool:
        """Record that a log gave no receipt; return whether the record is new. Raises ``OutputError``.

        Of several paths with the same bytes, the first in order is recorded.
        """
        path = self._record(record.key)
        old = _quarantined(path)
        if old is not None and {**asdict(old), "path": None} == {**asdict(record), "path": None} and old.path <= record.path:
            return False
        self._make_folders(path.parent)
        write_atomically(path, canonical_bytes(asdict(record)), self.scratch)
        return True

    def release(self, key: str) -> None:
        """Remove a log from quarantine, if it is there. Raises ``OutputError``."""
        with system_errors(OutputError, "cannot write", self._record(key)):
            self._record(key).unlink(missing_ok=True)

    def quarantined(self) -> Iterator[Quarantined]:
        """Yield the logs in quarantine, ordered by key; a damaged record is skipped. Raises ``InputError``."""
        for folder in _listed(self.root / "quarantine"):
            for path in _listed(folder):
                record = _quarantined(path) if path.suffix == ".json" else None
                if record is not None:
                    yield record

    def _add_receipt(self, log: str, data: bytes, earlier: Sequence[bytes] = ()) -> Outcome:
        """Store the receipt of a log's last run, preceded by those of ``earlier`` runs, under one generation."""
        while True:
            receipts = self.history(log)
            if receipts and _same(_read(receipts[-1].path), data) and self._completed(receipts[-1], earlier):
                return Outcome("unchanged", self._name(receipts[-1].path))
            generation = receipts[-1].generation + 1 if receipts else 1
            for number, run in enumerate(earlier, 1):  # they become current with the last run's receipt
                self._make_folders(self._folder(log))
                write_atomically(self._receipt(log, generation, number), run, self.scratch)
            path = self._receipt(log, generation)
            if self._create(path, data):
                return Outcome("replaced" if receipts else "written", self._name(path))
            # Another process took this number first: compare with its receipt.

    def _completed(self, last: StoredReceipt, earlier: Sequence[bytes]) -> bool:
        """Create missing receipts of earlier runs beside that of the last; return False if different ones exist."""
        for number, data in enumerate(earlier, 1):
            path = self._receipt(last.log_sha256, last.generation, number)
            if not self._create(path, data) and not _same(_read(path), data):
                return False
        return True

    def _receipt(self, log: str, generation: int, run: int | None = None) -> Path:
        return self._folder(log) / f"{log}.{generation}{f'.run{run}' if run is not None else ''}.json"

    def _create(self, path: Path, data: bytes) -> bool:
        """Create a file with all of ``data``; return False if the name exists."""
        for last in (False, True):
            self._make_folders(path.parent)
            try:
                write_new(path, data, self.scratch)
                break
            except NameTaken:
                return False
            except OutputError as error:  # the cache may have been deleted meanwhile
                if last or not isinstance(error.__cause__, FileNotFoundError):
                    raise
        return True

    def _make_folders(self, folder: Path) -> None:
        make_folder(folder)
        make_folder(self.scratch)

    def _folder(self, log: str) -> Path:
        return self.root / "receipts" / log[:2]

    def _record(self, key: str) -> Path:
        return self.root / "quarantine" / key[:2] / f"{key}.json"

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()


def kind_of(document: Mapping[str, Any]) -> str:
    """Return the kind of a document that a store takes. Raises ``UsageError`` for any other."""
    version = document.get("schema_version")
    match = _KIND.match(version) if isinstance(version, str) else None
    if match is None or match["kind"] == "header":
        raise UsageError(f"a store does not take {version!r}", why="a store takes receipts and measurement documents")
    return match["kind"]


def _current(receipts: Sequence[StoredReceipt]) -> list[StoredReceipt]:
    """Return the current receipts of one log: those of the newest generation that has its last run."""
    newest = max((receipt.generation for receipt in receipts if receipt.run is None), default=None)
    return [receipt for receipt in receipts if receipt.generation == newest]


def _log_of(document: Mapping[str, Any]) -> str:
    """Return the digest of a receipt's log. Raises ``UsageError``, also for a receipt of an earlier run."""
    derivation = document["derivation"]
    launches = derivation.get("launches")
    if launches is not None and launches["used"] != launches["count"]:
        run = f"run {launches['used']} of {launches['count']} in its log"
        raise UsageError(
            f"the receipt is of {run}", why="receipts of a log's runs are stored together", try_="receipt store build"
        )
    log = derivation["log"]["sha256"]
    if not isinstance(log, str) or _DIGEST.match(log) is None:
        raise UsageError("the receipt does not name its log", why="/derivation/log/sha256 is not a digest")
    return log


def _same(old: bytes, new: bytes) -> bool:
    return old == new or _without_tool(old) == _without_tool(new)


def _without_tool(data: bytes) -> object:
    """Return a receipt's bytes without the tool's version; other data unchanged."""
    try:
        document = json.loads(data)
        document["derivation"]["tool_version"] = None
    except (ValueError, LookupError, TypeError):
        return data
    return canonical_bytes(document)


def _receipts_in(folder: Path, log: str = "") -> list[StoredReceipt]:
    """Return the receipts in a folder, of all logs or one, by log, generation and run; skip other files."""
    named = ((path, RECEIPT.fullmatch(path.name)) for path in _listed(folder, log))
    receipts = [
        StoredReceipt(path, name["log"], int(name["generation"]), int(name["run"]) if name["run"] else None)
        for path, name in named
        if name is not None
    ]
    return sorted(receipts, key=lambda each: (each.log_sha256, each.generation, each.run is None, each.run or 0))


def _listed(folder: Path, start: str = "") -> list[Path]:
    """Return the entries of a folder whose names begin with ``start``, in order; [] for a missing folder."""
    with (
        system_errors(InputError, "cannot read the store", folder),
        contextlib.suppress(FileNotFoundError, NotADirectoryError),
    ):
        return [folder / name for name in sorted(name for name in os.listdir(folder) if name.startswith(start))]
    return []


def _read(path: Path) -> bytes:
    with system_errors(InputError, "cannot read the store", path):
        return read_regular(path)


def _quarantined(path: Path) -> Quarantined | None:
    with contextlib.suppress(OSError, ValueError, TypeError):
        return Quarantined(**json.loads(read_regular(path)))
    return None
