"""Decide when to compute and show the figures of a followed log, at negligible cost."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from receipt_cli.analysis.summary import Summary
from receipt_cli.derive import Derivation, Reading
from receipt_cli.follow.growth import Growth
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
