"""Steps that a log leaves out in the middle of a regular stride."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from receipt_cli.events.phases import Phase
from receipt_cli.problems import Problem

FEWEST = 8
"""Records of one attempt from which its stride can be seen."""
IRREGULAR = 0.1
"""The share of its records that may be further apart than one stride, the first record apart: one may always be."""
BESIDE = 2
"""Rises on either side of a hole that must be of one stride, as far as there are any: a change of the stride is no hole."""


class Hole(NamedTuple):
    """Steps that are missing: the first and the last of them, and how many records."""

    first: int
    last: int
    records: int


def steps_missing(phases: Sequence[Phase]) -> list[Problem]:
    """Return a problem for each phase with steps missing in the middle of its stride: how many, the first and the last."""
    found: list[Problem] = []
    for holes in filter(None, map(_find_holes, phases)):
        count = sum(hole.records for hole in holes)
        places = f" in {len(holes)} places" if len(holes) > 1 else ""
        detail = f"{count} records{places} are missing between regular steps: from step {holes[0].first} to step {holes[-1].last}"
        found.append(Problem("steps_missing", None, detail, ""))
    return found


def _find_holes(phase: Phase) -> list[Hole]:
    """Return the holes between the steps of each attempt of a phase, in log order."""
    holes: list[Hole] = []
    for attempt in phase.attempts:
        steps: list[int] = []
        for event in attempt:
            if event.step is not None:
                steps += [event.step] if event.run is None else [event.step, *event.run.steps.tolist()]
        holes += _between(steps)
    return holes


def _between(steps: Sequence[int]) -> list[Hole]:
    if len(steps) < FEWEST:
        return []
    rises = [after - before for before, after in pairwise(steps[1:])]
    [(stride, count)] = Counter(rises).most_common(1)
    if stride <= 0 or len(rises) - count > max(1, IRREGULAR * len(rises)):
        return []
    return [
        Hole(steps[n + 1] + stride, steps[n + 2] - stride, rise // stride - 1)
        for n, rise in enumerate(rises)
        if rise > stride and rise % stride == 0 and _is_regular(rises, n, stride)
    ]


def _is_regular(rises: Sequence[int], at: int, stride: int) -> bool:
    before, after = rises[max(0, at - BESIDE) : at], rises[at + 1 : at + 1 + BESIDE]
    enough = bool(before and after) and len(before) + len(after) > BESIDE
    return enough and all(rise == stride for rise in (*before, *after))
