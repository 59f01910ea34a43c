"""Report launches that may be attempts and attempts that may be launches, with the reading chosen and the evidence against it.
Also report steps that are missing in the middle of a regular stride."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np

from receipt_cli.events.launches import END, Launch
from receipt_cli.events.phases import Phase
from receipt_cli.events.table import NO_STEP, EventTable, Row, at_rows, before_in, losses_of, mask_of, where
from receipt_cli.numeric.array_types import Integers
from receipt_cli.numeric.spill import rises
from receipt_cli.problems import MAX_FIELDS, Problem

KIND = "launch_doubtful"
_MODEL = {"parameter_count": "/header/model/parameter_count", "model_name": "/header/model/architecture"}
_SPREAD = ("min", "max", "mean", "median")


def doubtful_launches(launch: Launch, phases: Sequence[Phase]) -> list[Problem]:
    """Return a problem for a launch that only its records show, and for each doubtful restart in its phases."""
    found: list[Problem] = []
    if launch.doubtful is not None:
        firsts = [(index, phase.steps[0]) for index, phase in enumerate(phases) if len(phase.steps)]
        undecided = tuple(field for index, first in firsts for field in _fields(index, first))[:MAX_FIELDS]
        detail = "read as a new launch: steps restart with different records, but no program start is logged"
        found.append(Problem(KIND, launch.doubtful, detail, "", (), (), undecided))
    detail = "read as the same launch: steps restart after a catchable error or with overlapping timestamps"
    found += [Problem(KIND, line, detail, "", (), (), (*_undecided(phases, line),)[:MAX_FIELDS]) for line in launch.contested]
    for index, phase in enumerate(phases):
        firsts_of = phase.steps.chosen(phase.starts)
        placed = np.flatnonzero(~np.isnan(firsts_of.positions))
        superseded = phase.superseded
        if not len(superseded) or not len(placed):
            continue
        begin, last = firsts_of[int(placed[-1])], phase.last_attempt
        standing = phase.steps[: len(phase.steps) - len(last)]
        if begin.line in launch.contested:
            continue
        before: dict[float, float] = {}
        lowest, highest = np.fmin.reduce(last.positions, initial=math.inf), np.fmax.reduce(last.positions, initial=-math.inf)
        for place, loss in losses_of(superseded):
            if lowest <= place <= highest:
                before.setdefault(place, loss)
        pairs = [(loss, before[place]) for place, loss in islice(losses_of(last), len(before)) if place in before]
        # no two runs from one checkpoint print losses at one step that differ by more than half of the larger
        alone = len(standing) <= 1
        if pairs and all(a != b if alone else 2 * abs(a - b) > max(abs(a), abs(b)) for a, b in pairs):
            detail = f"read as another attempt of one launch, but from {_named(begin)} on all losses differ"
            fields = [field for row in standing for field in _fields(index, row)] if alone else [*_figures(index, begin, _SPREAD)]
            lines = tuple(row.line for row in (*(standing if alone else ()), begin))
            found.append(Problem(KIND, begin.line, detail, "", lines if fields else (), (), tuple(fields)))
    return found


def withhold_models(events: EventTable, phases: Sequence[Phase]) -> list[Problem]:
    """Remove facts of the model that lines before and after the steps of a run state differently; return the problems.

    In a log of several runs a line between two of them is about either: a program may print its model after its training.
    """
    found: list[Problem] = []
    spans = [phase.steps.line_span for phase in phases if phase.steps]
    if not spans:
        return found
    first, last = min(first for first, _ in spans), max(last for _, last in spans)
    said = [*events.of_sources(lambda source: source.speaks)]
    for name, field in _MODEL.items():
        ahead = [row for row in said if name in row.facts and row.line < first]
        behind = [row for row in said if name in row.facts and row.line > last]
        if ahead and behind and (one := ahead[0].facts[name]) != (other := behind[-1].facts[name]):
            for phase in phases:
                phase.facts.pop(name, None)
            detail = f"lines before and after the steps print different values of {name}; either may be that of another run"
            lines, values = (ahead[0].line, behind[-1].line), (f"{one}", f"{other}")
            found.append(Problem(KIND, lines[0], detail, "", lines, values, (field,)))
    return found


def _fields(index: int, first: Row) -> Iterator[str]:
    """Yield pointers to the figures of a phase that depend on whether its ``first`` record belongs to it."""
    yield f"/phases/{index}/summary/steps/first"
    yield from _figures(index, first, ("first", *_SPREAD))


def _undecided(phases: Sequence[Phase], line: int) -> Iterator[str]:
    """Yield pointers to the figures that depend on whether the steps that begin anew at ``line`` are a restart.

    If these records supersede all before them, the last launch counts either way. Records printed at the time of others are of
    another process, and either process may be the one that counts.
    """
    for index, phase in enumerate(phases):
        if len(phase.steps) and phase.steps[0].line < line <= int(phase.steps.line[-1]):
            yield from _fields(index, phase.steps[0])
        anew = np.flatnonzero(phase.every.line == line)
        others = phase.superseded
        if len(anew) and ((others.line < line) & (others.clock > phase.every.clock[anew[0]])).any():
            yield from _figures(index, phase.every[int(anew[0])], ("first", "last", *_SPREAD))


def _figures(index: int, row: Row, keys: Sequence[str]) -> Iterator[str]:
    """Yield pointers to the statistics ``keys`` of each metric that ``row`` prints, in the summary of phase ``index``."""
    for name in row.metrics:
        yield from (f"/phases/{index}/summary/metrics/{name}/{key}" for key in keys)


def _named(row: Row) -> str:
    return f"epoch {row.metrics['epoch']:g}" if row.step is None else f"step {row.step}"


def carry_doubts(whole: Sequence[Launch], parts: Sequence[list[Launch]]) -> None:
    """Mark the first launch of each part of a log as doubtful if the whole log showed it to be; not if parts overlap."""
    if any(one[0].line >= other[0].line for one, other in pairwise(parts)):
        return
    doubts = [launch.doubtful for launch in whole if launch.doubtful is not None]
    for part, after in zip(parts[1:], [*(part[0].line for part in parts[2:]), END], strict=True):
        found = next((line for line in doubts if part[0].line <= line < after), None)
        part[0] = part[0]._replace(doubtful=found)


FEWEST = 8
"""Fewest records of an attempt that show its stride."""
IRREGULAR = 0.1
"""Share of the distances in an attempt that may differ from its stride; one may always differ."""
BESIDE = 2
"""Distances on each side of a hole that must be one stride, if there are so many: a new stride is no hole."""


class Hole(NamedTuple):
    """Steps that are missing: the first, the last, and the number of missing records."""

    first: int
    last: int
    records: int


def steps_missing(phases: Sequence[Phase]) -> list[Problem]:
    """Return a problem for each phase with missing steps in the middle of its stride: how many, the first and the last."""
    found: list[Problem] = []
    for holes in filter(None, map(_find_holes, phases)):
        count = sum(hole.records for hole in holes)
        places = f" in {len(holes)} places" if len(holes) > 1 else ""
        detail = f"{count} records{places} are missing between regular steps: from step {holes[0].first} to step {holes[-1].last}"
        found.append(Problem("steps_missing", None, detail, ""))
    return found


def _find_holes(phase: Phase) -> list[Hole]:
    """Return the gaps in the step numbers of each attempt of a phase, in log order."""
    known = where(mask_of(len(phase.steps), lambda part: phase.steps.step[part] != NO_STEP))
    starts, steps = np.unique(before_in(known, phase.starts)), at_rows(phase.steps.step, known)
    if not len(steps):
        return []
    ends = np.append(starts[1:], len(steps))
    long = ends - starts >= FEWEST
    bounds = zip(starts[long].tolist(), ends[long].tolist(), strict=True)
    return [hole for first, end in bounds for hole in _between(steps[first:end])]


def _between(steps: Integers) -> list[Hole]:
    """Return the holes between the steps of one attempt; its first rise may be another, as after a resume."""
    count = len(steps) - 2
    # the rise of the majority is the median of at least one piece
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
