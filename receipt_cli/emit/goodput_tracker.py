"""Account for the wall time of a running job by milestones and spans, each instant counted once.

Times are whole nanoseconds of a monotonic clock, so sums are exact.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from threading import RLock, local
from typing import Any, NamedTuple
from weakref import WeakSet

EVENTS = ("job", "tpu_init", "training_preparation", "data_loading", "step", "checkpoint", "eval", "compilation")
"""Subjects of milestones; a milestone is one of these, alone or with ``_start`` or ``_end``."""
CATEGORIES = ("step", "compilation", "eval", "checkpoint", "data_loading", "tpu_init", "training_preparation")
"""Categories of spans, by priority if spans of several threads overlap."""
BREAKDOWN = ("step", "checkpoint", "eval", "compilation", "data_loading")
CLASSES: dict[str, tuple[str, ...]] = {
    "checkpoint": ("checkpoint",),
    "eval": ("eval",),
    "compilation": ("compilation",),
    "data_loading": ("data_loading",),
    "initialization": ("tpu_init", "training_preparation"),
    "wasted_progress": (),
    "idle": (),
}
"""Class of lost time in a receipt → categories of spans."""
EVIDENCE = "emit_spans"

_PLACES = {name: place for place, name in enumerate(CATEGORIES)}
_MILESTONES = {event + end for event in EVENTS for end in ("", "_start", "_end")}
_STEP = _PLACES["step"]
_KEPT = 2048
"""Pieces kept before they are summed."""
_NS = 1e9

_Piece = tuple[int, int, int]
"""Start and end in nanoseconds, and index of the category."""


class _Thread:
    """The open spans of a thread, innermost last: (start of the uncounted part, index of the category, start of the span).

    The start of the uncounted part is -1 until the clock was read, and moves to the end of each inner span.
    """

    __slots__ = ("__weakref__", "stack")

    def __init__(self) -> None:
        self.stack: list[list[int]] = []


class _Here(local):
    """This thread's open spans. The tracker refers to them weakly, so that they are freed with the thread."""

    def __init__(self, register: Callable[[_Thread], None]) -> None:
        self.thread = _Thread()
        self.stack = self.thread.stack
        register(self.thread)


class _Span:
    """A category's span, which may be entered repeatedly, inside itself and in several threads at once."""

    __slots__ = ("_category", "_tracker")

    def __init__(self, tracker: GoodputTracker, category: int) -> None:
        self._tracker = tracker
        self._category = category

    def __enter__(self) -> None:
        self._tracker._open(self._category)

    def __exit__(self, *_: object) -> None:
        self._tracker._close(self._category)


class _Totals(NamedTuple):
    """By category: counted nanoseconds, overlapped nanoseconds, ended spans; and the wall time in nanoseconds."""

    counted: Sequence[int]
    overlapped: Sequence[int]
    spans: Sequence[int]
    wall: int


class GoodputTracker:
    """Account for the wall time. A span takes one lock when it ends, and none when it begins.

    In one thread the innermost span gets the time: a ``compilation`` inside a ``step`` is no step time. If spans of several
    threads overlap, the first open one of ``CATEGORIES`` gets the time, and the time of the others is reported as overlapped.
    So the categories never add up to more than the wall. Memory does not grow with the number of spans.

    ``clock_ns`` returns nanoseconds of a monotonic clock.
    """

    def __init__(self, clock_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._clock = clock_ns
        self._lock = RLock()  # a signal handler may interrupt, and ask for the summary
        self._threads: WeakSet[_Thread] = WeakSet()
        self._here = _Here(self._register)
        self._pieces: list[_Piece] = []
        self._summed_to = 0
        self._counted = [0] * len(CATEGORIES)
        self._overlapped = [0] * len(CATEGORIES)
        self._ended = [0] * len(CATEGORIES)
        self._milestones: dict[str, int] = {}
        self._earliest: int | None = None
        self._spans = tuple(_Span(self, place) for place in range(len(CATEGORIES)))

    def record(self, event: str) -> None:
        """Note that ``event`` happens now: a milestone such as ``job_start``; its first time counts (``job_end``: its last).

        ``X_start`` and ``X_end`` of a category also begin and end a span. Raises ``ValueError`` for any other name.
        """
        if event not in _MILESTONES:
            raise ValueError(f"{event!r} is not a milestone; use one of {', '.join(EVENTS)}, alone or with _start or _end")
        category, _, end = event.rpartition("_")
        place = _PLACES.get(category)
        if place is not None and end == "start":
            self._open(place)
        elif place is not None and end == "end" and any(entry[1] == place for entry in self._here.stack):
            self._close(place)
        with self._lock:
            now = self._clock()
            if event == "job_end":
                self._milestones[event] = now
            else:
                self._milestones.setdefault(event, now)
            if self._earliest is None or now < self._earliest:
                self._earliest = now

    def span(self, category: str) -> _Span:
        """Return a context manager for a span of ``category``, one of ``CATEGORIES``. Raises ``ValueError`` for another."""
        try:
            return self._spans[_PLACES[category]]
        except KeyError:
            raise ValueError(f"{category!r} is not a category; use one of {', '.join(CATEGORIES)}") from None

    def compute_goodput(self) -> float:
        """Return the share of the wall time spent in steps, 0 to 1; 0 without a step or wall time.

        The wall lasts from the milestone ``job_start``, else the earliest milestone or span, to ``job_end`` or now.
        """
        totals = self._totals()
        return _goodput(totals)

    def compute_badput_breakdown(self) -> dict[str, float]:
        """Return seconds by category, the rest of the wall time as ``idle`` (at least 0), and ``wall_time``."""
        totals = self._totals()
        seconds = {name: totals.counted[_PLACES[name]] / _NS for name in BREAKDOWN}
        left = totals.wall - sum(totals.counted[_PLACES[name]] for name in BREAKDOWN)
        return {**seconds, "idle": max(0, left) / _NS, "wall_time": totals.wall / _NS}

    def overlapped(self) -> dict[str, float]:
        """Return the seconds of each category that ran beside other work and count nowhere."""
        return {name: ns / _NS for name, ns in zip(CATEGORIES, self._totals().overlapped, strict=True)}

    def summary(self) -> dict[str, float]:
        """Return goodput (4 decimals), wall and step time (2), number of steps and their mean time (4), in seconds."""
        totals = self._totals()
        steps, time_s = totals.spans[_STEP], totals.counted[_STEP] / _NS
        return {
            "goodput": round(_goodput(totals), 4),
            "wall_time_s": round(totals.wall / _NS, 2),
            "step_time_s": round(time_s, 2),
            "step_count": steps,
            "avg_step_s": round(time_s / steps, 4) if steps else 0.0,
        }

    def to_receipt_goodput(self) -> dict[str, Any] | None:
        """Return the ``goodput`` block of a receipt, or None if no time has passed.

        A class without a finished span is unknown (its time is in ``idle``). ``wasted_progress`` is always unknown, because a
        restarted job cannot know it. Spans outside the milestones extend the wall.
        """
        totals = self._totals()
        step = totals.counted[_STEP]
        wall = max(totals.wall, sum(totals.counted))
        if wall <= 0:
            return None
        badput: dict[str, float | None] = {}
        parts: dict[str, dict[str, Any]] = {}
        known = step
        for name, categories in CLASSES.items():
            places = [_PLACES[category] for category in categories]
            count = sum(totals.spans[place] for place in places)
            ns = sum(totals.counted[place] for place in places)
            known += ns if count else 0
            badput[name] = ns / _NS if count else None
            beside = sum(totals.overlapped[place] for place in places) / _NS
            parts[name] = {
                "how": "measured" if count else "unknown",
                "count": count or None,
                "overlapped_s": beside if count else None,
            }
        badput["idle"] = (wall - known) / _NS
        parts["idle"] = {"how": "inferred", "count": None, "overlapped_s": None}
        return {
            "goodput_ratio": step / wall,
            "wall_time_s": wall / _NS,
            "step_time_s": step / _NS,
            "badput_s": badput,
            "evidence": EVIDENCE,
            "rule": "goodput/1",
            "phase": None,
            "step_evidence": EVIDENCE,
            "parts": parts,
        }

    def _register(self, thread: _Thread) -> None:
        with self._lock:
            self._threads.add(thread)

    def _open(self, category: int) -> None:
        entry = [-1, category, 0]
        self._here.stack.append(entry)  # before the clock is read: a concurrent sum sees the span, or is done
        entry[2] = begun = self._clock()
        entry[0] = begun

    def _close(self, category: int) -> None:
        stack = self._here.stack
        with self._lock:
            end = self._clock()
            place = len(stack) - 1
            while place >= 0 and stack[place][1] != category:  # spans may end out of order, as in coroutines
                place -= 1
            if place < 0:
                raise RuntimeError(f"no span of {CATEGORIES[category]} is open in this thread: end it where it began")
            entry = stack[place]
            inner = stack[place + 1][2] if place + 1 < len(stack) else end
            if place:
                outer = stack[place - 1]
                self._keep(outer[0], entry[2], outer[1])
                outer[0] = inner
            self._keep(entry[0], inner, category)
            del stack[place]
            self._ended[category] += 1
            if self._earliest is None or entry[2] < self._earliest:
                self._earliest = entry[2]
            if len(self._pieces) >= _KEPT:
                self._sum_up(end)

    def _keep(self, start: int, end: int, category: int) -> None:
        if start < self._summed_to:
            start = self._summed_to
        if start < end:
            self._pieces.append((start, end, category))

    def _totals(self) -> _Totals:
        with self._lock:
            now = self._clock()
            self._sum_up(now)
            start = self._milestones.get("job_start", self._earliest)
            wall = 0 if start is None else max(0, self._milestones.get("job_end", now) - start)
            return _Totals(tuple(self._counted), tuple(self._overlapped), tuple(self._ended), wall)

    def _sum_up(self, now: int) -> None:
        """Count all finished pieces and, up to ``now``, the open spans. The caller holds the lock."""
        for thread in self._threads:
            entries = [tuple(entry) for entry in tuple(thread.stack) if entry[0] >= 0]
            ends = [begun for _, _, begun in entries[1:]]
            for (start, category, begun), end in zip(entries, [*ends, now], strict=False):
                self._keep(start, end, category)
                if self._earliest is None or begun < self._earliest:
                    self._earliest = begun
        self._summed_to = max(self._summed_to, now)
        pieces, self._pieces = self._pieces, []
        if not _in_a_row(pieces):
            _sweep(pieces, self._counted, self._overlapped)
            return
        counted = self._counted
        for start, end, category in pieces:
            counted[category] += end - start


def _goodput(totals: _Totals) -> float:
    return min(1.0, totals.counted[_STEP] / totals.wall) if totals.wall > 0 else 0.0


def _in_a_row(pieces: Sequence[_Piece]) -> bool:
    last = 0
    for start, end, _ in pieces:
        if start < last:
            return False
        last = end
    return True


def _sweep(pieces: Sequence[_Piece], counted: list[int], overlapped: list[int]) -> None:
    """Count each instant for the first open category; the time of other open ones is overlapped."""
    edges = sorted([(start, 1, category) for start, _, category in pieces] + [(end, -1, category) for _, end, category in pieces])
    opened = [0] * len(counted)
    before = 0
    for at, change, category in edges:
        if at > before:
            passed, taken = at - before, False
            for place, count in enumerate(opened):
                if count and not taken:
                    taken, count = True, count - 1
                    counted[place] += passed
                overlapped[place] += count * passed
            before = at
        opened[category] += change
