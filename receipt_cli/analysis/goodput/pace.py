"""The pace of a phase: the seconds of a step by the stamps of its records, where no printed times tell more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from receipt_cli.analysis.goodput.attempts import Try, covered, last_clock, steps_in
from receipt_cli.analysis.goodput.legs import Tries
from receipt_cli.analysis.goodput.marked import Placed
from receipt_cli.analysis.goodput.stalls import Ordinary, find_stalls
from receipt_cli.analysis.goodput.tries import paces
from receipt_cli.numeric.statistics import exact_median

ROUNDS = 8
"""Rounds in which stalls are found by a mean that they are left out of: each finds shorter ones, and few are of any size."""
FINE = 10
"""Records that are so many times the grain of their stamps apart have a median; else their mean counts."""


def find_pace(tries: Sequence[Tries], marks: Placed, grain: float) -> float | None:
    """Return the seconds of a step; None where the records have no stamps.

    Only stretches without one of the ``marks`` count. ``grain`` is how many seconds the stamps may be off.
    """
    seconds: list[float] = []
    steps = 0
    for one in tries:
        if not isinstance(one, Try):
            seconds += one.lasting.tolist()
            steps += int((one.steps_in(one.starts, one.stops) - one.leads).sum())
            continue
        seconds.append(last_clock(one.events[-1]) - one.first.clock)
        steps += steps_in(one.events, None, 0) if one.first.step is not None else one.records - 1
        for a, b in pairwise(one.events):
            if id(b) in marks.before:
                seconds.append(last_clock(a) - b.clock)
                steps -= covered(a, b, 1)
        for row in (row for event in one.events for row in marks.rows_of(event)):
            seconds.append(row.before - row.event.clock)
            steps -= row.cover
    if any(map(math.isnan, seconds)):
        return None
    lengths, times = paces(tries, marks)
    length, middle = exact_median(lengths), exact_median(times)
    if length is not None and middle is not None and length >= FINE * grain and middle > 0:
        return middle
    return _mean_pace(tries, marks, grain, math.fsum(seconds), steps)


def _mean_pace(tries: Sequence[Tries], marks: Placed, grain: float, total: float, steps: int) -> float | None:
    """Return the mean seconds of a step, stalls left out: each round finds those that the mean of the one before hid."""
    pace: float | None = None
    for _ in range(ROUNDS):
        found = find_stalls(tries, marks, grain, Ordinary(pace)) if pace is not None else []
        seconds, rest = math.fsum([total, *(-one.span for one in found)]), steps - sum(one.cover for one in found)
        mean = seconds / rest if rest > 0 and seconds > 0 else None
        if mean is None or mean == pace:
            break
        pace = mean
    return pace
