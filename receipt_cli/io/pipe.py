"""Reading what gives its bytes once and at its own pace (a pipe, a terminal, a socket), with a way to end the wait."""

from __future__ import annotations

import contextlib
import os
import select
from io import BufferedReader, FileIO
from typing import IO

_CAPACITY = 1 << 20
"""Bytes that a pipe should hold where the system lets us choose: 64 KiB cost sixteen times as many turns."""


class Pipe:
    """The bytes of ``file`` from where it stands. Nobody else may read from it."""

    def __init__(self, file: BufferedReader, raw: FileIO) -> None:
        """Take over ``file``, a buffer of ``raw``, which stays open for its owner to close."""
        self._file = file
        self._raw = raw
        self._fresh = True
        self._room = bytearray()
        self._wake, self._waker = os.pipe()
        widen(raw.fileno())

    @staticmethod
    def of(file: IO[bytes]) -> Pipe | None:
        """Return the pipe that ``file`` is, or None where there is no way to end a wait for it."""
        if os.name == "nt" or not isinstance(file, BufferedReader) or not isinstance(file.raw, FileIO):
            return None
        return Pipe(file, file.raw)

    def read(self, size: int) -> bytes:
        """Return ``size`` bytes, fewer only at the end or after ``stop``. Waits without turning."""
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
        """Read what there is, once there is something; return how much, or None if another was faster."""
        if self._fresh:  # somebody may have looked at the first bytes: they are in the buffer
            buffered = len(self._file.peek(1))
            self._fresh = buffered > len(room)
            if buffered:
                return self._file.readinto(room[:buffered])
        ready, _, _ = select.select([self._raw.fileno(), self._wake], [], [])
        return 0 if self._wake in ready else self._raw.readinto(room)

    def stop(self) -> None:
        """End the wait that another thread is in, for good."""
        with contextlib.suppress(OSError):  # closed before
            os.write(self._waker, b"x")

    def close(self) -> None:
        """Give up what is needed to wait; nobody may be waiting."""
        if self._wake >= 0:
            os.close(self._wake)
            os.close(self._waker)
            self._wake = self._waker = -1


def widen(descriptor: int) -> None:
    """Let a pipe hold more, where that can be and it is one."""
    try:
        from fcntl import F_SETPIPE_SZ, fcntl  # type: ignore[attr-defined, unused-ignore]  # Linux only
    except ImportError:
        return
    with contextlib.suppress(OSError):
        fcntl(descriptor, F_SETPIPE_SZ, _CAPACITY)
