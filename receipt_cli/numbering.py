"""Step records that print no step number → the number that the progress bar beside them proves, or none.

A trainer that writes through its progress bar redraws the bar right after each record, with the step that the record
is of. That holds only where both streams kept their order, so the log must prove it: every record is followed by a
bar of the run's total before the next record, and the steps so found rise by one constant stride, a restart and a
first step apart. Otherwise no number is given.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from receipt_cli.timeline import Event

MIN_RECORDS = 3


def number_steps(events: Sequence[Event]) -> list[Event]:
    """Return the events without the progress bars; step records without a number have one where it is proven."""
    for grammar in {e.grammar.id for e in events if e.rule.event == "progress"}:
        mine = [e for e in events if e.grammar.id == grammar]
        _number(mine)
    return [e for e in events if e.rule.event != "progress"]


def _number(events: Sequence[Event]) -> None:
    total = _total(events)
    records = [e for e in events if e.is_step and e.step is None]
    if total is None or len(records) < MIN_RECORDS:
        return
    steps = _following(events, total)
    if len(steps) != len(records) or not _constant_stride(steps):
        return
    for event, step in zip(records, steps, strict=True):
        event.step, event.planned = step, total


def _total(events: Sequence[Event]) -> int | None:
    """Return the planned steps: as a header line prints them, else the total that most bars show."""
    stated = [e.planned for e in events if e.rule.event == "header" and e.planned is not None]
    if stated:
        return stated[-1]
    totals = Counter(e.planned for e in events if e.rule.event == "progress" and e.planned is not None)
    return max(totals, key=lambda total: (totals[total], total), default=None)


def _following(events: Sequence[Event], total: int) -> list[int]:
    """Return the step of the first bar after each unnumbered record; shorter when one has none before the next."""
    steps: list[int] = []
    waiting = False
    for event in events:
        if event.is_step and event.step is None:
            if waiting:
                return []
            waiting = True
        elif waiting and event.rule.event == "progress" and event.planned == total and event.step is not None:
            steps.append(event.step)
            waiting = False
    return steps


def _constant_stride(steps: Sequence[int]) -> bool:
    """True when the steps rise by one stride wherever they rise, the first record of the log apart."""
    strides = [b - a for a, b in pairwise(steps[1:]) if b > a]
    if not strides or len(set(strides)) != 1:
        return False
    return steps[1] - steps[0] == strides[0] or steps[1] % strides[0] == 0
