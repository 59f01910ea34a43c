"""Forward signals to the command, once each."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from resource import struct_rusage

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
        self._pid = pid
        self._signals = signals
        self._waker = waker
        self._remark = remark
        self._fit = fit
        self._give_up = give_up
        self._asked = 0
        self._lock = threading.Lock()
        self._over = False

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
                    self._ask(number)
                    continue
                if number in ENDING:
                    self._remark(f"receipt run: {number.name} was sent to the command")
                if not by_terminal:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(self._pid, number)
            if number == signal.SIGTSTP:
                _stop()

    def _ask(self, number: signal.Signals) -> None:
        if number in ENDING:
            self._asked += 1
            if self._asked >= PATIENCE:
                self._give_up()


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
