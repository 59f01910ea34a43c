"""Profile a few steps of a running job on a signal."""

from __future__ import annotations

import cProfile
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from receipt_cli.emit.document import Document, attachment

Handler = Callable[[int, FrameType | None], Any] | int | signal.Handlers | None
_TROUBLE = (OSError, RuntimeError, ValueError)


class SignalProfiler:
    """Start a profile after SIGUSR1 and end it after SIGUSR2, at the next call of ``step``, once per step of the loop.

    A signal only sets a flag: the profiler never runs inside a handler. A window ends by itself after ``max_steps`` steps, or
    at the first step after ``max_seconds``; there are at most ``max_windows``. Earlier handlers are called too, and ``close``
    restores them.

    By default cProfile writes the window as ``KIND-STEP.pstats`` into ``folder``. With ``start`` and ``stop`` these functions
    make it (``torch.profiler``'s): ``stop`` receives the path of the artefact to write. Then a line such as
    ``[torch_profile] step=12 trace=PATH`` is printed, and ``attachments`` contains the artefact with its digest.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        start: Callable[[], object] | None = None,
        stop: Callable[[str], object] | None = None,
        kind: str | None = None,
        suffix: str | None = None,
        max_steps: int = 20,
        max_seconds: float = 60.0,
        max_windows: int = 10,
        tell: Callable[[str], object] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if (start is None) is not (stop is None):
            raise ValueError("start and stop must be given together")
        own = _CProfile()
        self._start, self._stop = (start or own.start), (stop or own.stop)
        self._kind = kind or ("cpu_profile" if start is None else "torch_profile")
        if not self._kind.isidentifier() or not self._kind.endswith("_profile"):
            raise ValueError("kind must be an identifier that ends in _profile")
        self._suffix = suffix or (".pstats" if start is None else ".json")
        self._folder = os.fspath(folder)
        self._max_steps = max(1, max_steps)
        self._max_seconds = max_seconds
        self._left = max_windows
        self._tell = _print if tell is None else tell
        self._clock = clock
        self._wanted = False
        self._unwanted = False
        self._since: tuple[int, float] | None = None
        """Step and time at which the window began."""
        self._steps = 0
        self._before: dict[int, Handler] = {}
        self.attachments: list[Document] = []

    def install(self) -> SignalProfiler:
        """Install the signal handlers. Raises ``RuntimeError`` outside the main thread, in which Python cannot set them."""
        if not hasattr(signal, "SIGUSR1"):
            raise RuntimeError("this system has no SIGUSR1")
        if threading.current_thread() is not threading.main_thread():
            raise RuntimeError("install the profiler in the main thread, which handles signals")
        if not self._before:
            for number in (signal.SIGUSR1, signal.SIGUSR2):
                self._before[number] = signal.signal(number, self._note)
        return self

    def step(self, step: int) -> None:
        """Mark the beginning of ``step``; start a requested window, and end one that is over, in this thread."""
        if self._since is not None:
            self._steps += 1
            if self._unwanted or self._steps >= self._max_steps or self._clock() - self._since[1] >= self._max_seconds:
                self._end()
        self._unwanted = False
        if self._wanted:
            self._wanted = False
            if self._since is None and self._left > 0:
                self._left -= 1
                self._begin(step)

    def close(self) -> None:
        """End an open window, and restore the earlier handlers."""
        if self._since is not None:
            self._end()
        for number, handler in self._before.items():
            if signal.getsignal(number) == self._note:  # else a later handler replaced ours, and stays
                signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._before.clear()

    def __enter__(self) -> SignalProfiler:
        return self.install()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGUSR1:
            self._wanted = True
        else:
            self._unwanted = True
        before = self._before.get(number)
        if callable(before):
            before(number, frame)

    def _begin(self, step: int) -> None:
        try:
            self._start()
        except _TROUBLE as error:  # such as another active profiler
            self._tell(f"[{self._kind}] step={step} not begun: {error}")
            return
        self._since, self._steps = (step, self._clock()), 0

    def _end(self) -> None:
        assert self._since is not None
        step, self._since = self._since[0], None
        path = os.path.join(self._folder, f"{self._kind}-{step}{self._suffix}")
        try:
            os.makedirs(self._folder, exist_ok=True)
            self._stop(path)
        except _TROUBLE as error:  # a full disk must not end a training
            self._tell(f"[{self._kind}] step={step} not written: {error}")
            return
        self.attachments.append(attachment(self._kind, path))
        self._tell(f"[{self._kind}] step={step} trace={path}")


class _CProfile:
    """Python's own profiler, one profile per window."""

    def __init__(self) -> None:
        self._profile: cProfile.Profile | None = None

    def start(self) -> None:
        self._profile = cProfile.Profile()
        self._profile.enable()

    def stop(self, path: str) -> None:
        assert self._profile is not None
        self._profile.disable()
        self._profile.dump_stats(path)
        self._profile = None


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
