"""Cache of finished logs in a store, so that no batch repeats the work of an earlier one.

Each batch appends lines to its own file, so that batches on several machines never wait for each other. Each line has a
checksum: torn or damaged lines are skipped, and their logs are read again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
import zlib
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from receipt_cli.store.places import Place


class PackedRows:
    """Rows of a key and a value, ``key`` and ``value`` bytes wide. Of rows with equal keys the last one added counts."""

    def __init__(self, key: int, value: int = 0) -> None:
        self._key, self._width = key, key + value
        self._rows = bytearray()
        self._sorted = True

    def add(self, key: bytes, value: bytes = b"") -> None:
        """Add a row. Raises ``ValueError`` for another width."""
        if len(key) != self._key or len(key) + len(value) != self._width:
            raise ValueError(f"{len(key)} and {len(value)} bytes do not fit a row")
        self._rows += key
        self._rows += value
        self._sorted = False

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key, or None."""
        self._sort()
        at = bisect_right(range(len(self)), key, key=self._key_at) - 1
        return self._value_at(at) if at >= 0 and self._key_at(at) == key else None

    def __contains__(self, key: bytes) -> bool:
        return self.get(key) is not None

    def __len__(self) -> int:
        return len(self._rows) // self._width

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        """Yield each key with its value, ordered by key."""
        self._sort()
        for at in range(len(self)):
            if at + 1 == len(self) or self._key_at(at) != self._key_at(at + 1):
                yield self._key_at(at), self._value_at(at)

    def _sort(self) -> None:
        if not self._sorted:
            width = self._width
            rows = [bytes(self._rows[start : start + width]) for start in range(0, len(self._rows), width)]
            self._rows.clear()
            rows.sort(key=lambda row: row[: self._key])
            self._rows += b"".join(rows)
            self._sorted = True

    def _key_at(self, at: int) -> bytes:
        start = at * self._width
        return bytes(self._rows[start : start + self._key])

    def _value_at(self, at: int) -> bytes:
        start = at * self._width
        return bytes(self._rows[start + self._key : start + self._width])


MAX_FILES = 16
"""Number of files beyond which a batch merges all into one."""


_KEY, _SHA256, _SIZE = 16, 32, 8
"""Bytes of a key, a digest and a number."""
_MERGING = "merging"
_TURN_S = 3600.0


@dataclass(frozen=True, slots=True)
class KnownLog:
    """A finished log: ``generation`` of its receipt, or 0 if it is in quarantine."""

    generation: int
    recognised: bool


class Known:
    """The cache of the store at ``root``, for definitions with one fingerprint.

    A missing or unreadable folder gives an empty cache, and failed writes are ignored. Notes count from the next batch on.
    """

    def __init__(self, root: Path, definitions: str, *, writes: bool = True) -> None:
        self._folder = root / ".cache" / "known"
        self._paths = PackedRows(_KEY, _SHA256 + _SIZE)
        self._logs = PackedRows(_SHA256, _SIZE)
        self._places = PackedRows(_KEY)
        self._names = {self._paths: "path", self._logs: f"log-{definitions}", self._places: "place"}
        """Rows → first word of their lines; lines with another are of other definitions, or of a later layout."""
        self._file: IO[str] | None = None
        self._writes = writes
        files = self._files()
        for file in files:
            self._read(file)
        if writes and len(files) > MAX_FILES:
            self._merge(files)

    def identity(self, path: str, stamp: str) -> tuple[str, int] | None:
        """Return (digest, size) of the log at ``path`` if it was read with this ``stamp``, else None."""
        entry = self._paths.get(_key(path, stamp))
        return (entry[:_SHA256].hex(), int.from_bytes(entry[_SHA256:], "big")) if entry is not None else None

    def log(self, sha256: str) -> KnownLog | None:
        """Return the entry of the log with this digest, derived with these definitions, or None."""
        entry = self._logs.get(bytes.fromhex(sha256))
        if entry is None:
            return None
        generation, recognised = divmod(int.from_bytes(entry, "big"), 2)
        return KnownLog(generation, bool(recognised))

    def note_path(self, path: str, stamp: str, sha256: str, size_bytes: int) -> None:
        """Note that the log at ``path`` has this digest and size while its stamp is ``stamp``."""
        self._note(self._paths, _key(path, stamp), bytes.fromhex(sha256) + size_bytes.to_bytes(_SIZE, "big"))

    def note_log(self, sha256: str, known: KnownLog) -> None:
        """Mark a log as processed completely."""
        self._note(self._logs, bytes.fromhex(sha256), (2 * known.generation + known.recognised).to_bytes(_SIZE, "big"))

    def is_placed(self, sha256: str, place: Place) -> bool:
        """Return whether the store is known to contain ``place`` for the log with this digest."""
        return _place_key(sha256, place) in self._places

    def note_placed(self, sha256: str, place: Place) -> None:
        """Note that the store contains ``place`` for the log with this digest."""
        self._note(self._places, _place_key(sha256, place), b"")

    def flush(self) -> None:
        """Flush the file, so that a kill loses nothing."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.flush()

    def close(self) -> None:
        """Write the notes, and close the file."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None

    def _files(self) -> list[Path]:
        try:
            return sorted(path for path in self._folder.iterdir() if path.suffix == ".txt" and path.is_file())
        except OSError:
            return []

    def _read(self, file: Path) -> None:
        rows = {name: rows for rows, name in self._names.items()}
        with contextlib.suppress(OSError), file.open(encoding="ascii", errors="replace") as lines:
            for line in lines:
                text, _, total = line.rstrip("\n").rpartition(" ")
                with contextlib.suppress(ValueError, KeyError):
                    name, key, value = text.split(" ")
                    if total == _sum(text):
                        rows[name].add(bytes.fromhex(key), bytes.fromhex(value))

    def _note(self, rows: PackedRows, key: bytes, value: bytes) -> None:
        if rows.get(key) != value:
            self._write(rows, key, value)

    def _write(self, rows: PackedRows, key: bytes, value: bytes) -> None:
        if not self._writes:
            return
        text = f"{self._names[rows]} {key.hex()} {value.hex()}"
        try:
            if self._file is None:
                self._folder.mkdir(parents=True, exist_ok=True)
                # The name orders the files; after a wrong clock, logs are only read again.
                handle, _ = tempfile.mkstemp(dir=self._folder, prefix=f"{time.time_ns():020d}-", suffix=".txt")
                self._file = os.fdopen(handle, "w", encoding="ascii")
            self._file.write(f"{text} {_sum(text)}\n")
        except OSError:
            self._writes = False

    def _merge(self, files: list[Path]) -> None:
        """Merge ``files`` into one. Lines that another batch appends meanwhile are lost, and their logs are read again.

        Only one batch merges at a time: otherwise each of a hundred concurrent batches would write all lines.
        """
        if not self._may_merge():
            return
        for rows in self._names:
            for key, value in rows:
                self._write(rows, key, value)
        self.flush()
        if self._writes:
            for file in files:
                with contextlib.suppress(OSError):
                    file.unlink()
        with contextlib.suppress(OSError):
            (self._folder / _MERGING).unlink()

    def _may_merge(self) -> bool:
        """Return whether no other batch is merging; a merge older than an hour was killed."""
        mark = self._folder / _MERGING
        with contextlib.suppress(OSError):
            if mark.stat().st_mtime < time.time() - _TURN_S:
                mark.unlink()
        try:
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except OSError:
            return False
        return True


def _key(path: str, stamp: str) -> bytes:
    """Return a short key of a path with its stamp: the full names of a million paths would fill the memory."""
    return hashlib.blake2b(f"{stamp}\n{path}".encode("utf-8", "surrogateescape"), digest_size=_KEY).digest()


def _place_key(sha256: str, place: Place) -> bytes:
    labels = (place.name, place.lane, place.preset, place.name_source, place.lane_source, place.preset_source)
    return hashlib.blake2b(f"{sha256}\n{(place.path, *labels)}".encode("utf-8", "surrogateescape"), digest_size=_KEY).digest()


def _sum(text: str) -> str:
    return f"{zlib.crc32(text.encode('ascii', 'replace')):08x}"
