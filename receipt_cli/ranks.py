"""Which rank speaks for a run where several print the same steps, and what each of them printed."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from receipt_cli.columns import NO_RANK
from receipt_cli.timeline import Event


@dataclass(frozen=True, slots=True)
class RankFigures:
    """What one rank printed itself: step records with the first and the last step, and its largest memory figure."""

    records: int
    first: int | None
    last: int | None
    peak_memory_bytes: float | None


def rank_figures(events: Sequence[Event], start: int, end: int) -> dict[int, RankFigures]:
    """Return what each rank printed between two positions, by rank; empty where only one rank printed something."""
    steps: dict[int, list[int | None]] = {}
    peaks: dict[int, float] = {}
    for event in events[bisect_left(events, start, key=_at) : bisect_left(events, end, key=_at)]:
        if event.rank == NO_RANK:
            continue
        if event.is_step:
            steps.setdefault(event.rank, []).append(event.step)
        sizes = [size for name, size in event.metrics.items() if "memory" in name and name.endswith("_bytes")]
        for size in (size for size in sizes if math.isfinite(size)):
            peaks[event.rank] = max(size, peaks.get(event.rank, size))
    ranks = sorted(steps.keys() | peaks.keys())
    if len(ranks) < 2:
        return {}
    return {rank: _figures(steps.get(rank, []), peaks.get(rank)) for rank in ranks}


def _at(event: Event) -> int:
    return event.at


def _figures(steps: Sequence[int | None], peak: float | None) -> RankFigures:
    numbers = [step for step in steps if step is not None]
    count = len(set(numbers)) + len(steps) - len(numbers)
    return RankFigures(count, numbers[0] if numbers else None, numbers[-1] if numbers else None, peak)


def sole_rank(events: list[Event]) -> list[Event]:
    """Give the records without a label the rank of those with one, where only one rank is labelled.

    A launcher labels lines; the redraws of a progress bar in one line have no label of their own.
    """
    ranks = {event.rank for event in events} - {NO_RANK}
    if len(ranks) == 1:
        [rank] = ranks
        for event in events:
            event.rank = rank
    return events


def leading_rank(events: list[Event]) -> list[Event]:
    """Leave out step records of other ranks where the leading rank printed that step itself.

    The leader is the rank with most step records, the lowest on a tie; records without a rank always stay.
    """
    counts: dict[tuple[str, str], Counter[int]] = {}
    for event in events:
        if event.rule.event == "step" and event.rank != NO_RANK and event.step is not None:
            counts.setdefault((event.grammar.id, event.rule.name), Counter())[event.rank] += 1
    leaders = {key: min(c, key=lambda rank: (-c[rank], rank)) for key, c in counts.items() if len(c) > 1}
    if not leaders:
        return events
    led: dict[tuple[str, str], set[int | None]] = {key: set() for key in leaders}
    for event in _of(events, leaders):
        if event.rank == leaders[event.grammar.id, event.rule.name]:
            led[event.grammar.id, event.rule.name].add(event.step)
    return [e for e in events if not _follows(e, leaders, led)]


def _of(events: Iterable[Event], leaders: Mapping[tuple[str, str], int]) -> Iterable[Event]:
    return (e for e in events if (e.grammar.id, e.rule.name) in leaders)


def _follows(event: Event, leaders: Mapping[tuple[str, str], int], led: Mapping[tuple[str, str], set[int | None]]) -> bool:
    key = (event.grammar.id, event.rule.name)
    if key not in leaders or event.rank in (NO_RANK, leaders[key]):
        return False
    return event.step is not None and event.step in led[key]
