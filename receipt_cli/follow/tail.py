"""The bytes of a log as they are appended: of a file that grows, or of a pipe until nobody can write to it any more."""

from __future__ import annotations

import contextlib
import os
import select
import stat
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence

from receipt_cli.errors import InputError, UsageError
from receipt_cli.io.pipe import widen
from receipt_cli.io.source import BLOCK

PIECE = 8 << 20
"""Bytes that are read at a time at most."""
SEAM = 256
"""Bytes before the place that was read up to, by which a file that was written anew is known."""


class Tail(ABC):
    """One log that may still grow."""

    waits_on: Sequence[int] = ()
    """Descriptors that can be read once there is more; none where it has to be looked for."""
    ended = False
    """True once nothing can follow."""

    @abstractmethod
    def read(self) -> list[bytes]:
        """Return what was appended, at most ``PIECE`` bytes; nothing where nothing was. Raises ``OSError``."""

    def lost(self) -> str | None:
        """Tell what became of the file if it is no longer the one that was read; from then on what stands there now is."""
        return None

    def written_at(self) -> float:
        """Return when the last bytes that were read came, in seconds since 1970."""
        return time.time()

    @abstractmethod
    def close(self) -> None:
        """Close what was opened."""


def open_tail(path: str) -> Tail:
    """Return the tail of the log at ``path``, from its first byte on; ``-`` is stdin. Raises ``InputError``."""
    if path == "-":
        if sys.stdin is None:
            raise InputError("standard input is closed", where="stdin")
        descriptor = sys.stdin.fileno()
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UsageError("--follow needs the name of a file", why="standard input is a file", try_="name it instead of -")
        return PipeTail(descriptor, ours=False)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise InputError("no such log", where=path) from error
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise InputError("cannot read the log", where=path, why=why) from error
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISREG(mode):
        return FileTail(path, descriptor)
    if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
        return PipeTail(descriptor, ours=True)
    os.close(descriptor)
    raise InputError("is no file that grows", where=path, try_="name one log file, or - for a pipe")


class FileTail(Tail):
    """A regular file. It never ends by itself: somebody else has to know when the job is over."""

    def __init__(self, path: str, descriptor: int) -> None:
        """Take over ``descriptor``, which is ``path`` opened."""
        self._path = path
        self._descriptor = descriptor
        self._offset = 0
        self._seam = b""
        self._stamp = (0, 0)

    def read(self) -> list[bytes]:
        """Return what was appended since."""
        blocks: list[bytes] = []
        room = PIECE
        while room > 0 and (block := os.read(self._descriptor, min(BLOCK, room))):
            blocks.append(block)
            room -= len(block)
            self._offset += len(block)
            self._seam = (self._seam + block[-SEAM:])[-SEAM:]
        return blocks

    def written_at(self) -> float:
        """Return when the file was last written to."""
        return os.fstat(self._descriptor).st_mtime

    def lost(self) -> str | None:
        """Compare name, size and the last bytes that were read with what there is; a file with no name any more is kept."""
        if self._replaced():
            what = "was replaced"
        else:
            status = os.fstat(self._descriptor)
            stamp = (status.st_size, status.st_mtime_ns)
            if stamp == self._stamp:
                return None
            self._stamp = stamp
            if status.st_size < self._offset:
                what = "was truncated"
            elif os.pread(self._descriptor, len(self._seam), self._offset - len(self._seam)) != self._seam:
                what = "was written anew"
            else:
                return None
            os.lseek(self._descriptor, 0, os.SEEK_SET)
        what = f"{what} after {self._offset} bytes"
        self._offset, self._seam = 0, b""
        return what

    def _replaced(self) -> bool:
        """Turn to the file that has the name now, if it is another one and holds something."""
        try:
            now, then = os.stat(self._path), os.fstat(self._descriptor)
            if (now.st_dev, now.st_ino) == (then.st_dev, then.st_ino) or not (now.st_size and stat.S_ISREG(now.st_mode)):
                return False
            fresh = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:  # the name is gone, the file that we hold is not
            return False
        os.close(self._descriptor)
        self._descriptor = fresh
        return True

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


class PipeTail(Tail):
    """A pipe, a socket or a terminal."""

    def __init__(self, descriptor: int, *, ours: bool) -> None:
        """Read from ``descriptor``, which is closed in the end if it is ``ours``. Nobody else may have read from it."""
        self.waits_on = (descriptor,)
        self._ours = ours
        widen(descriptor)

    def read(self) -> list[bytes]:
        """Return what was written since."""
        blocks: list[bytes] = []
        room = PIECE
        while room > 0 and not self.ended and select.select(self.waits_on, [], [], 0)[0]:
            try:
                block = os.read(self.waits_on[0], min(BLOCK, room))
            except BlockingIOError:  # somebody else was faster
                break
            except OSError:  # a terminal that was hung up
                block = b""
            self.ended = not block
            blocks += [block] if block else []
            room -= len(block)
        return blocks

    def close(self) -> None:
        """Close the pipe, if it is ours."""
        if self._ours:
            with contextlib.suppress(OSError):
                os.close(self.waits_on[0])
