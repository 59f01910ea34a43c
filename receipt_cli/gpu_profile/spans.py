"""The exact length of a union of intervals, in bounded memory."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from receipt_cli.numeric.array_types import Integers
from receipt_cli.numeric.column import Cells

_GATHERED = 1 << 20
"""Intervals collected before overlapping ones are joined."""
_SINGLE = 1 << 13
"""Single intervals collected before they are added together."""
_KEPT = 1 << 21
"""Most intervals in memory; more become a sorted run, which goes to a file if memory is short."""
_STRETCH = 1 << 18
"""Intervals read at once from a run during merging."""


class _Run(NamedTuple):
    """Ordered intervals that do not overlap: int64 [n] each."""

    starts: Cells[int]
    ends: Cells[int]


class Spans:
    """A union of integer intervals. ``first`` and ``last`` are its ends, None if it is empty."""

    def __init__(self) -> None:
        self.first: int | None = None
        self.last: int | None = None
        self._gathered: list[tuple[Integers, Integers]] = []
        self._count = 0
        self._kept: tuple[Integers, Integers] | None = None
        self._runs: list[_Run] = []
        self._starts, self._ends = array("q"), array("q")

    def add(self, starts: Integers, ends: Integers) -> None:
        """Add intervals, int64 [n] each; ``ends`` are not before ``starts``."""
        if not len(starts):
            return
        self.first, self.last = _chosen(self.first, int(starts.min()), min), _chosen(self.last, int(ends.max()), max)
        self._gathered.append((starts, ends))
        self._count += len(starts)
        if self._count >= _GATHERED:
            self._fold()

    def add_one(self, start: int, end: int) -> None:
        """Add one interval, as ``add`` does."""
        self.first, self.last = _chosen(self.first, start, min), _chosen(self.last, end, max)
        self._starts.append(start)
        self._ends.append(end)
        if len(self._starts) >= _SINGLE:
            self._take_single()

    def absorb(self, other: Spans) -> None:
        """Add the intervals of ``other``, which must not be used any more."""
        other._take_single()
        self.first, self.last = _chosen(self.first, other.first, min), _chosen(self.last, other.last, max)
        self._gathered += other._gathered + ([other._kept] if other._kept is not None else [])
        self._count += other._count
        self._runs += other._runs

    def total(self) -> int:
        """Return the length of the union."""
        self._take_single()
        self._fold()
        kept = [] if self._kept is None else [_Run(*map(Cells.of, self._kept))]
        return _merged_total([*self._runs, *kept])

    def _take_single(self) -> None:
        starts, ends = np.array(self._starts, np.int64), np.array(self._ends, np.int64)
        del self._starts[:], self._ends[:]
        self.add(starts, ends)

    def _fold(self) -> None:
        parts = self._gathered + ([self._kept] if self._kept is not None else [])
        self._gathered, self._count = [], 0
        if not parts:
            return
        self._kept = _union(np.concatenate([part[0] for part in parts]), np.concatenate([part[1] for part in parts]))
        if len(self._kept[0]) > _KEPT:
            self._spill(*self._kept)
            self._kept = None

    def _spill(self, starts: Integers, ends: Integers) -> None:
        run = _Run(Cells("q"), Cells("q"))
        run.starts.extend(Cells.of(starts))
        run.ends.extend(Cells.of(ends))
        self._runs.append(run)


def _chosen(one: int | None, other: int | None, choose: Callable[[int, int], int]) -> int | None:
    return other if one is None else one if other is None else choose(one, other)


def _union(starts: Integers, ends: Integers) -> tuple[Integers, Integers]:
    """Return the same union as ordered intervals that do not overlap."""
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(ends[order])
    begins = np.ones(len(starts), np.bool_)
    begins[1:] = starts[1:] > reach[:-1]
    closes = np.ones(len(starts), np.bool_)
    closes[:-1] = begins[1:]
    return starts[begins], reach[closes]


def _merged_total(runs: list[_Run]) -> int:
    """Return the length of the union of ``runs``, read in parts."""
    places, total, reach = [0] * len(runs), 0, None
    views = [(run.starts.whole(), run.ends.whole()) for run in runs]
    while any(place < len(starts) for place, (starts, _) in zip(places, views, strict=True)):
        cuts = [int(starts[min(place + _STRETCH, len(starts)) - 1]) for place, (starts, _) in zip(places, views, strict=True)
                if place < len(starts)]  # fmt: skip
        until = [int(np.searchsorted(starts, min(cuts), "right")) for starts, _ in views]
        taken = [(starts[a:b], ends[a:b]) for (starts, ends), a, b in zip(views, places, until, strict=True) if b > a]
        places = [max(a, b) for a, b in zip(places, until, strict=True)]
        starts, ends = _union(np.concatenate([part[0] for part in taken]), np.concatenate([part[1] for part in taken]))
        if reach is not None:
            starts, ends = np.maximum(starts, reach), np.maximum(ends, reach)
        total += int((ends - starts).sum())
        reach = int(ends[-1])
    return total
