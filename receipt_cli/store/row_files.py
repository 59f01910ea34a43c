"""List the receipt files behind the rows of the index, each with a stamp of its state.

Every query does this for all files of a store, so names stay strings; only files that are read get a ``Path``.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from receipt_cli.errors import InputError
from receipt_cli.store.files import RECEIPT, Store, StoredReceipt
from receipt_cli.store.places import marks_files


class RowFiles(NamedTuple):
    """The files of a row, as paths below ``root``: the receipt, the places of its log and the marks of its run.

    ``stamp`` is size and times of each file, which reveal a change; ``size`` is the receipt's in bytes.
    """

    root: Path
    name: str
    log_sha256: str
    generation: int
    run: int | None
    stamp: str
    size: int
    place_names: tuple[str, ...] = ()
    marks: Path | None = None

    @property
    def receipt(self) -> StoredReceipt:
        """The receipt file."""
        return StoredReceipt(self.root / self.name, self.log_sha256, self.generation, self.run)

    @property
    def places(self) -> tuple[Path, ...]:
        """Paths of the log's place files."""
        return tuple(self.root / name for name in self.place_names)


def list_files(store: Store, log_sha256: str = "") -> Iterator[RowFiles]:
    """Yield all receipt files, or those of one log, by log, generation and run, the last run of a log last.

    Raises ``InputError`` if the system cannot read a folder.
    """
    places: dict[str, list[tuple[str, str]]] = {}
    with contextlib.suppress(OSError):
        for folder in _folders(store.root, "places", log_sha256):
            with contextlib.suppress(OSError):
                for name, status in _files(store.root, folder, log_sha256):
                    places.setdefault(name[:64], []).append((f"{folder}/{name}", f"{name} {_stamp(status)}"))
    marks = marks_files(store.root, log_sha256)
    try:
        for folder in _folders(store.root, "receipts", log_sha256):
            found: list[RowFiles] = []
            for name, status in _files(store.root, folder, log_sha256):
                match = RECEIPT.fullmatch(name)
                if match is None:
                    continue
                log, generation, run = match.groups()
                mine, marked = places.get(log, ()), marks.get(log if run is None else f"{log}.run{run}") if marks else None
                stamp = "; ".join([_stamp(status), *[state for _, state in mine], marked.name if marked else ""])
                paths, number = tuple([path for path, _ in mine]), int(run) if run else None
                path = f"{folder}/{name}"
                found.append(RowFiles(store.root, path, log, int(generation), number, stamp, status.st_size, paths, marked))
            found.sort(key=lambda each: (each.log_sha256, each.generation, each.run is None, each.run or 0))
            yield from found
    except OSError as error:
        where = str(error.filename or store.root)
        raise InputError("cannot read the store", where=where, why=error.strerror or str(error)) from error


def _folders(root: Path, kind: str, log_sha256: str) -> list[str]:
    """Return the folders of one kind of file, below the store, in order; or the folder of one log."""
    if log_sha256:
        return [f"{kind}/{log_sha256[:2]}"]
    try:
        return [f"{kind}/{name}" for name in sorted(os.listdir(root / kind))]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _files(root: Path, folder: str, start: str) -> list[tuple[str, os.stat_result]]:
    """Return name and status of the files in a folder whose names begin with ``start``, in order; [] for a missing folder."""
    found: list[tuple[str, os.stat_result]] = []
    try:
        with os.scandir(root / folder) as entries:
            for entry in entries:
                if entry.name.startswith(start):
                    with contextlib.suppress(FileNotFoundError):  # removed since
                        found.append((entry.name, entry.stat()))
    except (FileNotFoundError, NotADirectoryError):
        return []
    found.sort(key=_name)
    return found


def _name(file: tuple[str, os.stat_result]) -> str:
    return file[0]


def _stamp(status: os.stat_result) -> str:
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
