"""What it means that a counter goes back, comes again or jumps: one definition, for plain sequences of positions in log order.

A counter that goes on exactly where it was was never reset: what stands between is of another writer, or its counter is
wrong. Such records are set aside: they begin no attempt and no launch, and the figures that depend on them are left out.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice, pairwise

from receipt_cli.events.copies import TIMED
from receipt_cli.events.model import Event, part_of, record_of
from receipt_cli.events.relays import is_relay
from receipt_cli.events.starts import joined_names
from receipt_cli.lazy_dataclass import NamedTuple, replace
from receipt_cli.lazy_pattern import compile_later

PASTED, JUMP = "pasted", "jump"
"""The events of records that are set aside: their counter goes back for a while, or far ahead."""
FEWEST = 3
"""Records before a place from which it can be seen how far apart they are."""
FAR = 10
"""More than so many strides ahead is a jump."""
NEAR = 64
"""Records on each side of a place that are looked at."""
MOST_JUMPS = 3
"""Records in a row whose counters are too high; where more are, it is the counter before them that was wrong."""
_COUNTER = compile_later(
    r"(?i)(?:^|[_/ ])(?:iter|batch|epoch|step|update|sample|token|example)(?:ation|e)?s?(?:_total|_number)?$"
)
"""Names of figures that count records between two steps."""
TURNS = 8
"""As many blocks in one log are several processes that take turns."""


class Contest(NamedTuple):
    """Two records of one position with other values: the one that stands, None where only the ``other`` one is there."""

    stands: Event | None
    other: Event


def contradict(one: Event, other: Event) -> bool:
    """True where two records of one rule, step and plan have other losses, or without a loss other figures; times may differ.

    Not those of bars, which draw a record again, or where another counter tells them apart.
    """
    if one.rule.name != other.rule.name or (one.counters, one.planned) != (other.counters, other.planned):
        return False
    if one.rule.redraw or any(r"%\|" in source for source in one.rule.sources):
        return False
    mine, its = ({**event.unregistered, **event.metrics} for event in (one, other))
    names = (mine.keys() & its.keys()) - joined_names(one)
    if any(mine[name] < its[name] and _COUNTER.search(name) and float(its[name]).is_integer() for name in names):
        return False
    deciding = ["loss"] if "loss" in names else [name for name in names if not name.endswith(TIMED)]
    return any(mine[name] != its[name] and (mine[name] == mine[name] or its[name] == its[name]) for name in deciding)


def is_skipped(one: Event, other: Event) -> bool:
    """True where the loss scale falls between two records of one step: the update was skipped, and the step comes again."""
    return other.metrics.get("loss_scale", math.inf) < one.metrics.get("loss_scale", -math.inf)


def contests_of(steps: Sequence[Event], contests: Iterable[Contest], aside: Iterable[Event]) -> list[Contest]:
    """Return the ``contests`` of records that stand among ``steps``, and one for each record that was set ``aside``.

    Not of a rule that tells more of most steps: it prints several lines between two of them.
    """
    contests, standing = list(contests), {event.at for event in steps}
    beside = Counter(name for event in steps for name in event.rules[1:]) if contests else Counter[str]()
    own = [contest for contest in contests if 2 * beside[contest.other.rule.name] < len(steps)]
    found = [contest for contest in own if contest.stands is not None and contest.stands.at in standing]
    return [*found, *(Contest(_record_at(steps, event), event) for event in aside)]


def _record_at(steps: Sequence[Event], other: Event) -> Event | None:
    """Return the record of the step and the rule of another one."""
    for event in steps:
        if event.rule.name != other.rule.name or event.step is None or other.step is None:
            continue
        if event.step == other.step:
            return event
        if event.run is not None and event.step < other.step <= (event.last_step or 0):
            at = bisect_left(event.run.steps, other.step)
            one = record_of(event, at + 1)
            return one if one.step == other.step else None
    return None


def block_behind(before: Sequence[int], after: Sequence[int]) -> int:
    """Return how many records at the positions ``after`` a place stand between it and the one that goes on from ``before``.

    0 where none goes on: then the counter was reset there, or nothing happened. ``before`` ascends.
    """
    widest = max((other - one for one, other in pairwise(before)), default=0)
    last = before[-1]
    ahead = after[0] > last
    if len(before) < FEWEST or 0 <= after[0] - last <= FAR * widest:
        return 0
    for count, (one, other) in enumerate(pairwise(after), 1):
        place = last + (count * widest if ahead else 0)  # a wrong counter takes the place of the right one
        if last < other <= place + widest and not 0 <= other - one <= widest:
            return count
        if other <= one or (other > last and not ahead) or (ahead and count == MOST_JUMPS):
            return 0
    return 0


def jumps_at_end(positions: Sequence[int], planned: int | None = None) -> bool:
    """True where the last of ascending ``positions`` is far beyond the strides before it, and is not the ``planned`` one."""
    if len(positions) <= FEWEST or positions[-1] in (planned, (planned or 0) - 1):
        return False
    widest = max(other - one for one, other in pairwise(positions[:-1]))
    return positions[-1] - positions[-2] > FAR * widest


def set_aside(events: list[Event]) -> list[Event]:
    """Return the events, those of blocks as events of their own that are no step records: ``PASTED`` or ``JUMP``.

    Not where the trainer introduces itself before a block, or where blocks come so often that processes take turns.
    """
    by_kind: dict[tuple[str, str, int], list[int]] = {}
    opening: list[int] = []
    for index, event in enumerate(events):
        if event.is_step and event.step is not None and not event.rule.redraw:
            by_kind.setdefault((event.grammar.id, event.rule.name, event.rank), []).append(index)
        elif event.rule.event in ("header", "compile"):
            opening.append(index)
    found: dict[int, tuple[str, int]] = {}
    for places in by_kind.values():
        for kind, index, count in _blocks(events, places):
            found[index] = kind, count
    if not found or len(found) >= TURNS:
        return events
    introduced = {
        after
        for places in by_kind.values()
        for before, after in pairwise(places)
        if after in found and bisect_left(opening, before) < bisect_left(opening, after)
    }
    kept: list[Event] = []
    left: dict[tuple[str, str, int], tuple[str, int]] = {}
    for index, event in enumerate(events):
        key = event.grammar.id, event.rule.name, event.rank
        if index in found and index not in introduced:
            left[key] = found[index]
        kind, count = left.get(key, ("", 0))
        if not count or not event.is_step or event.step is None:
            kept.append(event)
            continue
        own = min(count, event.records)
        left[key] = kind, count - own
        kept += [_apart(record_of(event, number), kind) for number in range(own)]
        kept += [part_of(event, own, event.records)] if own < event.records else []
    return kept


def _apart(event: Event, kind: str) -> Event:
    event.rule = replace(event.rule, event=kind)
    return event


def _blocks(events: Sequence[Event], places: Sequence[int]) -> Iterable[tuple[str, int, int]]:
    """Yield each block among the records of one kind, at ``places``: what it is, the event that begins it, how many records."""
    widest = 0
    until = 0
    for at in range(1, len(places)):
        one, other = events[places[at - 1]], events[places[at]]
        rise = (other.step or 0) - (one.last_step or 0)
        if not until <= at or 0 <= rise <= FAR * widest or is_relay(one) or is_relay(other):
            widest = max(widest, rise)
            continue
        before = _near(events, places[max(0, at - NEAR) : at][::-1], back=True)
        after = _near(events, places[at : at + NEAR], back=False)
        count = block_behind(before, after)
        if not count:
            widest = max(widest, rise)
            continue
        yield JUMP if rise > 0 else PASTED, places[at], count
        until = at + 1
        while count > 0 and until < len(places):
            count -= events[places[until - 1]].records
            until += count > 0


def _near(events: Sequence[Event], places: Sequence[int], *, back: bool) -> list[int]:
    """Return the steps of the nearest records at ``places``, at most ``NEAR``; those ``back`` from it as far as they ascend."""
    found: list[int] = []
    for place in islice(places, NEAR):
        event = events[place]
        run, steps = event.run, [event.step or 0]
        if run is not None:
            begin = max(0, len(run) - NEAR) if back else 0
            steps = [*steps[begin:], *run.part(begin, min(begin + NEAR, len(run))).steps.tolist()]
        if back and found and steps[-1] >= found[0]:
            break
        found = [*steps, *found] if back else [*found, *steps]
        if len(found) >= NEAR:
            break
    return found[-NEAR:] if back else found[:NEAR]
