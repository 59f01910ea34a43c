"""Run a command: start it, forward its output and our signals, and return its end."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import resource
import select
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from resource import struct_rusage
from typing import NoReturn

import psutil

from receipt_cli.errors import OutputError, ReceiptError
from receipt_cli.io.times_file import TimesWriter
from receipt_cli.wrap.forwarder import GRACE_S, Forwarded, Forwarder, pause_of
from receipt_cli.wrap.orphan import lock
from receipt_cli.wrap.tee import Loss, Outlets, open_outlets

FIRST_S = 0.05
LEAST_S = 1.0
"""Seconds between two samples: ``FIRST_S`` at first, doubled each time up to ``LEAST_S``."""
SHARE = 1000
"""Later pauses between samples, as a multiple of the last sample's CPU time: a thousandth of one core."""
RECENT_S = 30.0
"""Seconds before the end of the command within which an out-of-memory kill is attributed to it."""
_CGROUPS = Path("/sys/fs/cgroup")
_PROC = Path("/proc")
_COUNT = re.compile(rb"^oom_kill (\d+)$", re.MULTILINE)


class Memory:
    """Samples a process and all descendants whose parents are alive."""

    def __init__(self, pid: int, kills: KillCounter) -> None:
        self._root = psutil.Process(pid)
        self._kills = kills
        self._pause = FIRST_S
        self.peak_bytes = 0
        """Largest sum of resident memory in bytes; shared pages count once for each process."""
        self.due = 0.0
        """Time of the next sample, in seconds of the monotonic clock."""

    def look(self) -> None:
        """Sample the sum now."""
        began = time.thread_time()
        total = 0
        try:
            for process in [self._root, *self._root.children(recursive=True)]:
                try:
                    total += process.memory_info().rss
                except psutil.Error:  # it has ended, or belongs to another user
                    continue
        except psutil.Error:
            total = 0
        self.peak_bytes = max(self.peak_bytes, total)
        self._kills.look(self._root.pid)
        settled = self._pause >= LEAST_S
        self.due = time.monotonic() + (max(LEAST_S, SHARE * (time.thread_time() - began)) if settled else self._pause)
        self._pause *= 2


@dataclass(frozen=True, slots=True)
class Kills:
    """The number of out-of-memory kills, and their counter: the ``memory cgroup`` or the ``kernel``."""

    count: int
    counted_by: str


class KillCounter:
    """Kernel counts of out-of-memory kills: in our memory cgroup and the command's.

    Without either cgroup, the count is of the whole machine.
    """

    def __init__(self) -> None:
        self._counts: dict[Path, _Count] = {}
        self._add("self")
        if not self._counts:
            machine = _PROC / "vmstat"
            self._counts[machine] = _Count(_read_count(machine) or 0)

    def look(self, pid: int | None = None) -> None:
        """Update the counts; ``pid`` is a process whose cgroup counts from now on."""
        if pid is not None:
            self._add(str(pid))
        for path, count in self._counts.items():
            count.note(_read_count(path))

    def recent(self) -> Kills | None:
        """Return the kills since the start if their count rose within ``RECENT_S``; else None."""
        self.look()
        latest = time.monotonic() - RECENT_S
        risen = [(path, c) for path, c in self._counts.items() if c.risen_at is not None and c.risen_at >= latest]
        if not risen:
            return None
        path, count = risen[-1]
        return Kills(count.last - count.first, "kernel" if path.name == "vmstat" else "memory cgroup")

    def _add(self, process: str) -> None:
        for path in _cgroup_files(process):
            count = _read_count(path)
            if count is not None:
                self._counts.setdefault(path, _Count(count))
                return


class _Count:
    def __init__(self, first: int) -> None:
        self.first = self.last = first
        self.risen_at: float | None = None

    def note(self, now: int | None) -> None:
        if now is not None and now > self.last:
            self.last = now
            self.risen_at = time.monotonic()


def _cgroup_files(process: str) -> list[Path]:
    """Return possible counter files of a process's memory cgroup: by its path on the machine and inside a container."""
    try:
        lines = (_PROC / process / "cgroup").read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    found: list[Path] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        inside = path.strip("/")
        if not controllers:
            found += [_CGROUPS / inside / "memory.events", _CGROUPS / "memory.events"] if inside else [_CGROUPS / "memory.events"]
        elif "memory" in controllers.split(","):
            own = _CGROUPS / "memory"
            found += [own / inside / "memory.oom_control", own / "memory.oom_control"]
    return found


def _read_count(path: Path) -> int | None:
    try:
        match = _COUNT.search(path.read_bytes())
    except OSError:
        return None
    return int(match[1]) if match else None


PASSED_ON = ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGTSTP", "SIGCONT", "SIGWINCH")
FROM_TERMINAL = ("SIGINT", "SIGQUIT", "SIGTSTP", "SIGHUP")
"""Signals that a terminal sends to its whole foreground group: the command has already received them."""
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
"""Signals that ask for the end. A command may end on them silently and with any exit code, so the log gets a line."""
PATIENCE = 2
"""Requests for the end, after the command has ended, that end us without a receipt."""
_SI_KERNEL = 0x80
"""``si_code`` of a signal sent by the kernel, not by a process (Linux)."""


def passed_on() -> set[signal.Signals]:
    """Return the signals to forward; a signal that our parent ignores stays ignored, also for the command."""
    wanted = {signal.Signals[name] for name in PASSED_ON}
    return {number for number in wanted if signal.getsignal(number) != signal.SIG_IGN} | {signal.SIGCHLD}


class SignalThread(threading.Thread):
    """Waits for signals, which must be blocked in every thread, and forwards them to the process ``pid``.

    SIGCHLD writes a byte to ``waker``; a request for the end becomes a ``remark``; a new terminal size calls ``fit``. After the
    command has ended, the second request for the end calls ``give_up``.
    """

    def __init__(
        self,
        pid: int,
        signals: set[signal.Signals],
        waker: int,
        remark: Callable[[str], None],
        fit: Callable[[], None],
        give_up: Callable[[], None],
    ) -> None:
        super().__init__(name="signals", daemon=True)
        self._pid, self._signals, self._waker = pid, signals, waker
        self._remark, self._fit, self._give_up = remark, fit, give_up
        self._lock = threading.Lock()
        self._asked, self._over = 0, False

    def reap(self) -> tuple[int, struct_rusage] | None:
        """Return wait status and resources of the process if it has ended, else None; its id may be reused after that."""
        with self._lock:  # no signal may go to the next process with this id
            pid, status, usage = os.wait4(self._pid, os.WNOHANG)
            self._over = pid != 0
        return (status, usage) if pid else None

    def run(self) -> None:
        """Forward signals until our own process ends."""
        while True:
            number, by_terminal = _next(self._signals)
            if number == signal.SIGCHLD:
                with contextlib.suppress(OSError):  # the pipe is full, so the reader wakes up anyway
                    os.write(self._waker, b"x")
                continue
            if number == signal.SIGWINCH:
                self._fit()
            with self._lock:
                if self._over:
                    self._asked += number in ENDING
                    if number in ENDING and self._asked >= PATIENCE:
                        self._give_up()
                    continue
                if number in ENDING:
                    self._remark(f"receipt run: {number.name} was sent to the command")
                if not by_terminal:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(self._pid, number)
            if number == signal.SIGTSTP:
                _stop()


def _next(signals: set[signal.Signals]) -> tuple[signal.Signals, bool]:
    """Wait for a signal; return it, and whether a terminal sent it, which then reached the command too."""
    if hasattr(signal, "sigwaitinfo"):
        info = signal.sigwaitinfo(signals)
        number = signal.Signals(info.si_signo)
        return number, number.name in FROM_TERMINAL and info.si_code == _SI_KERNEL
    number = signal.Signals(signal.sigwait(signals))  # macOS does not report the sender
    return number, number.name in FROM_TERMINAL and number != signal.SIGHUP and _in_foreground()


def _in_foreground() -> bool:
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return False


def _stop() -> None:
    """Stop as the signal would have stopped us; no effect in an orphaned process group."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTSTP})
    os.kill(os.getpid(), signal.SIGTSTP)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTSTP})


NOT_FOUND, NOT_RUNNABLE = 127, 126
"""Shell exit statuses for a command that is not found, or that cannot be run."""


HELD_OPEN = "receipt run: a process that the command left behind holds its output open; the log ends here, its output does not"


class NotStarted(ReceiptError):
    """The command could not be started; ``status`` is the exit status that a shell would return."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a command: exit code ``code``, negative for a signal; ``wall_s``, seconds from its start to its end.

    ``peak_rss_bytes`` is None if unknown; ``kills`` are out-of-memory kills around its end; ``loss`` is output missing in
    the log.
    """

    code: int
    wall_s: float
    peak_rss_bytes: int | None
    kills: Kills | None
    loss: Loss | None
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Kept:
    """How the times of the output are kept: in the file ``times``, after those of earlier launches with ``append``; or stamps."""

    times: Path | None
    append: bool
    stamps: bool


def check_command(command: Sequence[str]) -> None:
    """Raise ``NotStarted`` if the command does not exist or is not executable."""
    if shutil.which(command[0]) is not None:
        return
    if os.path.dirname(command[0]) and os.path.exists(command[0]):
        why = errno.EISDIR if os.path.isdir(command[0]) else errno.EACCES
        raise NotStarted(f"{command[0]}: {os.strerror(why)}", NOT_RUNNABLE)
    raise NotStarted(f"{command[0]}: command not found", NOT_FOUND)


def run_job(
    command: Sequence[str],
    log: int,
    give_up: Callable[[int], None],
    note: Path | None,
    looks: Sequence[Callable[[], None]],
    kept: Kept,
) -> Ended:
    """Run ``command``; copy its output to our stdout and stderr and into the descriptor ``log``.

    After it has ended, signals that ask us to end call ``give_up`` with its exit code; they stay blocked. ``note`` records the
    end of the log if we are killed; ``looks`` are called every few seconds while the command runs; ``kept`` says how the times
    of the output are kept. Raises ``NotStarted``.
    """
    lock(log)
    signals = passed_on()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if ignored, the exit status would be lost
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
    times, untimed = _times_of(kept, log, pause_of(outlets.streams), began)
    forwarder = Forwarder(outlets.streams, log, note, times, stamps=kept.stamps)
    memory = Memory(pid, kills)
    ended_at, code, usage = _follow(pid, memory, forwarder, signals, give_up, looks)
    held = forwarder.drain()
    peak = _peak_bytes(usage)  # of one process, a copy of ours before exec: if it is below our own, it may be the copy's
    peak = max(memory.peak_bytes, peak if peak > own_rss else 0)
    recent = kills.recent() if code else None
    if recent is not None:
        forwarder.remark(_on_kills(code, recent))
    if held:
        forwarder.remark(HELD_OPEN)
    forwarded = forwarder.close(held)
    return Ended(code, ended_at - began, peak or None, recent, forwarded.loss, (*untimed, *_notes(forwarded, held)))


def _times_of(kept: Kept, log: int, pause_s: float, began: float) -> tuple[TimesWriter | None, list[str]]:
    """Return what writes the times of the log, and a note if they cannot be written."""
    if kept.times is None:
        return None, []
    wall = time.time() - (time.monotonic() - began)
    try:
        return TimesWriter(str(kept.times), log, append=kept.append, pause_s=pause_s, now=began, wall=wall), []
    except OutputError as error:
        return None, [f"{error.message} ({error.where}): {error.why}"]


def _follow(
    pid: int,
    memory: Memory,
    forwarder: Forwarder,
    signals: set[signal.Signals],
    give_up: Callable[[int], None],
    looks: Sequence[Callable[[], None]],
) -> tuple[float, int, resource.struct_rusage]:
    """Wait for the end of the command; return its time, the exit code and the resources used."""
    wake, waker = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(waker, False)
    code = 0
    signals_thread = SignalThread(pid, signals, waker, forwarder.remark, forwarder.fit, lambda: give_up(code))
    signals_thread.start()
    while True:
        reaped = signals_thread.reap()  # first: its SIGCHLD may have come before we listened
        if reaped is not None:
            code = os.waitstatus_to_exitcode(reaped[0])
            return time.monotonic(), code, reaped[1]
        if time.monotonic() >= memory.due:
            memory.look()
            for look in looks:
                look()
        if select.select([wake], [], [], max(0.0, memory.due - time.monotonic()))[0]:
            os.read(wake, 4096)


def _notes(forwarded: Forwarded, held: bool) -> tuple[str, ...]:
    found = [*forwarded.problems]
    loss = forwarded.loss
    if loss is not None:
        lost = f" (lost: {loss.byte_count} bytes, from byte {loss.first_byte} of the file on)" if loss.byte_count else ""
        found.append(f"the log is not complete: {loss.reason}{lost}")
    if forwarded.late_bytes:
        found.append(f"{forwarded.late_bytes} bytes of output came after the command ended; the log contains them")
    if held:
        found.append(
            f"a process that the command started holds its output open: the log ends {GRACE_S:g} s after the command, and what"
            " that process prints later is only passed on"
        )
    return tuple(found)


def _start(command: Sequence[str], outlets: Outlets, mask: set[signal.Signals | int]) -> int:
    """Start the command with our original environment and signal mask. Raises ``NotStarted``."""
    words = [os.fsencode(word) for word in command]
    environ = inherited_environment()
    answer, report = os.pipe()
    pid = os.fork()  # posix_spawn would leave signals 32 and 33 ignored
    if not pid:
        try:
            _become(words, environ, outlets, mask)
        except (OSError, ValueError) as error:
            number = (error.errno if isinstance(error, OSError) else None) or errno.EINVAL
            os.write(report, str(number).encode())
        finally:
            os._exit(NOT_RUNNABLE)
    os.close(report)
    with open(answer, "rb") as failed:
        told = failed.read()
    if told:
        os.waitpid(pid, 0)
        if int(told) == errno.ENOENT:
            raise NotStarted(f"{command[0]}: command not found", NOT_FOUND)  # or its script's interpreter
        raise NotStarted(f"{command[0]}: {os.strerror(int(told))}", NOT_RUNNABLE)
    return pid


def _become(words: list[bytes], environ: dict[bytes, bytes], outlets: Outlets, mask: set[signal.Signals | int]) -> NoReturn:
    """Replace this process by the command. Raises ``OSError``, and ``ValueError`` for words with a null byte."""
    os.dup2(outlets.stdout, 1)
    os.dup2(outlets.stderr, 2)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores these
        signal.signal(number, signal.SIG_DFL)
    if callable(signal.getsignal(signal.SIGINT)):  # its handler would swallow signals before exec
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    try:
        os.execvpe(words[0], words, environ)
    except OSError as error:
        found = shutil.which(words[0])
        if error.errno != errno.ENOEXEC or found is None:
            raise
        os.execve(b"/bin/sh", [b"/bin/sh", found, *words[1:]], environ)  # as execvp does for a script without an interpreter line


def inherited_environment() -> dict[bytes, bytes]:
    """Return the environment as inherited: Python and our ``main`` have changed it since."""
    try:
        words = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:
        return dict(os.environb)
    return {name: value for name, is_, value in (word.partition(b"=") for word in words) if is_}


def _peak_bytes(usage: resource.struct_rusage) -> int:
    return usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _on_kills(code: int, kills: Kills) -> str:
    """Return a log line about the out-of-memory kills: the log itself cannot show who sent SIGKILL."""
    counted = f"the {kills.counted_by} counted {kills.count} {'kill' if kills.count == 1 else 'kills'} for want of memory"
    if code in (-signal.SIGKILL, 128 + signal.SIGKILL):
        return f"receipt run: the command was killed by SIGKILL, and {counted}"
    return f"receipt run: the command ended with {code}, and {counted}"
