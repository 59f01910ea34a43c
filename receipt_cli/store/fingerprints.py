"""What earlier batches found out, so that nothing is done twice: kept in the store's cache, and of no other worth.

Each batch appends lines to a file of its own, so that several, on several machines, never wait for one another. A line has a
check sum: whatever is torn or damaged is passed over, and costs only the time to find it out again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import time
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO

MAX_FILES = 16
"""Files from which on a batch makes one of all."""


_MERGING = "merging"
_TURN_S = 3600.0


@dataclass(frozen=True, slots=True)
class KnownLog:
    """A log for which all is done: ``generation`` of its receipt, 0 where it is in quarantine instead."""

    generation: int
    recognised: bool


class Known:
    """The cache of the store at ``root``, for the definitions of one fingerprint.

    Reading a folder that is missing or cannot be read gives an empty cache, and what cannot be written is forgotten.
    """

    def __init__(self, root: Path, definitions: str, *, writes: bool = True) -> None:
        self._folder = root / ".cache" / "known"
        self._definitions = definitions
        self._paths: dict[bytes, tuple[bytes, int]] = {}
        self._logs: dict[bytes, KnownLog] = {}
        self._file: IO[str] | None = None
        self._writes = writes
        files = self._files()
        for file in files:
            self._read(file)
        if writes and len(files) > MAX_FILES:
            self._merge(files)

    def identity(self, path: str, stamp: str) -> tuple[str, int] | None:
        """Return digest and size of the log at ``path``, where it was read in the state of ``stamp``."""
        entry = self._paths.get(_key(path, stamp))
        return (entry[0].hex(), entry[1]) if entry is not None else None

    def log(self, sha256: str) -> KnownLog | None:
        """Return what is known of the log with this digest, derived with these definitions."""
        return self._logs.get(bytes.fromhex(sha256))

    def note_path(self, path: str, stamp: str, sha256: str, size_bytes: int) -> None:
        """Keep that the log at ``path`` has this digest and size as long as it has this stamp."""
        key = _key(path, stamp)
        if self._paths.get(key) != (bytes.fromhex(sha256), size_bytes):
            self._paths[key] = (bytes.fromhex(sha256), size_bytes)
            self._write(_path_line(key, sha256, size_bytes))

    def note_log(self, sha256: str, known: KnownLog) -> None:
        """Keep that all is done for this log."""
        if self._logs.get(bytes.fromhex(sha256)) != known:
            self._logs[bytes.fromhex(sha256)] = known
            self._write(self._log_line(sha256, known))

    def flush(self) -> None:
        """Hand to the system what was noted, so that a kill does not cost it."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.flush()

    def close(self) -> None:
        """Write what was noted."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None

    def _log_line(self, sha256: str, known: KnownLog) -> str:
        return f"log {sha256} {self._definitions} {known.generation} {int(known.recognised)}"

    def _files(self) -> list[Path]:
        try:
            return sorted(path for path in self._folder.iterdir() if path.suffix == ".txt")
        except OSError:
            return []

    def _read(self, file: Path) -> None:
        with contextlib.suppress(OSError), file.open(encoding="ascii", errors="replace") as lines:
            for line in lines:
                text, _, total = line.rstrip("\n").rpartition(" ")
                if total == _sum(text):
                    self._add_line(text.split(" "))

    def _add_line(self, parts: list[str]) -> None:
        """Take in one line; one of other definitions, or of a later layout, is passed over."""
        with contextlib.suppress(ValueError):
            if parts[0] == "path" and len(parts) == 4:
                self._paths[bytes.fromhex(parts[1])] = (bytes.fromhex(parts[2]), int(parts[3]))
            elif parts[0] == "log" and len(parts) == 5 and parts[2] == self._definitions:
                self._logs[bytes.fromhex(parts[1])] = KnownLog(int(parts[3]), parts[4] == "1")

    def _write(self, text: str) -> None:
        if not self._writes:
            return
        try:
            if self._file is None:
                self._folder.mkdir(parents=True, exist_ok=True)
                # The name puts files in order; what a wrong clock puts in a wrong one is found out again.
                handle, _ = tempfile.mkstemp(dir=self._folder, prefix=f"{time.time_ns():020d}-", suffix=".txt")
                self._file = os.fdopen(handle, "w", encoding="ascii")
            self._file.write(f"{text} {_sum(text)}\n")
        except OSError:
            self._writes = False

    def _merge(self, files: list[Path]) -> None:
        """Make one file of ``files``. What a batch that still writes to one of them adds is lost, and found out again.

        One batch at a time: of a hundred that start together each would write all of it.
        """
        if not self._may_merge():
            return
        for key, (digest, size) in self._paths.items():
            self._write(_path_line(key, digest.hex(), size))
        for digest, known in self._logs.items():
            self._write(self._log_line(digest.hex(), known))
        self.flush()
        if self._writes:
            for file in files:
                with contextlib.suppress(OSError):
                    file.unlink()
        with contextlib.suppress(OSError):
            (self._folder / _MERGING).unlink()

    def _may_merge(self) -> bool:
        """Return whether nobody else merges; who began long ago was killed."""
        mark = self._folder / _MERGING
        with contextlib.suppress(OSError):
            if mark.stat().st_mtime < time.time() - _TURN_S:
                mark.unlink()
        try:
            os.close(os.open(mark, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        except OSError:
            return False
        return True


def _path_line(key: bytes, sha256: str, size_bytes: int) -> str:
    return f"path {key.hex()} {sha256} {size_bytes}"


def _key(path: str, stamp: str) -> bytes:
    """Return what stands for a path in one state: of a million paths not even the names need to be kept."""
    return hashlib.blake2b(f"{stamp}\n{path}".encode("utf-8", "surrogateescape"), digest_size=16).digest()


def _sum(text: str) -> str:
    return f"{zlib.crc32(text.encode('ascii', 'replace')):08x}"
