"""A separate process that copies the command's output, so that processes left behind by the command keep their output.

It runs in another session, ignores signals, and ends with the output. ``receipt run`` may return or be killed before.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from receipt_cli.errors import OutputError
from receipt_cli.io.pipe import widen
from receipt_cli.io.times_file import TimesWriter
from receipt_cli.wrap.orphan import add_loss, lock
from receipt_cli.wrap.tee import ROOM, Log, Loss, Outlet, Stamps, Tee

PAUSE_S = 0.016
"""Seconds to wait after output before polling a terminal again: sixty updates a second."""
LONG_PAUSE_S = 0.04
"""``PAUSE_S`` without a terminal: ten thousand lines a second take twenty-five reads."""
GRACE_S = 3.0
"""Seconds to keep logging after the command has ended, if processes that it started hold its output open."""
_REMARK, _FIT, _ENDED, _CLOSE = b"R", b"F", b"E", b"C"


@dataclass(frozen=True, slots=True)
class Forwarded:
    """Result of copying the output. ``late_bytes`` were logged after the command ended; ``loss`` is None for a complete log."""

    late_bytes: int
    problems: tuple[str, ...]
    loss: Loss | None


class Forwarder:
    """Starts the copying process for ``streams`` and the descriptor ``log``, which belong to it from then on.

    If ``receipt run`` is killed, the process adds to the file ``note`` whether the log is complete. ``times`` is told when each
    piece of the log came; with ``stamps`` they are put into the log.
    """

    def __init__(
        self, streams: Sequence[Outlet], log: int, note: Path | None, times: TimesWriter | None, *, stamps: bool
    ) -> None:
        self._socket, theirs = socket.socketpair()
        self._lock = threading.Lock()
        self._pid = os.fork()
        if not self._pid:
            try:
                _be_alone(
                    {
                        log,
                        theirs.fileno(),
                        *([] if times is None else [times.descriptor]),
                        *(stream.source for stream in streams),
                    },
                    {stream.target for stream in streams},
                )
                Copying(streams, log, theirs, note, times, stamps).run()
                os._exit(0)
            finally:
                os._exit(1)
        theirs.close()
        os.close(log)
        if times is not None:
            os.close(times.descriptor)
        for stream in streams:
            stream.close()
        self._answers = self._socket.makefile("rb")

    def remark(self, line: str) -> None:
        """Write a line of our own after the current line of the log; thread-safe."""
        self._send(_REMARK + line.encode())

    def fit(self) -> None:
        """Set the size of the command's terminals to ours."""
        self._send(_FIT)

    def drain(self) -> bool:
        """Wait until the ended command's output is copied; return whether another process still holds it open."""
        self._send(_ENDED)
        return self._answers.readline() == b"held\n"

    def close(self, held: bool) -> Forwarded:
        """Close the log and return what was lost of it.

        Wait for the copying process to end, unless another program has the command's output open (``held``; see ``drain``).
        """
        self._send(_CLOSE)
        answer = self._answers.readline()
        if not held:
            os.waitpid(self._pid, 0)
        if not answer:
            return Forwarded(0, (), Loss("the process that writes it ended early", None, None))
        found = json.loads(answer)
        loss = found["loss"]
        return Forwarded(found["late_bytes"], tuple(found["problems"]), None if loss is None else Loss(**loss))

    def _send(self, message: bytes) -> None:
        with self._lock, contextlib.suppress(OSError):  # it was killed: ``close`` reports that
            self._socket.sendall(message + b"\n")


def pause_of(streams: Sequence[Outlet]) -> float:
    """Return the seconds to wait after output: what comes meanwhile is read together."""
    return PAUSE_S if any(stream.terminal for stream in streams) else LONG_PAUSE_S


def _be_alone(descriptors: set[int], targets: set[int]) -> None:
    """Begin a session, and close unneeded descriptors: a process that waits for their end would wait for us."""
    os.setsid()  # shields us from the terminal's signals and the end of its session
    os.chdir("/")
    null = os.open(os.devnull, os.O_RDWR)
    for standard in range(3):
        if standard not in targets:
            os.dup2(null, standard)
    for name in os.listdir("/dev/fd"):
        if int(name) > 2 and int(name) not in descriptors:
            with contextlib.suppress(OSError):  # the descriptor of the listing itself
                os.close(int(name))


class Copying:
    """Copies until every stream has ended; writes the log until ``control``, if there is one, tells to close it."""

    def __init__(
        self,
        streams: Sequence[Outlet],
        log: int,
        control: socket.socket | None,
        note: Path | None,
        times: TimesWriter | None,
        stamps: bool,
    ) -> None:
        self._streams, self._descriptor, self._note, self._times = streams, log, note, times
        self.log = Log(log, len(streams), times, Stamps() if stamps else None)
        self.tee = Tee(streams, self.log)
        self._control = control
        self._heard = b""
        self._pause = pause_of(streams)
        self._ended_at: float | None = None
        self._idle_bytes: int | None = None
        """Bytes read until the streams were first empty after the end of the command."""
        self._drained = False

    def run(self) -> None:
        """Copy output, and answer ``receipt run``, if it has started us."""
        while self.tee.open or (self._control is not None and not self.log.closed):
            poll = select.poll()
            for descriptor in self.tee.open:
                poll.register(descriptor, select.POLLIN)
            if self._control is not None:
                poll.register(self._control, select.POLLIN)
            ready = [descriptor for descriptor, _ in poll.poll(self._patience_ms())]
            if self._control is not None and self._control.fileno() in ready:
                self._listen(self._control)
            hurried = self.tee.turn(ready)
            self.log.tick()
            if self._times is not None:
                self._times.tick(time.monotonic())
            if self._ended_at is not None:
                self._settle(self._ended_at, any(descriptor in ready for descriptor in self.tee.open))
            elif ready and not hurried and self.tee.open:
                time.sleep(self._pause)
        if self.log.closed:
            return
        os.dup(self._descriptor)  # the lock of the log lasts until the note is whole
        self._close()
        if self._note is not None:  # no receipt run is left to ask
            add_loss(self._note, None if self.log.loss is None else asdict(self.log.loss))

    def _close(self) -> None:
        """Close the log, and then the file of its times, which has the end of the command if it is known."""
        self.log.close()
        if self._times is not None:
            self._times.close(time.monotonic() if self._ended_at is None else self._ended_at)
            if self._times.problem:
                self.tee.problems.append(f"the times of the log are not complete: {self._times.problem}")

    def _patience_ms(self) -> int | None:
        if self._ended_at is not None and not self._drained:
            return 20
        if self.log.waiting:
            return 100
        return 1000 if self._times is not None and self._times.waiting else None

    def _settle(self, ended_at: float, busy: bool) -> None:
        """Report that the output has ended, or that it goes on after ``GRACE_S``."""
        if not busy and self._idle_bytes is None:
            self._idle_bytes = self.tee.read_bytes
        if not self._drained and (not self.tee.open or time.monotonic() > ended_at + GRACE_S):
            self._drained = True
            self._answer(b"held" if self.tee.open else b"ended")

    def _listen(self, control: socket.socket) -> None:
        data = control.recv(65536)
        if not data:  # receipt run has ended or was killed
            self._control = None
            self._ended_at = None
            return
        *lines, self._heard = (self._heard + data).split(b"\n")
        for line in lines:
            kind, text = line[:1], line[1:]
            if kind == _REMARK:
                self.log.remark(text.decode())
            elif kind == _FIT:
                for stream in self._streams:
                    stream.fit()
            elif kind == _ENDED:
                self._ended_at = time.monotonic()
            elif kind == _CLOSE:
                self._close()
                loss = self.log.loss
                late = 0 if self._idle_bytes is None else self.tee.read_bytes - self._idle_bytes
                found = Forwarded(late, tuple(self.tee.problems), loss)
                self._answer(json.dumps(asdict(found)).encode())

    def _answer(self, line: bytes) -> None:
        if self._control is not None:
            with contextlib.suppress(OSError):
                self._control.sendall(line + b"\n")


_ASK_FOR_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def copy_input(log: int, times: Path | None, *, append: bool, stamps: bool) -> tuple[Loss | None, list[str]]:
    """Copy stdin until it ends; return what the log lacks, and notes.

    Signals that ask for the end are ignored: the program before us in the pipe gets them too, and its last output is wanted.
    Raises ``OutputError`` if the times cannot be written.
    """
    lock(log)
    for number in _ASK_FOR_END:
        signal.signal(number, signal.SIG_IGN)
    widen(0)
    os.set_blocking(0, False)
    writer = None
    if times is not None:
        now, wall = time.monotonic(), time.time()
        writer = TimesWriter(str(times), log, append=append, pause_s=LONG_PAUSE_S, now=now, wall=wall)
    copying = Copying([Outlet(0, 1, False, ROOM)], log, None, None, writer, stamps)
    copying.run()
    if writer is not None and writer.problem:
        raise OutputError("cannot write the times", where=str(times), why=writer.problem)
    return copying.log.loss, copying.tee.problems
