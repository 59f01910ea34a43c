"""Treat Ctrl-C and SIGTERM as requests to end, handled between two pieces of work, or at once while idle."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Sequence
from types import FrameType, TracebackType

PATIENCE = 3
"""Number of signals after which the program ends at once, without a receipt."""


class Stop:
    """Counts requests to end; a context manager for the main thread.

    ``asked`` is their number, ``since`` the time of the first, in seconds of the monotonic clock. A signal that our parent
    ignores stays ignored. The third raises ``KeyboardInterrupt``.
    """

    def __init__(self) -> None:
        self.asked = 0
        self.since = 0.0

    def __enter__(self) -> Stop:
        self._wake, self._waker = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(self._waker, False)
        self._woken = signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        wanted = [s for s in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(s) != signal.SIG_IGN]
        self._before = {number: signal.signal(number, self._ask) for number in wanted}
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._woken)
        os.close(self._wake)
        os.close(self._waker)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        self.asked += 1
        if self.asked == 1:
            self.since = time.monotonic()
        if self.asked >= PATIENCE:
            raise KeyboardInterrupt

    def wait(self, descriptors: Sequence[int], seconds: float) -> None:
        """Wait until one of ``descriptors`` is readable or a signal arrives, at most ``seconds``."""
        ready, _, _ = select.select([*descriptors, self._wake], [], [], max(0.0, seconds))
        if self._wake in ready:
            os.read(self._wake, 4096)
