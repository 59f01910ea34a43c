"""Copy the command's output, read from pipes or terminals, to the log and to its target, byte for byte."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import select
import stat
import sys
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from receipt_cli.io.pipe import widen
from receipt_cli.io.times_file import TimesWriter

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


ROOM = 1 << 18
"""Most bytes read at once."""
FULL = 0.5
"""Share of a stream's capacity from which the next read follows at once, so that the command need not wait."""
HELD = 1 << 16
"""Most bytes of an unfinished line that are held back."""
HELD_S = 1.0
"""Most seconds for which an unfinished line is held back."""

_TERMINAL_PIECE = 4095
"""Most bytes that a terminal returns at a time (Linux); after fewer it is empty."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Output missing in the log: the reason, the file offset of the first lost byte, and the number of lost bytes.

    The numbers are None if nobody counted.
    """

    reason: str
    first_byte: int | None
    byte_count: int | None


class Stamps:
    """Puts a time stamp before each record of a log: before each line, and before each redraw of one."""

    def __init__(self) -> None:
        """Begin after a line end, or in an empty log."""
        self._fresh = True
        self._lag = time.time() - time.monotonic()

    def put(self, data: bytes | memoryview, now: float) -> bytes:
        """Return ``data``, which came at ``now``, with the stamps."""
        moment = datetime.fromtimestamp(now + self._lag, UTC)
        stamp = f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03}Z ".encode()
        text = bytes(data)
        begins = stamp if self._fresh and text[:1] not in (b"", b"\n", b"\r") else b""
        self._fresh = text[-1:] in (b"\n", b"\r") if text else self._fresh
        return begins + _BEGINS.sub(lambda found: found[0] + stamp, text)


_BEGINS = re.compile(rb"[\n\r](?=[^\n\r])")


class Log:
    """The log file, with remarks of our own on separate lines.

    With two streams, their lines stay whole: an unfinished line waits for its end. ``times`` is told when each piece came;
    ``stamps`` are put into the log.
    """

    def __init__(self, descriptor: int, streams: int, times: TimesWriter | None = None, stamps: Stamps | None = None) -> None:
        self._descriptor = descriptor
        self._times, self._stamps = times, stamps
        self._held = [bytearray() for _ in range(streams)]
        self._since = [0.0] * streams
        self._latest = [0.0] * streams
        self._remarks: deque[bytes] = deque()
        self.problem = ""
        """The reason why the log is no longer written, "" while it is."""
        self.closed = False
        self._first_lost = 0
        self._lost = 0

    @property
    def waiting(self) -> bool:
        """Whether unfinished lines are held back."""
        return any(self._held)

    @property
    def loss(self) -> Loss | None:
        """Output missing in the log; None for a complete log."""
        return Loss(self.problem, self._first_lost, self._lost) if self.problem else None

    def remark(self, line: str) -> None:
        """Write a line of our own after the current line of the log; thread-safe."""
        self._remarks.append(f"{line}\n".encode())

    def write(self, stream: int, data: memoryview) -> None:
        """Append output of a stream; ignored after the log was closed."""
        if self.closed:
            return
        now = time.monotonic()
        if len(self._held) == 1:
            self._append(data, now)
            return
        held, text = self._held[stream], bytes(data)
        end = max(text.rfind(b"\n"), text.rfind(b"\r", 0, len(text) - 1)) + 1
        if end:
            self._release(stream)
            self._append(memoryview(text[:end]), now)
            text = text[end:]
        if not held:
            self._since[stream] = now
        self._latest[stream] = now
        held += text
        if len(held) > HELD:
            self._release(stream)

    def tick(self) -> None:
        """Write unfinished lines held back for longer than ``HELD_S``."""
        now = time.monotonic()
        for stream, held in enumerate(self._held):
            if held and now - self._since[stream] > HELD_S:
                self._release(stream)

    def end(self) -> None:
        """Write all held-back output and the last remarks."""
        for stream in range(len(self._held)):
            self._release(stream)
        if self._remarks and not self.problem:
            size = os.fstat(self._descriptor).st_size
            fresh = not size or os.pread(self._descriptor, 1, size - 1) == b"\n"
            self._put(memoryview((b"" if fresh else b"\n") + self._said()), time.monotonic())

    def close(self) -> None:
        """End the log and close its file; some file systems report a failed write only then."""
        if self.closed:
            return
        self.end()
        self.closed = True
        size = os.fstat(self._descriptor).st_size
        try:
            os.close(self._descriptor)
        except OSError as error:
            self._fail(error, size)

    def _release(self, stream: int) -> None:
        self._append(memoryview(bytes(self._held[stream])), self._latest[stream])
        self._held[stream].clear()

    def _append(self, data: memoryview, now: float) -> None:
        """Write to the file, with remarks at the first line end or carriage return."""
        if self._remarks and not self.problem and (found := re.search(rb"\n|(?=\r[^\n])", data)):
            self._put(data[: found.end()], now)
            self._put(memoryview((b"" if found[0] else b"\n") + self._said()), now)
            data = data[found.end() :]
        self._put(data, now)

    def _said(self) -> bytes:
        return b"".join(self._remarks.popleft() for _ in range(len(self._remarks)))

    def _put(self, data: memoryview, now: float) -> None:
        """Write to the file; never again after a failure, because a log with a hole would describe another run."""
        if self._stamps is not None:
            data = memoryview(self._stamps.put(data, now))
        while data and not self.problem:
            try:
                written = os.write(self._descriptor, data)
            except OSError as error:
                self._fail(error, os.fstat(self._descriptor).st_size)
                break
            if self._times is not None:
                self._times.add(data[:written], now)
            data = data[written:]
        self._lost += len(data)

    def _fail(self, error: OSError, at: int) -> None:
        self.problem = self.problem or error.strerror or str(error)
        self._first_lost = at


class Tee:
    """Reads the streams of a command until they end."""

    def __init__(self, streams: Sequence[Outlet], log: Log) -> None:
        self._streams = streams
        self._log = log
        self._room = bytearray(ROOM)
        self.problems: list[str] = []
        """Failures to forward output."""
        self.read_bytes = 0
        """Bytes of output read so far."""

    @property
    def open(self) -> list[int]:
        """Descriptors that may have more output."""
        return [outlet.source for outlet in self._streams if outlet.source >= 0]

    def turn(self, ready: Sequence[int]) -> bool:
        """Read the descriptors that are ``ready``; return whether more output is expected at once."""
        hurried = False
        for number, outlet in enumerate(self._streams):
            if outlet.source >= 0 and outlet.source in ready:
                hurried |= self._take(number, outlet) >= min(FULL * outlet.capacity, ROOM)
        return hurried

    def _take(self, number: int, outlet: Outlet) -> int:
        with memoryview(self._room) as room:
            filled, ended = _fill(outlet.source, room, outlet.terminal)
            if filled:
                self.read_bytes += filled
                self._log.write(number, room[:filled])
                self._pass_on(outlet, room[:filled])
        if ended:
            outlet.close()
        return filled

    def _pass_on(self, outlet: Outlet, data: memoryview) -> None:
        while data and outlet.target >= 0:
            try:
                data = data[os.write(outlet.target, data) :]
            except BlockingIOError:  # our parent shares a non-blocking descriptor
                select.select([], [outlet.target], [])
            except OSError as error:
                outlet.target = -1
                if error.errno == errno.EPIPE:  # the reader has gone: the command must notice
                    outlet.close()
                else:
                    self.problems.append(f"output was passed on only in part: {error.strerror or error}")


def _fill(source: int, room: memoryview, terminal: bool) -> tuple[int, bool]:
    """Read the available bytes into ``room``; return their number, and whether the stream has ended."""
    filled = 0
    while filled < len(room):
        try:
            count = os.readv(source, [room[filled:]])
        except BlockingIOError:
            return filled, False
        except OSError as error:
            if error.errno != errno.EIO:  # a terminal's error if no writer is left
                raise
            count = 0
        if not count:
            return filled, True
        filled += count
        if not terminal or count < _TERMINAL_PIECE:
            break
    return filled, False
