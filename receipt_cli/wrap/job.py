"""Run a command: start it, forward its output and our signals, and return how it ended."""

from __future__ import annotations

import errno
import os
import resource
import select
import shutil
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from receipt_cli.errors import ReceiptError
from receipt_cli.wrap.memory import KillCounter, Kills, Memory
from receipt_cli.wrap.output_streams import Outlets, open_outlets
from receipt_cli.wrap.signals import Relay, passed_on
from receipt_cli.wrap.tee import Log, Tee

PAUSE_S = 0.016
"""Seconds to wait after output before polling again on a terminal: sixty pictures a second."""
LONG_PAUSE_S = 0.04
"""The same without a terminal: ten thousand lines a second are read in twenty-five turns."""
GRACE_S = 3.0
"""Seconds of further reading after the command has ended, where processes that it started keep its output open."""
NOT_FOUND, NOT_RUNNABLE = 127, 126
"""Exit statuses of shells for a command that is not there, or cannot be run."""


class NotStarted(ReceiptError):
    """The command could not be started; ``status`` is the exit status of a shell in that case."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended. ``code`` is its exit code, negative for a signal; ``wall_s`` are seconds from its start to its end.

    ``peak_rss_bytes`` is None where unknown; ``kills`` are the out-of-memory kills around its end.
    """

    code: int
    wall_s: float
    peak_rss_bytes: int | None
    kills: Kills | None
    notes: tuple[str, ...]


def check_command(command: Sequence[str]) -> None:
    """Raise ``NotStarted`` where there is no such command, or it may not be run."""
    if shutil.which(command[0]) is not None:
        return
    if os.path.dirname(command[0]) and os.path.exists(command[0]):
        why = errno.EISDIR if os.path.isdir(command[0]) else errno.EACCES
        raise NotStarted(f"{command[0]}: {os.strerror(why)}", NOT_RUNNABLE)
    raise NotStarted(f"{command[0]}: command not found", NOT_FOUND)


def run_job(command: Sequence[str], log: int, give_up: Callable[[int], None]) -> Ended:
    """Run ``command``; its output goes to our stdout and stderr, and into the descriptor ``log``.

    Once it has ended, signals that request our end call ``give_up`` with its exit code; they stay blocked. Raises
    ``NotStarted``.
    """
    signals = passed_on()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, it would take the exit status with it
    kills = KillCounter()
    own_rss = _peak_bytes(resource.getrusage(resource.RUSAGE_SELF))
    outlets = open_outlets()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    began = time.monotonic()
    try:
        pid = _start(command, outlets, before)
    except BaseException:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        raise
    outlets.started()
    job = _Job(pid, outlets, log, kills, signals, give_up)
    code, usage = job.follow()
    wall = job.ended_at - began
    peak = max(job.memory.peak_bytes, _lower_bound(usage, own_rss))
    recent = kills.recent() if code else None
    if recent is not None:
        job.log.remark(_on_kills(code, recent))
    job.log.end()
    return Ended(code, wall, peak or None, recent, job.notes())


class _Job:
    def __init__(
        self,
        pid: int,
        outlets: Outlets,
        log: int,
        kills: KillCounter,
        signals: set[signal.Signals],
        give_up: Callable[[int], None],
    ) -> None:
        self.memory = Memory(pid, kills)
        self.log = Log(log, len(outlets.streams))
        self.ended_at = 0.0
        self._pid = pid
        self._tee = Tee(outlets.streams, self.log)
        self._code = 0
        self._held_open = False
        self._woken = True  # the news of its end may have come before we listened
        self._pause = PAUSE_S if any(stream.terminal for stream in outlets.streams) else LONG_PAUSE_S
        self._wake, waker = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(waker, False)
        self._watch()
        self._relay = Relay(pid, signals, outlets.streams, waker, self.log.remark, lambda: give_up(self._code))
        self._relay.start()

    def follow(self) -> tuple[int, resource.struct_rusage]:
        """Forward output until the command and its output have ended; return the exit code and the resources used."""
        ended: tuple[int, resource.struct_rusage] | None = None
        while ended is None or self._tee.open:
            if ended is not None and time.monotonic() > self.ended_at + GRACE_S:
                self._held_open = True
                break
            if ended is None and time.monotonic() >= self.memory.due:
                self.memory.look()
                self._woken = True
            ready = self._wait(0.1 if ended is not None else self.memory.due - time.monotonic())
            hurried = self._tee.turn(ready) if ready else True
            self.log.tick()
            if len(self._tee.open) != self._watched:
                self._watch()
            if ended is None and self._woken:
                self._woken = False
                ended = self._reap()
            if not hurried:
                time.sleep(self._pause)
        return ended

    def notes(self) -> tuple[str, ...]:
        """Return the differences from a run without ``receipt``."""
        found = [*self._tee.problems]
        if self.log.problem:
            found.append(f"the log is not complete: {self.log.problem}")
        if self._held_open:
            found.append(f"a process that the command started held its output open: the log ends {GRACE_S:g} s after the command")
        return tuple(found)

    def _watch(self) -> None:
        """Poll the open streams."""
        self._poll = select.poll()
        self._watched = len(self._tee.open)
        for descriptor in (self._wake, *self._tee.open):
            self._poll.register(descriptor, select.POLLIN)

    def _wait(self, seconds: float) -> list[int]:
        """Wait until there is output or a signal, at most so long; return the descriptors of output that are ready."""
        ready = [descriptor for descriptor, _ in self._poll.poll(max(0.0, seconds) * 1000)]
        if self._wake in ready:
            os.read(self._wake, 4096)
            ready.remove(self._wake)
            self._woken = True
        return ready

    def _reap(self) -> tuple[int, resource.struct_rusage] | None:
        """Return the exit code and the resources used once the command has ended."""
        reaped = self._relay.reap()
        if reaped is None:
            return None
        self.ended_at = time.monotonic()
        self._code = os.waitstatus_to_exitcode(reaped[0])
        return self._code, reaped[1]


def _start(command: Sequence[str], outlets: Outlets, mask: set[signal.Signals | int]) -> int:
    """Start the command with our original environment and signal mask. Raises ``NotStarted``."""
    words = [os.fsencode(word) for word in command]
    environ = inherited_environment()

    def spawn(words: list[bytes]) -> int:
        return os.posix_spawnp(
            words[0],
            words,
            environ,
            file_actions=[(os.POSIX_SPAWN_DUP2, outlets.stdout, 1), (os.POSIX_SPAWN_DUP2, outlets.stderr, 2)],
            setsigmask=mask,
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ],  # which the interpreter ignores
        )

    try:
        try:
            return spawn(words)
        except OSError as error:
            found = shutil.which(words[0])
            if error.errno != errno.ENOEXEC or found is None:
                raise
            return spawn([b"/bin/sh", found, *words[1:]])  # as execvp does with a script that does not name its interpreter
    except FileNotFoundError as error:
        raise NotStarted(f"{command[0]}: command not found", NOT_FOUND) from error  # or the interpreter that it names
    except (OSError, ValueError) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise NotStarted(f"{command[0]}: {why}", NOT_RUNNABLE) from error


def inherited_environment() -> dict[bytes, bytes]:
    """Return our original environment: the interpreter and our own ``main`` have added to it since."""
    try:
        words = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:
        return dict(os.environb)
    return {name: value for name, is_, value in (word.partition(b"=") for word in words) if is_}


def _peak_bytes(usage: resource.struct_rusage) -> int:
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _lower_bound(usage: resource.struct_rusage, own: int) -> int:
    """Return the kernel's peak memory of one process of the command; 0 where it proves nothing.

    Before the command starts, its process is a copy of ours: a peak below our own may be that of the copy.
    """
    peak = _peak_bytes(usage)
    return peak if peak > own else 0


def _on_kills(code: int, kills: Kills) -> str:
    """Return a line for the log on the out-of-memory kills: the log itself cannot contain the sender of SIGKILL."""
    counted = f"the {kills.counted_by} counted {kills.count} {'kill' if kills.count == 1 else 'kills'} for want of memory"
    if code in (-signal.SIGKILL, 128 + signal.SIGKILL):
        return f"receipt run: the command was killed by SIGKILL, and {counted}"
    return f"receipt run: the command ended with {code}, and {counted}"
