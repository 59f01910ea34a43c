"""Launches that may be attempts, and attempts that may be launches: what was read, and what speaks against it.

Also steps that a log leaves out in the middle of a regular stride.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from receipt_cli.events.launches import END, Launch
from receipt_cli.events.model import Event, expand, is_relay, lengths_of, starts_of
from receipt_cli.events.phases import Phase
from receipt_cli.events.rows import LARGE
from receipt_cli.events.table import EventTable
from receipt_cli.numeric.array_types import Integers
from receipt_cli.numeric.spill import rises
from receipt_cli.problems import MAX_FIELDS, Problem

KIND = "launch_doubtful"
_SPREAD = ("min", "max", "mean", "median")


def doubtful_launches(launch: Launch, phases: Sequence[Phase]) -> list[Problem]:
    """Return a problem for a launch that only its records show, and for each phase whose steps began anew otherwise."""
    found: list[Problem] = []
    if launch.doubtful is not None:
        firsts = [(index, next(iter(phase.steps), None)) for index, phase in enumerate(phases)]
        undecided = tuple(field for index, first in firsts if first is not None for field in _fields(index, first))[:MAX_FIELDS]
        detail = "read as a new launch: steps restart with different records, but no program start is logged"
        found.append(Problem(KIND, launch.doubtful, detail, "", (), (), undecided))
    detail = "read as the same launch: steps restart after a catchable error or with overlapping timestamps"
    found += [Problem(KIND, line, detail, "", (), (), (*_undecided(phases, line),)[:MAX_FIELDS]) for line in launch.contested]
    for index, phase in enumerate(phases):
        begins = [attempt[0] for attempt in phase.attempts if attempt and attempt[0].position is not None]
        standing = [event for attempt in phase.attempts[:-1] for event in attempt]
        if not phase.superseded or not begins:
            continue
        alone = sum(event.records for event in standing) <= 1
        if begins[-1].line in launch.contested:
            continue
        before: dict[float, float] = {}
        for place, loss in _losses(sorted(phase.superseded, key=attrgetter("at"))):
            before.setdefault(place, loss)
        again = [(place, loss) for place, loss in islice(_losses(phase.attempts[-1]), len(before)) if place in before]
        pairs = [(loss, before[place]) for place, loss in again]
        # no two runs from one checkpoint print losses at one step that differ by more than half of the larger
        if pairs and all(a != b if alone else 2 * abs(a - b) > max(abs(a), abs(b)) for a, b in pairs):
            detail = f"read as another attempt of one launch, but from {_named(begins[-1])} on all losses differ"
            fields = (
                [field for event in standing for field in _fields(index, event)]
                if alone
                else [*_figures(index, begins[-1], _SPREAD)]
            )
            lines = tuple(event.line for event in (*standing, begins[-1]))
            found.append(Problem(KIND, begins[-1].line, detail, "", lines if fields else (), (), tuple(fields)))
    return found


def _fields(index: int, first: Event) -> Iterator[str]:
    """Yield the figures of a phase that depend on whether its ``first`` record is of the attempt that stands behind it."""
    yield f"/phases/{index}/summary/steps/first"
    yield from _figures(index, first, ("first", *_SPREAD))


def _undecided(phases: Sequence[Phase], line: int) -> Iterator[str]:
    """Yield the figures that depend on what the steps are that begin anew at ``line``.

    Where they replace all records before them they are those of the last launch, too; records at the time of others are
    of another process, and either may be the one that counts.
    """
    for index, phase in enumerate(phases):
        first = next(iter(phase.steps), None)
        if first is not None and first.line < line <= phase.steps[-1].last_line:
            yield from _fields(index, first)
        anew = next((event for event in (*phase.steps, *phase.superseded) if event.line == line), None)
        if anew is not None and any(other.line < line and other.clock > anew.clock for other in phase.superseded):
            yield from _figures(index, anew, ("first", "last", *_SPREAD))


def _figures(index: int, event: Event, keys: Sequence[str]) -> Iterator[str]:
    """Yield the pointers of these statistics of each metric of an event."""
    for name in event.metrics:
        yield from (f"/phases/{index}/summary/metrics/{name}/{key}" for key in keys)


def _named(event: Event) -> str:
    return f"epoch {event.position:g}" if event.step is None else f"step {event.step}"


def _losses(events: Iterable[Event]) -> Iterator[tuple[float, float]]:
    """Yield place and loss of each record that prints both."""
    for record in chain.from_iterable(map(expand, events)):
        if record.position is not None and "loss" in record.metrics:
            yield record.position, record.metrics["loss"]


def carry_doubts(whole: Sequence[Launch], parts: Sequence[list[Launch]]) -> None:
    """Mark the first launch of each part of a log that the whole log showed to be doubtful; none of parts side by side."""
    if any(one[0].line >= other[0].line for one, other in pairwise(parts)):
        return
    doubts = [launch.doubtful for launch in whole if launch.doubtful is not None]
    for part, after in zip(parts[1:], [*(part[0].line for part in parts[2:]), END], strict=True):
        found = next((line for line in doubts if part[0].line <= line < after), None)
        part[0] = part[0]._replace(doubtful=found)


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
        return [
            Hole(int(steps[n + 1]) + stride, int(steps[n + 2]) - stride, int(steps[n + 2] - steps[n + 1]) // stride - 1)
            for n in places
            if int(steps[n + 2] - steps[n + 1]) % stride == 0 and _is_regular(steps, n, stride)
        ]
    return []


def _is_regular(steps: Integers, at: int, stride: int) -> bool:
    before, after = [*range(max(0, at - BESIDE), at)], [*range(at + 1, min(at + 1 + BESIDE, len(steps) - 2))]
    enough = bool(before and after) and len(before) + len(after) > BESIDE
    return enough and all(steps[n + 2] - steps[n + 1] == stride for n in (*before, *after))
