"""Records that several processes print into one log: what one of them printed is kept.

Copies have equal values; times and rates may differ. With labels, the records of a rank are compared with those of the
rank that printed most. Without labels, all step records must come in equal numbers, each copy near the others: a log
that was appended to itself has its copies one after the other, and these are launches.

Processes without names that print other values take turns, too: each goes on from where it was itself, so the step goes
back and forth. That is no restart, and the run is the one that printed last.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import Counter, deque
from collections.abc import Hashable, Iterable, Sequence
from itertools import chain, islice, pairwise

import numpy as np

from receipt_cli.events.model import Event, expand, numbers_of, rule_of, singles
from receipt_cli.events.rows import LARGE
from receipt_cli.events.starts import joined_names
from receipt_cli.problems import Problem
from receipt_cli.records.envelope import NO_RANK

FEWEST = 4
"""Different step records that must come in copies: fewer may repeat by chance."""
MAX_DRAWN = 64
"""Rows that a table drawn again has at most: the screen is no longer."""
_RECORDS = ("step", "eval", "progress")
TIMED = ("_s", "_s_per_device", "_bytes", "_ratio")
"""Endings of the metrics that differ between two processes at the same step."""
TURNS = 8
"""Records of a process, and turns that it takes: a launcher restarts a run less often within one log."""
MOST_AHEAD = 4
"""Strides by which a process may be ahead of its last record, which another one may have garbled."""
OF_LANES = 0.9
"""Share of records that must be those of such processes."""
MOST_LANES = 64
"""Processes that are told apart."""
MOST_SINGLE = 200_000
"""Records of a launch that are: each needs an event of its own."""


def drop_copies(events: list[Event], aside: Iterable[int] = ()) -> list[Event]:
    """Return the events, in log order, without the copies of them; rows that are no events of their own stay as they are.

    ``aside``: the ranks with step records that have no events, since the leading rank prints them, too.
    """
    kept = _of_ranks(_once(events), aside)
    return _unlabelled(kept) if len({event.rank for event in kept}) == 1 else kept


def _once(events: list[Event]) -> list[Event]:
    """Leave out the rows of a table that is drawn again with each new row: they go back, their times included.

    A launch that begins again prints the same steps, but other times.
    """
    if not any(map(_is_timed_row, events)):
        return events
    last: dict[str, int] = {}
    drawn: dict[str, deque[Hashable]] = {}
    kept: list[Event] = []
    for event in events:
        if event.step is not None and _is_timed_row(event):
            latest = last.get(event.rule.name, -1)
            rows = drawn.setdefault(event.rule.name, deque(maxlen=MAX_DRAWN))
            printed = _printed(event)
            if event.step < latest and printed in rows:
                continue
            last[event.rule.name] = event.step
            rows.append(printed)
        kept.append(event)
    return kept


def _is_timed_row(event: Event) -> bool:
    """True for a record of its own that is drawn again, and prints a time."""
    single = event.rule.redraw and event.is_step and event.run is None
    return single and any(name.endswith("_s") and not name.endswith("per_s") for name in event.metrics)


def _key(event: Event) -> Hashable:
    known = [(name, value) for name, value in (*event.metrics.items(), *event.unregistered.items()) if value == value]
    values = [(name, value) for name, value in known if not name.endswith(TIMED)]
    if event.rule.event not in _RECORDS or (event.step is None and not {name for name, _ in values} - {"epoch"}):
        values = known  # nothing else says that they are one record
    counters = tuple(sorted((event.counters or {}).items()))
    printed = (frozenset(values), frozenset(event.facts.items()), frozenset(event.texts.items()))
    return event.grammar.id, event.rule.name, event.step, event.planned, counters, *printed


def _has_figures(event: Event) -> bool:
    """True for a record, and for any other line with metrics: what introduces a run and what ends it is kept of each."""
    return event.rule.event in _RECORDS or bool(event.metrics)


def _of_ranks(events: list[Event], aside: Iterable[int]) -> list[Event]:
    """Leave out what another rank printed with the same values, one record for one, as the leading rank: rule by rule.

    The leading rank of a rule printed most records of it; of several the lowest.
    """
    ranks = {event.rank for event in events}.union(aside) - {NO_RANK}
    if len(ranks) < 2:
        return events
    rules: dict[tuple[str, str], dict[int, list[Event]]] = {}
    for event in events:
        if event.rank != NO_RANK and _has_figures(event) and not event.rule.companion:  # which the record before it takes
            rules.setdefault(rule_of(event), {}).setdefault(event.rank, []).append(event)
    copies: set[int] = set()
    for printed in rules.values():
        leader = min(printed, key=lambda rank: (-sum(event.records for event in printed[rank]), rank))
        ours = printed[leader]
        for rank, theirs in printed.items():
            if rank == leader or any(e.rule.redraw for e in (*theirs, *ours)):
                continue
            if sum(event.records for event in theirs) > sum(event.records for event in ours):
                continue
            records = zip(chain.from_iterable(map(expand, theirs)), chain.from_iterable(map(expand, ours)), strict=False)
            if all(_key(one) == _key(other) for one, other in records):
                copies.update(map(id, theirs))
    return [event for event in events if id(event) not in copies]


def _unlabelled(events: list[Event]) -> list[Event]:
    """Leave out the copies of a log in which every step record comes the same number of times, near its copies."""
    steps = [event for event in events if event.is_step and not event.rule.redraw]  # of a bar the last frame counts
    if sum(event.records for event in steps) < 2 * FEWEST or not _may_recur(steps):
        return events
    printed, steps = events, list(chain.from_iterable(map(expand, steps)))
    distinct: dict[Hashable, Hashable] = {}
    keys = [distinct.setdefault(key, key) for key in map(_key, steps)]
    if not _interleaved(keys):
        return printed
    times = Counter(keys)[keys[0]]
    seen: Counter[Hashable] = Counter()
    kept: list[Event] = []
    for event in singles(events):
        key = _key(event)
        if event.rule.redraw or event.rule.companion or not _has_figures(event) or seen[key] % times == 0:
            kept.append(event)
        seen[key] += 1
    return kept


def _may_recur(steps: Sequence[Event]) -> bool:
    """False where two records come once: then not all come equally often. Also where there are too many to compare all."""
    if any(event.run is not None for event in steps) and sum(event.records for event in steps) > MOST_SINGLE:
        return False
    return any(_comes_again(one, steps) for one in islice(chain.from_iterable(map(expand, steps)), 2))


def _comes_again(one: Event, records: Sequence[Event]) -> bool:
    """True where several records have the step, the counters, the epoch and the loss of ``one``."""
    values = {name: value for name in ("epoch", "loss") if (value := one.metrics.get(name, math.nan)) == value}
    counters = one.counters or {}
    found = 0
    for event in records:
        own = event.counters or {}
        alike = event.step == one.step and all(event.metrics.get(name) == value for name, value in values.items())
        found += alike and own == counters
        run = event.run
        if run is not None and len(steps := run.steps if one.step is not None else run.at):
            same = steps == one.step if one.step is not None else steps >= 0
            inside = {"epoch_step": run.counts, "epoch_number": run.epoch_numbers}
            for name in own.keys() | counters.keys():
                counts = inside.get(name)
                if counts is None or name not in counters:
                    same = same & (own.get(name) == counters.get(name))
                else:
                    same = same & (counts == counters[name])
            for filled, value in ((run.filled(name), value) for name, value in values.items()):
                same = same & (filled == value if filled is not None else False)
            found += int(same.sum())
    return found > 1


def _interleaved(keys: Sequence[Hashable]) -> bool:
    """True when each record comes equally often, twice or more, and no process prints half of them before another begins."""
    counts = Counter(keys)
    [(_, times)] = counts.most_common(1)
    whole = sum(count == times for count in counts.values())
    if times < 2 or whole < FEWEST or any(count != times for count in list(counts.values())[:whole]):
        return False
    if len(counts) - whole > 1:
        return False
    begun: Counter[Hashable] = Counter()
    ahead: deque[Hashable] = deque()
    for key in keys:
        begun[key] += 1
        if begun[key] == 1:
            ahead.append(key)
        while ahead and begun[ahead[0]] == times:
            ahead.popleft()
        if 2 * len(ahead) > len(counts):
            return False
    return True


def repeats_at(events: Sequence[Event]) -> int | None:
    """Return the index from which the events, times included, repeat those before it to the end, or None.

    Then the log was appended to itself. Not for fewer than ``FEWEST`` step records, or for those of one value alone, unless
    twice as many different events come again.
    """
    period, rest = divmod(len(events), 2)
    if rest or not period or _printed(events[0]) != _printed(events[period]):
        return None
    steps = [event for event in events[:period] if event.is_step]
    few = sum(event.records for event in steps) < FEWEST or not _differ(map(_printed, steps), 2)
    if few and not _differ(map(_printed, events[:period]), 2 * FEWEST):
        return None
    same = all(_printed(events[n]) == _printed(events[period + n]) for n in range(period))
    return period if same else None


def _differ(keys: Iterable[Hashable], count: int) -> bool:
    """True when so many of ``keys`` differ from each other."""
    seen: set[Hashable] = set()
    for key in keys:
        seen.add(key)
        if len(seen) >= count:
            return True
    return False


def _printed(event: Event) -> Hashable:
    """Return all that a record prints, with what the run behind it holds."""
    named = (event.metrics, event.unregistered, event.facts, event.texts, event.counters or {})
    values = tuple(tuple(sorted((name, repr(value)) for name, value in part.items())) for part in named)
    behind: tuple[object, ...] = ()
    if event.run is not None:
        run = event.run
        found = [run.metric(name) for name in run.metric_names] + [run.unregistered_metric(name) for name in run.unregistered]
        read = [(numbers.tobytes(), known is None or known.tobytes()) for numbers, known in filter(None, found)]
        behind = (len(run), run.steps.tobytes(), run.clock.tobytes(), *read)
    return event.grammar.id, event.rule.name, event.rank, event.step, event.planned, repr(event.clock), values, behind


def alone(events: list[Event]) -> tuple[list[Event], list[Problem]]:
    """Leave out the step records of other processes that took turns with the one which printed last; return the problem, too.

    ``events`` are those of one launch, in log order; they are returned as they are where the steps do not show that.
    """
    printed = list(filter(_counts, events))
    back = sum(len(event.run.begins) for event in printed if event.run is not None and event.run.begins is not None)
    back += sum((after.step or 0) < (before.last_step or 0) for before, after in pairwise(printed))
    if back < TURNS or sum(event.records for event in events) > MOST_SINGLE:
        return events, []
    found = _lanes(singles(events), _stride(printed))
    if found is None:
        return events, []
    lanes = [lane for event, lane in found if lane is not None and _counts(event)]
    sizes = Counter(lanes)
    turns = Counter(lane for lane, after in pairwise(lanes) if lane != after)
    shared = {lane for lane, size in sizes.items() if size >= TURNS and turns[lane] >= TURNS}
    if len(shared) < 2 or lanes[-1] not in shared or sum(sizes[lane] for lane in shared) < OF_LANES * len(lanes):
        return events, []
    kept = [event for event, lane in found if lane in (None, lanes[-1])]
    others = [event for event, lane in found if lane not in (None, lanes[-1]) and _counts(event)]
    what = f"{len(shared)} processes interleave their steps; kept the last to print"
    first = min(event.line for event in others)
    return kept, [Problem("side_by_side", first, f"{what}; left out {len(others):,} other records", "")]


def _counts(event: Event) -> bool:
    return event.is_step and event.step is not None and not event.rule.redraw


def _lanes(records: Iterable[Event], stride: int) -> list[tuple[Event, int | None]] | None:
    """Return the records, each step record and its companions with the number of its process, or None where these are more than
    ``MOST_LANES``.

    A record goes on where the process is that is nearest below it, at most some strides; of several at one step, the one
    whose values are nearest.
    """
    last: list[tuple[int, int]] = []  # step and process, ascending
    latest: list[Event] = []
    found: list[tuple[Event, int | None]] = []
    lane: int | None = None
    for event in records:
        if not _counts(event):
            found.append((event, lane if event.rule.companion else None))
            continue
        step = event.step or 0
        place = bisect_left(last, (step, -1))
        if place and step - last[place - 1][0] <= MOST_AHEAD * stride:
            first = bisect_left(last, (last[place - 1][0], -1))
            lane = min((lane for _, lane in last[first:place]), key=lambda lane: _distance(latest[lane], event))
            last.remove((latest[lane].step or 0, lane))
            latest[lane] = event
        elif len(latest) < MOST_LANES:
            lane = len(latest)
            latest.append(event)
        else:
            return None
        insort(last, (step, lane))
        found.append((event, lane))
    return found


def _distance(before: Event, event: Event) -> float:
    """Return the sum of the relative differences of what the lines of both print."""
    both = (before.metrics.keys() & event.metrics.keys()) - joined_names(event)
    pairs = [(before.metrics[name], event.metrics[name]) for name in both]
    return sum(abs(one - other) / (abs(one) + abs(other)) for one, other in pairs if 0 < abs(one) + abs(other) < math.inf)


def _stride(steps: Sequence[Event]) -> int:
    """Return the commonest rise of a step to the nearest one below it that was printed before."""
    if any(abs(event.step or 0) >= LARGE for event in steps):
        return _commonest(event.step or 0 for event in steps)
    every = numbers_of(steps, lambda event: event.step or 0, lambda run: run.steps)
    ordered, first = np.unique(every, return_index=True)
    below = np.searchsorted(ordered, every) - 1
    higher = np.flatnonzero(below >= 0)
    nearest = below[higher]
    if bool((first[nearest] > higher).any()):  # was not yet printed
        return _commonest(every.tolist())
    rises, at, counts = np.unique(every[higher] - ordered[nearest], return_index=True, return_counts=True)
    most = counts == counts.max(initial=1)
    return int(rises[most][at[most].argmin()]) if len(rises) else 1


def _commonest(numbers: Iterable[int]) -> int:
    """Return the commonest rise of one of ``numbers`` to the nearest one below it among those before, the first of several."""
    seen: list[int] = []
    rises: Counter[int] = Counter()
    for number in numbers:
        place = bisect_left(seen, number)
        if place:
            rises[number - seen[place - 1]] += 1
        if place == len(seen) or seen[place] != number:
            seen.insert(place, number)
    return rises.most_common(1)[0][0] if rises else 1
