"""The logs of an archive in little memory: each is one packed text, unpacked to a ``Log`` on access."""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar, overload

from receipt_cli.batch.model import Log
from receipt_cli.io.compression import unpacked

T = TypeVar("T", covariant=True)
_TEXT = ("utf-8", "surrogatepass")
_YES = b"1"
_NUMBER = re.compile("[0-9]+")


def kind_of(name: str) -> int:
    """Return a number that is equal for logs whose names differ only in digits, and so probably come from one program."""
    return zlib.crc32(_NUMBER.sub("", unpacked(name)).encode(*_TEXT))


class Drawn(Sequence[T], Generic[T]):
    """A sequence of ``count`` items, each made by ``make(position)`` on every access."""

    def __init__(self, count: int, make: Callable[[int], T]) -> None:
        self._count, self._make = count, make

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> T: ...

    @overload
    def __getitem__(self, at: slice) -> list[T]: ...

    def __getitem__(self, at: int | slice) -> T | list[T]:
        if isinstance(at, slice):
            return [self._make(number) for number in range(self._count)[at]]
        return self._make(range(self._count)[at])


class Listing(Drawn[Log]):
    """Logs by name, each path once; of duplicates, the one named by the caller stays.

    ``base`` is the folder that names are relative to; paths below it are not stored.
    """

    def __init__(self, base: str, logs: list[bytes]) -> None:
        self._base = _folder(base)
        logs.sort()
        kept = 0
        for row in logs:  # in place: a copy of a million rows would dominate memory
            if kept and _where(logs[kept - 1]) == _where(row):
                if row.endswith(_YES):
                    logs[kept - 1] = row
            else:
                logs[kept] = row
                kept += 1
        del logs[kept:]
        self._rows = logs
        super().__init__(kept, self._log)

    @staticmethod
    def row(log: Log, base: str) -> bytes:
        """Return a log as packed text: name, path, size, stamp, settled, named."""
        path = "" if log.path == _folder(base) + log.name else log.path
        parts = (log.name.replace("\0", "\ufffd"), path.replace("\0", "\ufffd"), log.size_bytes, log.stamp.replace("\0", " "))
        return "\0".join((*map(str, parts), str(int(log.settled)), str(int(log.named)))).encode(*_TEXT)

    def _log(self, at: int) -> Log:
        name, path, size, stamp, settled, named = self._rows[at].decode(*_TEXT).split("\0")
        return Log(name, path or self._base + name, named == "1", int(size), stamp, settled == "1")


def _folder(base: str) -> str:
    return os.path.join(base, "") if base else ""


def _where(row: bytes) -> bytes:
    """Return name and path of a row."""
    return row[: row.index(b"\0", row.index(b"\0") + 1)]
