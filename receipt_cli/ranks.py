"""Which rank speaks for a run where several print the same steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from receipt_cli.columns import NO_RANK
from receipt_cli.timeline import Event


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
