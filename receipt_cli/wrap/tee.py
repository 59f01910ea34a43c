"""The command's output: into the log and on to where it was going, byte for byte."""

from __future__ import annotations

import errno
import os
import re
import select
import time
from collections import deque
from collections.abc import Sequence

from receipt_cli.wrap.output_streams import Outlet

ROOM = 1 << 18
"""Bytes that are read at once at most."""
FULL = 0.5
"""Share of what a stream can hold from which on the next turn follows at once: else the command would soon have to wait."""
HELD = 1 << 16
"""Bytes of a line without an end that are kept back at most."""
HELD_S = 1.0
"""Seconds for which a line without an end is kept back at most."""

_TERMINAL_PIECE = 4095
"""Bytes that a terminal gives at a time (Linux); fewer are all that it has."""


class Log:
    """The log file, with remarks of ours on lines of their own.

    Where two streams come to it, each one's lines stay whole: a line waits until it has its end.
    """

    def __init__(self, descriptor: int, streams: int) -> None:
        self._descriptor = descriptor
        self._held = [bytearray() for _ in range(streams)]
        self._since = [0.0] * streams
        self._remarks: deque[bytes] = deque()
        self.problem = ""
        """Why the log is not written any more; empty while it is."""

    def remark(self, line: str) -> None:
        """Have a line of ours written once the line that is being written has ended; any thread may."""
        self._remarks.append(f"{line}\n".encode())

    def write(self, stream: int, data: memoryview) -> None:
        """Append what came on a stream."""
        if len(self._held) == 1:
            self._append(data)
            return
        held, text = self._held[stream], bytes(data)
        end = max(text.rfind(b"\n"), text.rfind(b"\r", 0, len(text) - 1)) + 1
        if end:
            self._append(memoryview(bytes(held) + text[:end]))
            held.clear()
            text = text[end:]
        if not held:
            self._since[stream] = time.monotonic()
        held += text
        if len(held) > HELD:
            self._release(stream)

    def tick(self) -> None:
        """Write what has been kept back for long."""
        now = time.monotonic()
        for stream, held in enumerate(self._held):
            if held and now - self._since[stream] > HELD_S:
                self._release(stream)

    def end(self) -> None:
        """Write all that was kept back, and the remarks that are left."""
        for stream in range(len(self._held)):
            self._release(stream)
        if self._remarks and not self.problem:
            size = os.fstat(self._descriptor).st_size
            fresh = not size or os.pread(self._descriptor, 1, size - 1) == b"\n"
            self._put(memoryview((b"" if fresh else b"\n") + self._said()))

    def _release(self, stream: int) -> None:
        self._append(memoryview(bytes(self._held[stream])))
        self._held[stream].clear()

    def _append(self, data: memoryview) -> None:
        """Write to the file, remarks between the first two lines that are ended by a line feed or begun by a return."""
        if self._remarks and (found := re.search(rb"\n|(?=\r[^\n])", data)):
            self._put(data[: found.end()])
            self._put(memoryview((b"" if found[0] else b"\n") + self._said()))
            data = data[found.end() :]
        self._put(data)

    def _said(self) -> bytes:
        return b"".join(self._remarks.popleft() for _ in range(len(self._remarks)))

    def _put(self, data: memoryview) -> None:
        """Write to the file; after a failure never again, since a log with a hole in it would tell of another run."""
        while data and not self.problem:
            try:
                data = data[os.write(self._descriptor, data) :]
            except OSError as error:
                self.problem = error.strerror or str(error)


class Tee:
    """Reads the streams of a command, and knows when they have ended."""

    def __init__(self, streams: Sequence[Outlet], log: Log) -> None:
        self._streams = streams
        self._log = log
        self._room = bytearray(ROOM)
        self.problems: list[str] = []
        """What could not be passed on, and why."""

    @property
    def open(self) -> list[int]:
        """The descriptors that may still give something."""
        return [outlet.source for outlet in self._streams if outlet.source >= 0]

    def turn(self, ready: Sequence[int]) -> bool:
        """Take what there is from the descriptors that are ``ready``; tell whether more is to be expected at once."""
        hurried = False
        for number, outlet in enumerate(self._streams):
            if outlet.source >= 0 and outlet.source in ready:
                hurried |= self._take(number, outlet) >= min(FULL * outlet.capacity, ROOM)
        return hurried

    def _take(self, number: int, outlet: Outlet) -> int:
        with memoryview(self._room) as room:
            filled, ended = _fill(outlet.source, room, outlet.terminal)
            if filled:
                self._log.write(number, room[:filled])
                self._pass_on(outlet, room[:filled])
        if ended:
            outlet.close()
        return filled

    def _pass_on(self, outlet: Outlet, data: memoryview) -> None:
        while data and outlet.target >= 0:
            try:
                data = data[os.write(outlet.target, data) :]
            except BlockingIOError:  # whoever started us shares a descriptor that does not wait
                select.select([], [outlet.target], [])
            except OSError as error:
                outlet.target = -1
                if error.errno == errno.EPIPE:  # the reader has gone: so it is for the command, too
                    outlet.close()
                else:
                    self.problems.append(f"output was not passed on to the end: {error.strerror or error}")


def _fill(source: int, room: memoryview, terminal: bool) -> tuple[int, bool]:
    """Read into ``room`` what there is; return how much, and whether that was the end."""
    filled = 0
    while filled < len(room):
        try:
            count = os.readv(source, [room[filled:]])
        except BlockingIOError:
            return filled, False
        except OSError as error:
            if error.errno != errno.EIO:  # what a terminal says once nobody can write to it
                raise
            count = 0
        if not count:
            return filled, True
        filled += count
        if not terminal or count < _TERMINAL_PIECE:
            break
    return filled, False
