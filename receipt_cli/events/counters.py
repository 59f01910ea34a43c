"""What it means that a counter goes back, comes again or jumps: one definition, for plain sequences of positions in log order.

A counter that goes on exactly where it was was never reset: what stands between is of another writer, or its counter is
wrong. Such records are set aside: they begin no attempt and no launch, and the figures that depend on them are left out.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from itertools import islice, pairwise
from typing import NamedTuple

from receipt_cli.events.copies import TIMED
from receipt_cli.events.model import Event, expand, is_relay, part_of, record_of, rule_of
from receipt_cli.events.starts import joined_names
from receipt_cli.numeric.precision import resolution
from receipt_cli.patterns import compile_later

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
_TIME = compile_later(r"(?i)(?:^|[_/ ])(?:time|secs?|seconds|elapsed|duration)$")
"""Names of times, which two lines about one step need not share."""
_SCALE = compile_later(r"(?i)(?:loss|grad)_?scaler?$")
OF_POSITIONS = 0.9
"""Share of the epochs that a log prints that come equally often, or once."""
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
    names = {name for name in mine.keys() & its.keys() if not _TIME.search(name)} - joined_names(one)
    if any(mine[name] < its[name] and _COUNTER.search(name) and float(its[name]).is_integer() for name in names):
        return False
    deciding = ["loss"] if "loss" in names else [name for name in names if not name.endswith(TIMED)]
    return any(mine[name] != its[name] and (mine[name] == mine[name] or its[name] == its[name]) for name in deciding)


def ends_twice(one: Event, other: Event) -> bool:
    """True where a full bar with another loss is behind the full bar of the same steps, each on a line of its own."""
    both = one.counters == other.counters and one.run is None and other.run is None and one.line != other.line
    full = both and one.counters is not None and one.counters.get("epoch_step", 0) == one.counters.get("epoch_steps")
    return full and one.metrics.get("loss") != other.metrics.get("loss")


def is_skipped(one: Event, other: Event) -> bool:
    """True where the loss scale falls between two records of one step: the update was skipped, and the step comes again."""
    before, after = ({**event.metrics, **event.unregistered} for event in (one, other))
    return any(after[name] < before[name] for name in before.keys() & after.keys() if _SCALE.search(name))


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


def block_behind(before: Sequence[float], after: Sequence[float]) -> int:
    """Return how many records at the positions ``after`` a place stand between it and the one that goes on from ``before``.

    0 where none goes on: then the counter was reset there, or nothing happened. ``before`` ascends. A record that goes on in
    the stride of those behind the place is one of them.
    """
    widest = max((other - one for one, other in pairwise(before)), default=0)
    last = before[-1]
    ahead = after[0] > last
    if len(before) < FEWEST or not widest or 0 <= after[0] - last <= FAR * widest:
        return 0
    for count, (one, other) in enumerate(pairwise(after), 1):
        place = last + (count * widest if ahead else 0)  # a wrong counter takes the place of the right one
        own = count > 1 and other - one == after[1] - after[0] > 0
        if last <= other <= place + widest and not 0 <= other - one <= widest and not own:
            return count
        if other < one or (other > last and not ahead) or (ahead and count == MOST_JUMPS):
            return 0
    return 0


def full_at_zero(places: Sequence[tuple[int, int]]) -> list[int]:
    """Return the records, each at a place in an epoch, whose counter is 0 since the epoch is full: it counts modulo its length.

    Each 0 then ends an epoch, and none begins one.
    """
    zeros = [at for at, (_, inside) in enumerate(places) if inside == 0]
    for at in zeros:
        epoch = places[at][0]
        if not at or places[at - 1][0] != epoch or not places[at - 1][1] or (at + 1 < len(places) and places[at + 1][0] <= epoch):
            return []
    return zeros


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
        if event.is_step and event.position is not None and not event.rule.redraw:
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
        if not count or not event.is_step or event.position is None:
            kept.append(event)
            continue
        own = min(count, event.records)
        left[key] = kind, count - own
        kept += [replace(record_of(event, number), rule=replace(event.rule, event=kind)) for number in range(own)]
        kept += [part_of(event, own, event.records)] if own < event.records else []
    return kept


def _blocks(events: Sequence[Event], places: Sequence[int]) -> Iterable[tuple[str, int, int]]:
    """Yield each block among the records of one kind, at ``places``: what it is, the event that begins it, how many records."""
    widest, until = 0.0, 0
    for at in range(1, len(places)):
        one, other = events[places[at - 1]], events[places[at]]
        rise = _positions(other, 0, 1)[0] - _positions(one, one.records - 1, one.records)[0]
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


def _near(events: Sequence[Event], places: Sequence[int], *, back: bool) -> list[float]:
    """Return the positions of the nearest records at ``places``, at most ``NEAR``; those ``back`` as far as they ascend."""
    found: list[float] = []
    for place in islice(places, NEAR):
        event = events[place]
        begin = max(0, event.records - NEAR) if back else 0
        own = _positions(event, begin, min(begin + NEAR, event.records))
        if back and found and own[-1] > found[0]:
            break
        found = [*own, *found] if back else [*found, *own]
        if len(found) >= NEAR:
            break
    return found[-NEAR:] if back else found[:NEAR]


def _positions(event: Event, begin: int, end: int) -> list[float]:
    """Return the positions of the records of an event from ``begin`` to ``end``: their steps, or else their epochs."""
    own = [event.position or 0.0] if begin == 0 else []
    if event.run is None or end <= 1:
        return own
    run = event.run.part(max(0, begin - 1), end - 1)
    epochs = run.filled("epoch") if event.step is None else None
    found = run.steps.tolist() if event.step is not None else [] if epochs is None else epochs.tolist()
    return [*own, *(found or [event.position or 0.0] * len(run))]


def comes_again(positions: Sequence[float]) -> list[int]:
    """Return the records whose position, an epoch, is that of the one before, though an epoch tells records apart.

    It does where fractions of it are printed so finely that it rises with each record. Whole epochs do where only a tenth of the
    records share one, or where each comes twice: two processes print them.
    """
    again = [at for at, (one, other) in enumerate(pairwise(positions), 1) if one == other]
    rises = sorted(other - one for one, other in pairwise(positions) if other > one)
    if not again or len(rises) < FEWEST:
        return []
    unit = resolution(positions) or 1.0
    if unit < 1.0:  # else it is rounded to the same digits
        return again if rises[len(rises) // 2] >= 1.5 * unit else []
    times = Counter(Counter(positions).values())
    return again if times[2] >= OF_POSITIONS * times.total() or len(again) <= (1 - OF_POSITIONS) * len(positions) else []


def attempts_by_epoch(events: Sequence[Event]) -> tuple[list[list[Event]], list[Event], list[Contest]]:
    """Return the attempts of records without a step, what they supersede, and the records that come again with other values.

    Where the epoch of a rule goes back, another attempt begins.
    """
    places = [place for event in events for place in _positions(event, 0, event.records)]
    known = all(event.position is not None for event in events) and len({(rule_of(event), event.rank) for event in events}) == 1
    again = set(comes_again(places)) if known and not all(other > one for one, other in pairwise(places)) else set[int]()
    if again:
        events = [one for event in events for one in expand(event)]
    attempts: list[list[Event]] = []
    contests: list[Contest] = []
    last: dict[Hashable, tuple[float, ...]] = {}
    for at, event in enumerate(events):
        kind = event.grammar.id, event.rule.name, event.rank
        begins, ends = _place(event, 0), _place(event, event.records - 1)
        if not attempts or (begins and begins < last.get(kind, begins)):
            attempts.append([event])
            last.clear()
        elif at in again and not event.rule.redraw and event.counters == attempts[-1][-1].counters:
            if contradict(attempts[-1][-1], event):
                contests.append(Contest(attempts[-1][-1], event))
            else:
                attempts[-1][-1].fill(event)
        else:
            add_unnumbered(attempts[-1], event)
        if ends:
            last[kind] = ends
    return *_standing(attempts), contests


def _standing(attempts: list[list[Event]]) -> tuple[list[list[Event]], list[Event]]:
    """Return what stands of attempts, and what does not: records at places from which a later one began, each rule by itself."""
    limits: dict[Hashable, tuple[float, ...]] = {}
    kept: list[list[Event]] = []
    superseded: list[Event] = []
    for attempt in reversed(attempts):
        stands: list[Event] = []
        for event in attempt:
            limit = limits.get((event.grammar.id, event.rule.name, event.rank), ()) if event.step is None else ()
            whole = event.run is None or not limit or _place(event, event.records - 1) < limit
            for one in (event,) if whole else expand(event):
                (superseded if limit and _place(one, 0) >= limit else stands).append(one)
        kept.append(stands)
        for event in attempt:
            if place := _place(event, 0):
                kind = event.grammar.id, event.rule.name, event.rank
                limits[kind] = min(place, limits.get(kind, place))
    return kept[::-1], superseded


def _place(event: Event, index: int) -> tuple[float, ...]:
    """Return the epoch and the count inside of it of a record without a step; nothing where it has no epoch."""
    if event.position is None or event.step is not None:
        return ()
    one = record_of(event, index)
    inside = [value for name, value in one.unregistered.items() if name.endswith("_in_epoch")]
    return one.position or 0.0, (one.counters or {}).get("epoch_step", inside[0] if inside else 0)


def add_unnumbered(attempt: list[Event], event: Event) -> None:
    """Add a record where a step number is missing, unless another rank printed the same one just before."""
    last = attempt[-1]
    same = event.step is None and event.rule.name == last.rule.name
    if same and event.rank == last.rank and _is_more_of(last, event):
        last.fill(event)
    elif not (same and event.rank != last.rank and event.same_values(last)):
        attempt.append(event)


def _is_more_of(last: Event, event: Event) -> bool:
    """True when a line prints other metrics of the batch that ``last`` is of: its counters, and what both print, are equal."""
    if last.run is not None or event.run is not None or not event.counters or event.counters != last.counters:
        return False
    shared = event.metrics.keys() & last.metrics.keys()
    new = (event.metrics.keys() | event.unregistered.keys()) - (last.metrics.keys() | last.unregistered.keys())
    return bool(new) and "epoch_step" in event.counters and all(event.metrics[name] == last.metrics[name] for name in shared)
