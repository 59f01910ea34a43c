"""Steps that a log leaves out in the middle of a regular stride."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from receipt_cli.events.model import Event, is_relay, lengths_of, starts_of
from receipt_cli.events.phases import Phase
from receipt_cli.events.rows import LARGE
from receipt_cli.events.table import EventTable
from receipt_cli.numeric.array_types import Integers
from receipt_cli.numeric.spill import rises
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
        steps = EventTable([event for event in attempt if event.step is not None and abs(event.step) < LARGE]).step
        several = bool(attempt) and is_relay(attempt[0])
        holes += [hole for each in (_irregular(attempt[0], steps) if several else [steps]) for hole in _between(each)]
    return holes


def _irregular(relay: Event, steps: Integers) -> Iterator[Integers]:
    """Yield the steps of each attempt of a relay that has another rise than one stride."""
    starts, lengths = starts_of(relay), lengths_of(relay)
    other = np.zeros(len(steps), np.bool_)  # rises that are not as the one before them
    other[2:] = np.diff(steps, n=2) != 0
    other &= np.arange(len(steps)) - np.repeat(starts, lengths) > 2
    irregular = np.logical_or.reduceat(other, starts)
    yield from (steps[start : start + count] for start, count in zip(starts[irregular], lengths[irregular], strict=True))


def _between(steps: Integers) -> list[Hole]:
    if len(steps) < FEWEST:
        return []
    count = len(steps) - 2
    # what most of all rises are is in the middle of those of some piece
    likely = dict.fromkeys(int(np.partition(each, len(each) // 2)[len(each) // 2]) for _, each in rises(steps[1:]))
    for stride in likely:
        other = sum(int(np.count_nonzero(each != stride)) for _, each in rises(steps[1:]))
        if stride <= 0 or other > max(1, IRREGULAR * count):
            continue
        places = [first + at for first, each in rises(steps[1:]) for at in np.flatnonzero(each > stride).tolist()]
        return _holes_at([at for at in places if int(steps[at + 2] - steps[at + 1]) % stride == 0], steps, stride)
    return []


def _holes_at(places: Sequence[int], steps: Integers, stride: int) -> list[Hole]:
    """Return the holes of the rises at ``places``, each from one of the ``steps`` after the first to the next."""
    return [
        Hole(int(steps[n + 1]) + stride, int(steps[n + 2]) - stride, int(steps[n + 2] - steps[n + 1]) // stride - 1)
        for n in places
        if _is_regular(steps, n, stride)
    ]


def _is_regular(steps: Integers, at: int, stride: int) -> bool:
    before, after = [*range(max(0, at - BESIDE), at)], [*range(at + 1, min(at + 1 + BESIDE, len(steps) - 2))]
    enough = bool(before and after) and len(before) + len(after) > BESIDE
    return enough and all(steps[n + 2] - steps[n + 1] == stride for n in (*before, *after))
