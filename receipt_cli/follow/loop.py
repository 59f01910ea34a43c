"""Follow a job's log from its first byte until the job is over, and show its figures meanwhile at negligible cost."""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from types import FrameType, TracebackType

import psutil

from receipt_cli.analysis.summary import Summary
from receipt_cli.derive import Derivation, Plan, Reading
from receipt_cli.follow.growth import Following, Growth, open_tail
from receipt_cli.receipts.assembly import Document, assemble


@dataclass(frozen=True, slots=True)
class Figures:
    """The results for the first ``size_bytes`` of a log.

    ``document`` is their receipt without a header; ``summary`` is its summary of the current phase (the last one with steps)
    or empty; ``series`` are the metrics of that phase in step order. ``came``: the summary has the times at which the lines
    were read, which the document does not have.
    """

    size_bytes: int
    document: Document
    summary: Mapping[str, object] = field(default_factory=dict)
    series: Mapping[str, Sequence[float]] = field(default_factory=dict)
    came: bool = False

    @property
    def last_step(self) -> int | None:
        """The last step of the current phase."""
        steps = self.summary.get("steps")
        return steps["last"] if isinstance(steps, dict) else None


def figures(derivation: Derivation) -> Figures:
    """Return the figures of a derivation."""
    document = assemble(derivation, run={}, header={})
    running = [i for i, summary in enumerate(derivation.summaries) if summary.record_count]
    size = derivation.log.size_bytes
    if not running:
        return Figures(size, document)
    summary: Summary = derivation.summaries[running[-1]]
    return Figures(size, document, document["phases"][running[-1]]["summary"], summary.series)


def live_figures(growth: Growth) -> Figures:
    """Return the figures of a log that grows; of one without stamps by when its lines were read. Raises ``ReceiptError``."""
    timed = _running(growth.snapshot(timed=True))
    if timed.gathered.arrivals is None:
        return figures(timed.derivation())
    plain = figures(_running(growth.snapshot()).derivation())  # a receipt names no times that are in no file
    return replace(plain, summary=figures(timed.derivation()).summary, came=True)


def _running(reading: Reading) -> Reading:
    return replace(reading, options=replace(reading.options, running=True))


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The state of a followed log.

    ``heard_at`` is the time of the last output, in seconds since 1970; ``step_time_s`` the observed time of a step, or None;
    ``figures`` are None until computed; ``ends`` describes the condition that ends following; ``warnings`` are changes of
    the file.
    """

    name: str
    size_bytes: int
    line_count: int
    heard_at: float | None
    figures: Figures | None
    step_time_s: float | None
    ends: str
    warnings: Sequence[str] = ()


LEAST_S = 0.25
"""Fewest seconds between two updates of the display."""
SHARE = 20
"""Pause between computations of the figures, as a multiple of their last duration: a twentieth of one core."""
SEEN_S = 5.0
"""Seconds of observed steps before their pace is reported."""


class Watch:
    """Keeps the figures of a growing log, which a subclass shows; makes them only after new output."""

    def __init__(self, name: str, ends: str = "", *, share: int = SHARE) -> None:
        """``ends`` describes the condition that ends following; figures take at most one ``share``-th of a core."""
        self.snapshot: Snapshot | None = None
        """What was shown last."""
        self._name, self._ends, self._share = name, ends, share
        self.again()

    def show(self, state: Snapshot) -> None:
        """Replace the displayed state by ``state``."""

    def leave(self, message: str) -> None:
        """Keep the last picture, print ``message`` below it and show nothing more: another program may write there now."""

    def silent(self, seconds: float) -> None:
        """Report ``seconds`` without output."""

    def again(self) -> None:
        """Forget all figures: the log starts over."""
        self._figures: Figures | None = None
        self._heard_at: float | None = None
        self._drawn = self._due = 0.0
        self._waiting = True
        self._paced: list[tuple[float, int]] = []

    def look(self, growth: Growth, came_at: float | None, warnings: Sequence[str], *, hurried: bool = False) -> None:
        """Update the figures of ``growth`` and redraw, each if due.

        ``came_at`` is the time of new output (seconds since 1970), or None; ``hurried``: more output is waiting to be read.
        """
        now = time.monotonic()
        if came_at is not None:
            self._heard_at = came_at
            self._waiting = True
        if not self._waiting or now < self._drawn + LEAST_S:
            return
        behind = growth.size_bytes != (0 if self._figures is None else self._figures.size_bytes)
        if behind and now >= self._due and not hurried:
            self._fold(growth, now)
            behind = False
        self.snapshot = self._seen(growth, warnings)
        self.show(self.snapshot)
        self._drawn = time.monotonic()
        self._waiting = behind

    def _fold(self, growth: Growth, now: float) -> None:
        self._figures = None  # free them first: they hold every value of the run
        self._figures = live_figures(growth)
        done = time.monotonic()
        self._due = done + self._share * (done - now)
        step = self._figures.last_step
        if step is not None and (not self._paced or step < self._paced[-1][1]):
            self._paced = [(now, step)]
        elif step is not None and step > self._paced[-1][1]:
            self._paced = [self._paced[0], (now, step)]

    def _seen(self, growth: Growth, warnings: Sequence[str]) -> Snapshot:
        return Snapshot(
            name=self._name,
            size_bytes=growth.size_bytes,
            line_count=growth.line_count,
            heard_at=self._heard_at,
            figures=self._figures,
            step_time_s=self._pace(),
            ends=self._ends,
            warnings=tuple(warnings),
        )

    def _pace(self) -> float | None:
        """Return the observed seconds per step, or None after less than ``SEEN_S``."""
        if len(self._paced) < 2:
            return None
        (began, first), (ended, last) = self._paced
        return (ended - began) / (last - first) if ended - began >= SEEN_S else None


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


class Process:
    """The process with this id now; a later one with the same id is not taken for it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._found: psutil.Process | None = None
        with suppress(psutil.Error, OverflowError):  # it has ended
            self._found = psutil.Process(pid)

    @property
    def ended(self) -> bool:
        """Whether it has exited, also if nobody has waited for it."""
        with suppress(psutil.Error):
            return self._found is None or not self._found.is_running() or self._found.status() == psutil.STATUS_ZOMBIE
        return True


LOOK_S = 0.25
"""Seconds between two reads of a file."""
REST_S = 0.05
"""Seconds of pause after a short read of a pipe: reading line by line would cost a hundred times as much."""
MUCH = 16 << 10
"""Fewest bytes of a read that is not short."""
SETTLE_S = 0.5
"""Seconds of silence required after the process has exited: another may still write its last output."""
GRACE_S = 10.0
"""Seconds for a pipe's writer to finish after Ctrl-C, which it received too."""
MAX_WARNINGS = 4
WAITING = f"waiting up to {GRACE_S:g} s for the job's last output; Ctrl-C again stops waiting"


@dataclass(frozen=True, slots=True)
class Until:
    """Conditions that end following, besides the end of a pipe and Ctrl-C: seconds without output, an exited process."""

    idle_s: float | None = None
    pid: int | None = None

    def describe(self, path: str) -> str:
        """Return the conditions in words."""
        ways = ["the pipe is closed"] if path == "-" else []
        ways += [f"process {self.pid} exits"] if self.pid is not None else []
        ways += [f"{self.idle_s:g} s pass without output"] if self.idle_s is not None else []
        return f"until {' or '.join(ways)}; Ctrl-C ends it now" if ways else "until Ctrl-C"


def follow(
    path: str,
    plan: Plan,
    until: Until,
    notes: list[str],
    *,
    watch: Watch | None = None,
    workers: int | None = None,
    times: bool = True,
) -> Reading:
    """Return the reading of the log at ``path`` (``-``: stdin) after the job is over, equal to that of the finished log.

    Appends the reason for the end, and changes of the file, to ``notes``. With ``times``, what comes while the file is followed
    gets its time in the file beside it, unless that exists. Must be called in the main thread, which receives signals. Raises
    ``ReceiptError``; ``KeyboardInterrupt`` at the third Ctrl-C.
    """
    tail = open_tail(path)
    pause_s, recorded = REST_S if tail.waits_on else LOOK_S, times and not tail.waits_on
    followed = Following(path, plan, tail, pause_s, workers, timed=times and watch is not None, recorded=recorded)
    with Stop() as stop:
        job = _Job(followed, until, stop)
        with closing(followed):
            job.read(watch)
        notes += job.notes()
        reading = followed.growth.finish(times=times)
        options = replace(reading.options, running=job.left, replaced_bytes=job.lost_bytes)
        return replace(reading, options=options)


class _Job:
    def __init__(self, followed: Following, until: Until, stop: Stop) -> None:
        self.followed, self.until, self.stop = followed, until, stop
        self.process = None if until.pid is None else Process(until.pid)
        self.tail = followed.tail
        self.heard = time.monotonic()
        self.gone: float | None = None
        self.lost: list[str] = []
        self.lost_bytes: int | None = None
        self.over = ""
        self.left = False
        """Whether following a file was stopped, although its job may go on."""

    def read(self, watch: Watch | None) -> None:
        while not self.over and not self.tail.ended:
            self._look_for_loss(watch)
            blocks = self.followed.read()
            much = sum(map(len, blocks)) >= MUCH
            if blocks:
                self.heard = time.monotonic()
            if watch is not None and self.stop.asked:
                watch.leave(WAITING if self.tail.waits_on else "")
                watch = None
            if watch is not None:
                came_at = self.tail.written_at() if blocks else None
                watch.look(self.followed.growth, came_at, self.lost[-MAX_WARNINGS:], hurried=much)
                watch.silent(time.monotonic() - self.heard)
            self.over = self._is_over(bool(blocks))
            if not self.over and not much:
                self._wait(bool(blocks))

    def _look_for_loss(self, watch: Watch | None) -> None:
        """Start over if the file was replaced or rewritten: a receipt describes one file."""
        before = self.followed.growth
        what = self.followed.lost()
        if what is None:
            return
        self.lost.append(f"{before.source.name} {what}: these bytes are left out; the new content is followed")
        self.lost_bytes = (self.lost_bytes or 0) + before.size_bytes
        if watch is not None:
            watch.again()

    def _is_over(self, grew: bool) -> str:
        """Return the reason for the end, "" while the job may go on."""
        now = time.monotonic()
        if self.stop.asked and (not self.tail.waits_on or self.stop.asked > 1 or now - self.stop.since >= GRACE_S):
            self.left = not self.tail.waits_on
            return f"stopped: the receipt covers the {self.followed.growth.size_bytes} bytes read; the job may still run"
        if grew:
            return ""
        if self.process is not None and self.process.ended:
            self.gone = now if self.gone is None else self.gone
            if now - max(self.gone, self.heard) >= SETTLE_S:
                return f"process {self.process.pid} has exited"
        if self.until.idle_s is not None and now - self.heard >= self.until.idle_s:
            return f"no output for {self.until.idle_s:g} s: assumed to have ended"
        return ""

    def _wait(self, grew: bool) -> None:
        if grew and self.tail.waits_on:
            self.stop.wait((), REST_S)
            return
        self.stop.wait(self.tail.waits_on, LOOK_S)

    def notes(self) -> list[str]:
        hidden = len(self.lost) - MAX_WARNINGS
        more = [f"the file had changed {hidden} times before"] if hidden > 0 else []
        return [*self.lost[-MAX_WARNINGS:], *more, *([self.over] if self.over else [])]
