"""The types of ``goodput/1``: how the wall time of a run is divided."""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

GOODPUT_RULE = "goodput/1"
CLASSES = ("checkpoint", "eval", "compilation", "data_loading", "initialization", "wasted_progress", "idle")
GPU_IDLE = "gpu_idle"
"""The class of steps in which no GPU did anything, before ``idle``; only of runs whose GPUs were sampled."""
OF_COMMAND = "receipt_run"
"""Evidence of a wall time that ``receipt run`` measured around its command."""
How = Literal["measured", "inferred", "unknown"]


class Wall(NamedTuple):
    """Wall time that a caller states: seconds, a slug of its evidence, and the phase that it is of (None: the run)."""

    seconds: float
    evidence: str
    phase: str | None = None


@dataclass(frozen=True, slots=True)
class Part:
    """One class of lost time: ``seconds``, None if ``how`` is unknown, in ``count`` spans. ``overlapped_s`` more ran beside other
    work and are no part of them; None if unknown."""

    seconds: float | None
    how: How
    count: int | None = None
    overlapped_s: float | None = None


@dataclass(frozen=True, slots=True)
class Stall:
    """A silence between two step records that their steps do not explain: the lines of both, and its seconds."""

    after_line: int
    line_number: int
    duration_s: float


DOUBTFUL = 0.05
"""Share of the gaps beyond which long ones are no exception: slow steps may be among them."""
FEW = 1
"""Long gaps that are an exception in a log of any length."""
LISTED = 10
"""Most stalls that are listed."""


def is_doubtful(stalls: int, gaps: int) -> bool:
    """Return whether long gaps are so frequent that slow steps may be among them."""
    return stalls > max(FEW, DOUBTFUL * gaps)


@dataclass(frozen=True, slots=True)
class Stalls:
    """The stalls of a run. ``doubtful``: so many gaps are long that slow steps may be among them."""

    count: int
    total_s: float
    doubtful: bool
    longest: Sequence[Stall]

    @classmethod
    def of(cls, stalls: Sequence[Stall], *, doubtful: bool) -> Stalls:
        """Return the number of the stalls, their seconds, and the longest in order."""
        longest = heapq.nsmallest(LISTED, stalls, key=lambda stall: (-stall.duration_s, stall.line_number))
        return cls(len(stalls), math.fsum(stall.duration_s for stall in stalls), doubtful, longest)


class Range(NamedTuple):
    """Least and greatest goodput that the evidence allows; ``low`` is None if nothing gives a lower bound."""

    low: float | None
    high: float


class Goodput(NamedTuple):
    """The wall time and its parts in seconds; ``parts`` by class, in the order of ``CLASSES``, and ``GPU_IDLE``.
    ``stalls`` is None if the step records have no stamps."""

    goodput_ratio: float
    wall_time_s: float
    step_time_s: float
    evidence: str
    phase: str | None
    step_evidence: str
    parts: Mapping[str, Part]
    range: Range
    stalls: Stalls | None


@dataclass(slots=True)
class _Class:
    seconds: list[float] = field(default_factory=list)
    overlapped: list[float] = field(default_factory=list)
    count: int = 0
    inferred: bool = False
    shared: bool = False
    dark: bool = False


class Tally:
    """Adds up the lost time of each class. If one span is unknown, so is its class: a part would pass for the whole."""

    def __init__(self, grain: float = 0.0) -> None:
        """``grain``: seconds by which stamps may be off. Spans whose sum is below zero by more than that prove nothing."""
        self._grain = grain
        self._classes: dict[str, _Class] = {}

    def add(
        self, name: str, *seconds: float, measured: bool, overlapped: float = 0.0, count: int = 1, shared: bool = False
    ) -> None:
        """Add spans to a class; ``overlapped``: further seconds of them, which ran beside other work.
        ``shared``: another class may have a share of their time; if the class then has no time at all, it is unknown."""
        entry = self._classes.setdefault(name, _Class())
        entry.seconds += seconds
        entry.count += count
        entry.inferred |= not measured
        entry.shared |= shared
        if overlapped > 0:
            entry.overlapped.append(overlapped)

    def miss(self, name: str) -> None:
        """Note a span of unknown length."""
        self._classes.setdefault(name, _Class()).dark = True

    def part(self, name: str) -> Part:
        """Return the sum of a class."""
        entry = self._classes.get(name)
        if entry is None or entry.dark or not entry.seconds:
            return Part(None, "unknown")
        total = math.fsum(entry.seconds)
        if total < -self._grain * entry.count or (entry.shared and total <= 0):
            return Part(None, "unknown")
        beside = math.fsum(entry.overlapped) if entry.overlapped else None
        return Part(max(0.0, total), "inferred" if entry.inferred else "measured", entry.count, beside)
