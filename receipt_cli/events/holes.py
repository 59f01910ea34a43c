"""Steps that a log leaves out in the middle of a regular stride."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from receipt_cli.events.model import Event, numbers_of, steps_of
from receipt_cli.events.phases import Phase
from receipt_cli.events.relays import is_relay, lengths_of, starts_of
from receipt_cli.events.rows import LARGE
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
        if attempt and is_relay(attempt[0]):
            holes += _between_each(attempt[0])
            continue
        numbered = [event for event in attempt if event.step is not None]
        if any(event.run is not None for event in numbered) and all(abs(event.step or 0) < LARGE for event in numbered):
            holes += _between_many(numbered)
        else:
            holes += _between([step for event in numbered for step in steps_of(event)])
    return holes


def _between(steps: Sequence[int]) -> list[Hole]:
    if len(steps) < FEWEST:
        return []
    rises = [after - before for before, after in pairwise(steps[1:])]
    stride, count = max(Counter(rises).items(), key=itemgetter(1))  # ``most_common`` loads a module
    if stride <= 0 or len(rises) - count > max(1, IRREGULAR * len(rises)):
        return []
    wider = [n for n, rise in enumerate(rises) if rise > stride and rise % stride == 0]
    return _holes_at(wider, steps, stride)


def _between_each(relay: Event) -> list[Hole]:
    """Do as ``_between`` for each attempt of a relay: most have no other rise than one stride."""
    assert relay.run is not None
    steps, starts, lengths = np.append(relay.step or 0, relay.run.steps), starts_of(relay), lengths_of(relay)
    other = np.zeros(len(steps), np.bool_)  # rises that are not as the one before them
    other[2:] = np.diff(steps, n=2) != 0
    other &= np.arange(len(steps)) - np.repeat(starts, lengths) > 2
    irregular = np.logical_or.reduceat(other, starts)
    places = zip(starts[irregular].tolist(), lengths[irregular].tolist(), strict=True)
    return [hole for start, count in places for hole in _between(steps[start : start + count].tolist())]


def _between_many(records: Sequence[Event]) -> list[Hole]:
    """Do as ``_between`` for records some of which have a run: more than ``FEWEST``."""
    steps = numbers_of(records, lambda event: event.step or 0, lambda run: run.steps)
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


def _holes_at(places: Sequence[int], steps: Sequence[int] | Integers, stride: int) -> list[Hole]:
    """Return the holes of the rises at ``places``, each from one of the ``steps`` after the first to the next."""
    return [
        Hole(int(steps[n + 1]) + stride, int(steps[n + 2]) - stride, int(steps[n + 2] - steps[n + 1]) // stride - 1)
        for n in places
        if _is_regular(steps, n, stride)
    ]


def _is_regular(steps: Sequence[int] | Integers, at: int, stride: int) -> bool:
    before, after = [*range(max(0, at - BESIDE), at)], [*range(at + 1, min(at + 1 + BESIDE, len(steps) - 2))]
    enough = bool(before and after) and len(before) + len(after) > BESIDE
    return enough and all(steps[n + 2] - steps[n + 1] == stride for n in (*before, *after))
