"""Number step records that print no step, where the progress bar beside them proves the number.

A trainer that writes through its progress bar redraws the bar right after each record, with the step that the record
is of. That is valid only where both streams kept their order, so the log must prove it: every record is followed by a
bar of the run's total before the next record, and the steps so found rise by one constant stride, a restart and a
first step apart. Otherwise no number is given.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from receipt_cli.events.model import Event, expand, numbers_of
from receipt_cli.events.rows import HEAD, TAIL, ProgressBars
from receipt_cli.numeric.array_types import Integers
from receipt_cli.numeric.arrays import distinct_values
from receipt_cli.numeric.column import Cells
from receipt_cli.numeric.spill import rises, slices

MIN_RECORDS = 3


def number_steps(events: Sequence[Event], bars: Sequence[ProgressBars] = ()) -> list[Event]:
    """Return the events without the progress bars; step records without a number have one where it is proven.

    ``bars`` are those that have no event (see ``ReadEvents``).
    """
    broken: set[int] = set()
    for grammar in {e.grammar.id for e in events if e.rule.event == "progress"} | {b.grammar for b in bars}:
        mine = [e for e in events if e.grammar.id == grammar]
        broken |= _number(mine, [b for b in bars if b.grammar == grammar])
    return [e for event in events if event.rule.event != "progress" for e in (expand(event) if id(event) in broken else (event,))]


def _number(events: Sequence[Event], bars: Sequence[ProgressBars]) -> set[int]:
    """Number the records of one grammar; return the identities of those before a run that is regular no longer."""
    total = _total(events, bars)
    records = [e for e in events if e.is_step and e.step is None]
    if total is None or sum(e.records for e in records) < MIN_RECORDS:
        return set()
    shown = [n for n, e in enumerate(events) if e.rule.event == "progress" and e.planned == total and e.step is not None]
    if bars or any(e.run is not None for e in records):
        return _number_runs(records, _bars_of([events[n] for n in shown], bars, total), total)
    following = [bisect_left(shown, n) for n, e in enumerate(events) if e.is_step and e.step is None]
    if any(place >= later for place, later in pairwise([*following, len(shown)])):
        return set()
    steps = [events[shown[place]].step or 0 for place in following]
    if _constant_stride(steps):
        for event, step in zip(records, steps, strict=True):
            event.step, event.planned = step, total
    return set()


def _bars_of(shown: Sequence[Event], bars: Sequence[ProgressBars], total: int) -> tuple[Integers, Integers]:
    """Return positions and steps of all bars of this total, in log order."""
    found = [bar.of_total(total) for bar in bars]
    if not shown and len(found) == 1:
        return found[0]
    at = np.concatenate([np.array([e.at for e in shown], np.int64), *(positions for positions, _ in found)])
    steps = np.concatenate([np.array([e.step for e in shown], np.int64), *(numbers for _, numbers in found)])
    order = np.argsort(at, kind="stable")
    return at[order], steps[order]


def _number_runs(records: Sequence[Event], bars: tuple[Integers, Integers], total: int) -> set[int]:
    """Do for records with runs, or for bars without events, what ``_number`` does for events."""
    at = numbers_of(records, lambda event: event.at, lambda run: run.at)
    numbers = Cells[int]("q")
    for part in slices(len(at)):
        places = np.searchsorted(bars[0], at[part], "right")
        following = at[part.start + 1 : part.stop + 1]
        if places[-1] == len(bars[0]) or bool((bars[0][places[: len(following)]] >= following).any()):
            return set()
        numbers.extend_array(bars[1][places])
    steps: Integers = numbers.whole()
    strides: set[int] = set()
    for _, each in rises(steps[1:]):
        strides |= set(distinct_values(each[each > 0]).tolist())
        if len(strides) > 1:
            return set()
    if not strides or not (steps[1] - steps[0] in strides or steps[1] % min(strides) == 0):
        return set()
    falls = [first + np.flatnonzero(each <= 0) + 1 for first, each in rises(steps)]
    breaks = np.concatenate([np.empty(0, np.int64), *falls])
    broken: set[int] = set()
    first = 0
    for event in records:
        event.step, event.planned = int(steps[first]), total
        last = first + event.records
        if event.run is not None:
            event.run = replace(event.run, numbers=steps[first + 1 : last])
            near = np.searchsorted(breaks, [first - HEAD + 2, last + TAIL])  # a stretch may begin anew
            broken |= {id(event)} if near[0] < near[1] else set()
        first = last
    return broken


def _total(events: Sequence[Event], bars: Sequence[ProgressBars]) -> int | None:
    """Return the planned steps: as a header line prints them, else the total that most bars show."""
    stated = [e.planned for e in events if e.rule.event == "header" and e.planned is not None]
    if stated:
        return stated[-1]
    totals = Counter(e.planned for e in events if e.rule.event == "progress" and e.planned is not None)
    for bar in bars:
        totals.update(bar.totals_shown())
    return max(totals, key=lambda total: (totals[total], total), default=None)


def _constant_stride(steps: Sequence[int]) -> bool:
    """True when the steps rise by one stride wherever they rise, the first record of the log apart."""
    strides = [b - a for a, b in pairwise(steps[1:]) if b > a]
    if not strides or len(set(strides)) != 1:
        return False
    return steps[1] - steps[0] == strides[0] or steps[1] % strides[0] == 0
