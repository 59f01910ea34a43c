"""Streams for the output of the command: a pipe or pseudo-terminal for each target of our own output."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from dataclasses import dataclass

from receipt_cli.io.pipe import widen

_SMALL = 1 << 16
"""Capacity in bytes of a terminal, and of a pipe with unknown capacity."""


@dataclass(slots=True)
class Outlet:
    """One stream of the command's output: ``source`` is read and forwarded to ``target``; -1 if closed.

    ``capacity`` is the number of bytes that the command can write before it has to wait for us.
    """

    source: int
    target: int
    terminal: bool
    capacity: int

    def fit(self) -> None:
        """Set the size of the command's terminal to ours."""
        import termios

        if self.terminal and self.source >= 0 and self.target >= 0:
            with contextlib.suppress(OSError, termios.error):
                termios.tcsetwinsize(self.source, termios.tcgetwinsize(self.target))

    def close(self) -> None:
        """Stop reading: from now on the command's writes fail, as for a pipe whose reader has gone."""
        if self.source >= 0:
            os.close(self.source)
        self.source = -1


@dataclass(frozen=True, slots=True)
class Outlets:
    """The streams of a command, and the descriptors for its stdout and stderr."""

    streams: tuple[Outlet, ...]
    stdout: int
    stderr: int

    def started(self) -> None:
        """Close our copies of the command's descriptors, so that the end of its output can be read."""
        for descriptor in {self.stdout, self.stderr}:
            os.close(descriptor)


def hold_standard_streams() -> None:
    """Open the null device for each missing stdin, stdout and stderr, so that none of our files gets their numbers."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number


def open_outlets(stdout: int = 1, stderr: int = 2) -> Outlets:
    """Return a stream each for stdout and stderr, or one for both if ours are the same file.

    One stream keeps the order of writes to both. If ours is a terminal, the command gets one too. Raises ``OSError``.
    """
    out, write_out = _outlet(stdout)
    if _same(stdout, stderr):
        return Outlets((out,), write_out, write_out)
    error, write_error = _outlet(stderr)
    return Outlets((out, error), write_out, write_error)


def _outlet(target: int) -> tuple[Outlet, int]:
    """Return a stream that is forwarded to ``target``, and the descriptor to write to."""
    terminal = os.isatty(target)
    if terminal:
        source, write = os.openpty()
        _pass_unchanged(write)
    else:
        source, write = os.pipe()
        widen(source)
    os.set_blocking(source, False)
    capacity = _SMALL
    if not terminal and sys.platform == "linux":
        import fcntl

        capacity = fcntl.fcntl(source, fcntl.F_GETPIPE_SZ)
    outlet = Outlet(source, target, terminal, capacity)
    outlet.fit()
    return outlet, write


def _pass_unchanged(terminal: int) -> None:
    """Turn off a terminal's output processing: our terminal already adds carriage returns."""
    import termios

    attributes = termios.tcgetattr(terminal)
    attributes[1] &= ~termios.OPOST
    termios.tcsetattr(terminal, termios.TCSANOW, attributes)


def _same(one: int, other: int) -> bool:
    """Return whether two descriptors refer to one file at the same position."""
    try:
        a, b = os.fstat(one), os.fstat(other)
        if (a.st_dev, a.st_ino, a.st_rdev) != (b.st_dev, b.st_ino, b.st_rdev):
            return False
        return not stat.S_ISREG(a.st_mode) or os.lseek(one, 0, os.SEEK_CUR) == os.lseek(other, 0, os.SEEK_CUR)
    except OSError:
        return False
