"""Run a command: start it, forward its output and our signals, and return its end."""

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
from typing import NoReturn

from receipt_cli.errors import ReceiptError
from receipt_cli.wrap.forwarder import GRACE_S, Forwarded, Forwarder
from receipt_cli.wrap.memory import KillCounter, Kills, Memory
from receipt_cli.wrap.orphan import lock
from receipt_cli.wrap.output_streams import Outlets, open_outlets
from receipt_cli.wrap.signals import SignalThread, passed_on
from receipt_cli.wrap.tee import Loss

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
    note: Path | None = None,
    look: Callable[[], None] | None = None,
) -> Ended:
    """Run ``command``; copy its output to our stdout and stderr and into the descriptor ``log``.

    After it has ended, signals that ask us to end call ``give_up`` with its exit code; they stay blocked. ``note`` records the
    end of the log if we are killed; ``look`` is called every few seconds while the command runs. Raises ``NotStarted``.
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
    forwarder = Forwarder(outlets.streams, log, note)
    memory = Memory(pid, kills)
    ended_at, code, usage = _follow(pid, memory, forwarder, signals, give_up, look)
    held = forwarder.drain()
    peak = _peak_bytes(usage)  # of one process, a copy of ours before exec: if it is below our own, it may be the copy's
    peak = max(memory.peak_bytes, peak if peak > own_rss else 0)
    recent = kills.recent() if code else None
    if recent is not None:
        forwarder.remark(_on_kills(code, recent))
    if held:
        forwarder.remark(HELD_OPEN)
    forwarded = forwarder.close(held)
    return Ended(code, ended_at - began, peak or None, recent, forwarded.loss, _notes(forwarded, held))


def _follow(
    pid: int,
    memory: Memory,
    forwarder: Forwarder,
    signals: set[signal.Signals],
    give_up: Callable[[int], None],
    look: Callable[[], None] | None,
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
            if look is not None:
                look()
        if select.select([wake], [], [], max(0.0, memory.due - time.monotonic()))[0]:
            os.read(wake, 4096)


def _notes(forwarded: Forwarded, held: bool) -> tuple[str, ...]:
    """Return the differences from a run without ``receipt``."""
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
