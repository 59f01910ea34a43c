"""Read a pipe, terminal or socket, which gives its bytes only once, so that another thread can end the wait."""

from __future__ import annotations

import contextlib
import os
import select
from io import BufferedReader, FileIO
from typing import IO

_CAPACITY = 1 << 20
"""Requested size of a pipe's buffer in bytes; the default of 64 KiB takes sixteen times as many reads."""


class Pipe:
    """Bytes of ``file`` from its current position. Nobody else may read from it."""

    def __init__(self, file: BufferedReader, raw: FileIO) -> None:
        """Take over ``file``, a buffer of ``raw``; its owner closes it."""
        self._file = file
        self._raw = raw
        self._fresh = True
        self._room = bytearray()
        self._wake, self._waker = os.pipe()
        widen(raw.fileno())

    @staticmethod
    def of(file: IO[bytes]) -> Pipe | None:
        """Return a pipe for ``file``, or None if a wait for it could not be ended."""
        if os.name == "nt" or not isinstance(file, BufferedReader) or not isinstance(file.raw, FileIO):
            return None
        return Pipe(file, file.raw)

    def read(self, size: int) -> bytes:
        """Return ``size`` bytes, fewer only at the end or after ``stop``. Waits without polling."""
        if len(self._room) < size:
            self._room = bytearray(size)
        with memoryview(self._room) as room:
            filled = 0
            while filled < size:
                count = self._fill(room[filled:size])
                if count is None:
                    continue
                if not count:
                    break
                filled += count
            return bytes(room[:filled])

    def _fill(self, room: memoryview) -> int | None:
        """Wait, then read the available bytes; return their number, or None if another reader took them."""
        if self._fresh:  # an earlier peek may have buffered the first bytes
            buffered = len(self._file.peek(1))
            self._fresh = buffered > len(room)
            if buffered:
                return self._file.readinto(room[:buffered])
        ready, _, _ = select.select([self._raw.fileno(), self._wake], [], [])
        return 0 if self._wake in ready else self._raw.readinto(room)

    def stop(self) -> None:
        """End the wait of another thread, permanently."""
        with contextlib.suppress(OSError):  # already closed
            os.write(self._waker, b"x")

    def close(self) -> None:
        """Close the wake-up pipe; nobody may be waiting."""
        if self._wake >= 0:
            os.close(self._wake)
            os.close(self._waker)
            self._wake = self._waker = -1


def widen(descriptor: int) -> None:
    """Enlarge the buffer of a pipe, if the system allows it."""
    try:
        from fcntl import F_SETPIPE_SZ, fcntl  # type: ignore[attr-defined, unused-ignore]  # Linux only
    except ImportError:
        return
    with contextlib.suppress(OSError):
        fcntl(descriptor, F_SETPIPE_SZ, _CAPACITY)
