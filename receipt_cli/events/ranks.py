"""Choose the leading rank of a run where several print the same steps, and report the figures of each."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from operator import attrgetter, itemgetter
from typing import NamedTuple

import numpy as np

from receipt_cli.events.model import Event, expand, rule_of
from receipt_cli.events.rows import STEP_TIME, RowRun, count_distinct, is_memory, steps_among
from receipt_cli.events.starts import FEWEST
from receipt_cli.events.table import EventTable
from receipt_cli.numeric.spill import joined
from receipt_cli.numeric.statistics import exact_median, finite
from receipt_cli.records.envelope import NO_RANK

STRAGGLES = 1.1
"""A rank whose median step takes so many times that of all ranks holds them up: below lies what timers differ by."""
MIN_COMPARED = 3
"""Of two ranks nobody knows which one is slow."""


class RankFigures(NamedTuple):
    """What one rank printed itself: step records with the first and the last step, its largest memory figure, and the median
    of its step times. ``straggles`` compares that with all ranks: None where fewer than three have one."""

    records: int
    first: int | None
    last: int | None
    peak_memory_bytes: float | None
    median_step_time_s: float | None = None
    straggles: bool | None = None


def rank_figures(
    events: Sequence[Event], copies: Mapping[int, Sequence[RowRun]], start: int, end: int, twins: Mapping[int, int]
) -> dict[int, RankFigures]:
    """Return what each rank printed between two positions, by rank; empty where only one rank printed something.

    ``copies`` are the step records that have no event (see ``ReadEvents``), ``twins`` the ranks that printed what another did.
    """
    steps: dict[int, list[Event]] = {}
    peaks: dict[int, float] = {}
    first, last = (bisect_left(events, place, key=attrgetter("at")) for place in (start, end))
    for event in events[first:last]:
        if event.rank == NO_RANK:
            continue
        if event.is_step:
            steps.setdefault(event.rank, []).append(event)
        for size in (size for name in event.metric_names if is_memory(name) for size in _sizes(event, name)):
            peaks[event.rank] = max(size, peaks.get(event.rank, size))
    beside: dict[int, list[RowRun]] = {}
    for rank, copy in ((rank, copy) for rank, runs in copies.items() for copy in runs):
        if (part := copy.between(start, end)) is not None:
            beside.setdefault(rank, []).append(part)
            for largest in (part.largest(name) for name in part.metrics if is_memory(name)):
                if largest is not None:
                    peaks[rank] = max(largest, peaks.get(rank, largest))
    ranks = sorted(steps.keys() | peaks.keys() | beside.keys())
    found = {rank: _figures(steps.get(rank, []), beside.get(rank, []), peaks.get(rank)) for rank in ranks}
    found |= {rank: found[other] for rank, other in twins.items() if other in found}
    return _compared(dict(sorted(found.items()))) if len(found) > 1 else {}


def _compared(ranks: dict[int, RankFigures]) -> dict[int, RankFigures]:
    """Say of each rank whether its steps take longer than those of the others."""
    known = [figures.median_step_time_s for figures in ranks.values() if figures.median_step_time_s is not None]
    middle = exact_median(known)
    if len(known) < MIN_COMPARED or middle is None:
        return ranks
    return {
        rank: r if r.median_step_time_s is None else r._replace(straggles=r.median_step_time_s > STRAGGLES * middle)
        for rank, r in ranks.items()
    }


def _sizes(event: Event, name: str) -> list[float]:
    """Return the finite value of a metric of a record, and the largest of the run behind it."""
    sizes = [event.metrics.get(name), event.run.largest(name) if event.run is not None else None]
    return [size for size in sizes if size is not None and math.isfinite(size)]


def _figures(records: Sequence[Event], copies: Sequence[RowRun], peak: float | None) -> RankFigures:
    """Return the figures of a rank. A step printed twice counts once, a record without a step always."""
    numbered = [e for e in records if e.step is not None]
    runs = [e.run.steps for e in numbered if e.run is not None]
    count = count_distinct([e.step for e in numbered if e.step is not None], [*runs, *(copy.steps for copy in copies)])
    unnumbered = sum(e.records for e in records if e.step is None)
    firsts: list[tuple[int, int | None]] = [(copy.record(0)[0], copy.part(0, 1).last) for copy in copies]
    lasts: list[tuple[int, int | None]] = [(copy.record(len(copy) - 1)[0], copy.last) for copy in copies]
    firsts += [(e.at, e.step) for e in numbered[:1]]
    lasts += [(e.last_at, e.last_step) for e in numbered[-1:]]
    first, last = min(firsts, key=itemgetter(0), default=None), max(lasts, key=itemgetter(0), default=None)
    times = [found for copy in copies if (found := copy.filled(STEP_TIME)) is not None]
    median = exact_median(finite(joined([EventTable(records).metric(STEP_TIME).values, *times], np.float64)))
    return RankFigures(count + unnumbered, first and first[1], last and last[1], peak, median)


def sole_rank(events: list[Event], unseen: Iterable[int] = ()) -> list[Event]:
    """Give the records without a label the rank of those with one, where only one rank is labelled.

    ``unseen`` are the ranks of what has no event. A launcher labels lines; the redraws of a progress bar in one line have
    no label of their own. Where a rule's records mostly have none, one with a label is another writer's.
    """
    ranks = {event.rank for event in events}.union(unseen) - {NO_RANK}
    if len(ranks) == 1:
        [rank] = ranks
        begin = [e for before, e in pairwise([None, *events]) if e and (before is None or e.line != before.last_line)]
        counts = _counts(begin, placed=False)  # what stands behind another record in one line has no place for a label
        bare = {key for key, found in counts.items() if 2 * found[NO_RANK] > found.total() > found[NO_RANK]}
        labelled = {rule_of(event) for event in events if bare and event.rank == rank} - bare
        for event in events:
            event.rank = rank if not bare or rule_of(event) in labelled else event.rank
    return events


def leading_rank(events: list[Event]) -> list[Event]:
    """Leave out step records of other ranks where the leading rank printed that position itself: its step, or counters and epoch.

    The leader is the rank with most step records, the lowest on a tie; records without a rank stay, and lead if they are most
    and stand beside those of a rank.
    """
    counts = {key: found for key, found in _counts(events).items() if len(found) > 1}
    counts = {key: found for key, found in counts.items() if not found[NO_RANK] or _beside(events, key)}
    leaders = {key: min(found, key=lambda rank: (-found[rank], rank)) for key, found in counts.items()}
    if not leaders:
        return events
    events = [e for event in events for e in (expand(event) if _other(event, leaders) else (event,))]
    led: dict[tuple[str, str], set[Hashable]] = {}
    for key, leader in leaders.items():
        mine = [e for e in events if e.rank == leader and rule_of(e) == key]
        own = {_place(one) for e in mine for one in (expand(e) if e.step is None else (e,))} - {None}
        asked = {e.step for e in events if e.step is not None and _other(e, leaders) and rule_of(e) == key}
        led[key] = own | steps_among(asked - own, [e.run.steps for e in mine if e.run is not None and e.step is not None])
    return [e for e in events if not (_other(e, leaders) and _place(e) in led[rule_of(e)])]


def _beside(events: Iterable[Event], key: tuple[str, str]) -> bool:
    """True where records of a rule with and without a label take turns, or those with one are few: not one log behind another."""
    ranks = [event.rank for event in events if event.rule.event == "step" and rule_of(event) == key]
    turns = sum((one == NO_RANK) != (other == NO_RANK) for one, other in pairwise(ranks))
    return turns > 1 or min(ranks.count(NO_RANK), len(ranks) - ranks.count(NO_RANK)) < FEWEST


def _counts(events: Iterable[Event], *, placed: bool = True) -> dict[tuple[str, str], Counter[int]]:
    """Return how many records of each rule of steps each rank prints; those without a label, but not of bars, as ``NO_RANK``.

    Only those ``placed``: they say where training is.
    """
    counts: dict[tuple[str, str], Counter[int]] = {}
    for event in events:
        bar = event.rank == NO_RANK and event.rule.redraw
        if event.rule.event == "step" and not bar and not (placed and _place(event) is None):
            counts.setdefault(rule_of(event), Counter())[event.rank] += event.drawn
    return counts


def _place(event: Event) -> Hashable:
    """Return how far training is at a record, as far as it prints that: its step, or its counters and its epoch."""
    if event.step is not None:
        return event.step
    place = *sorted((event.counters or {}).items()), event.metrics.get("epoch")
    return None if place == (None,) else place


def _other(event: Event, leaders: Mapping[tuple[str, str], int]) -> bool:
    """True for a record of a rank that another one leads."""
    return event.rule.event == "step" and event.rank != NO_RANK and event.rank != leaders.get(rule_of(event), event.rank)
