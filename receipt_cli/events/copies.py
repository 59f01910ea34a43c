"""Leave out the records of all processes but one, if several processes print into one log.

Copies have equal values; times and rates may differ. If lines have rank labels, the records of a rank are compared with those of
the rank that printed most. Without labels, all step records must come in equal numbers, each copy near the others. If a log was
appended to itself, its copies follow one another: these are launches.

Processes without labels may print different values in turns: each goes on from its own last step, so that the step goes back and
forth. That is no restart; the process that printed last is the run.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections import Counter, deque
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from receipt_cli.events.table import EventTable, Row, at_rows, chosen, distinct, not_nan, numbers_in, put, size_of, where
from receipt_cli.grammar.model import COUNTERS
from receipt_cli.numeric.array_types import Array, Floats, Integers, Mask
from receipt_cli.numeric.spill import PIECE, slices
from receipt_cli.problems import Problem
from receipt_cli.records.envelope import NO_RANK

FEWEST = 4
"""Fewest different step records that must come in copies: fewer may repeat by chance."""
MAX_DRAWN = 64
"""Most rows of a table that is drawn again: a screen has no more."""
_RECORDS = ("step", "eval", "progress")
PASTED = "pasted"
"""The event of displaced records: their counter goes back for a while."""
TIMED = ("_s", "_s_per_device", "_bytes", "_ratio")
"""Endings of the metrics that differ between two processes at the same step."""
TURNS = 8
"""Fewest records and turns of a process that interleaves with others: a launcher restarts a run less often within one log."""
MOST_AHEAD = 4
"""Most strides from the last record of a process to its next: another process may have garbled records between."""
OF_LANES = 0.9
"""Share of the step records that must be those of interleaving processes."""
MOST_LANES = 64
"""Most processes that are told apart."""
LOOKED_AT = 64
"""Records of each rank that are compared first."""
MOST_SINGLE = 200_000
"""Most records of a launch that are compared one by one."""


def without_copies(table: EventTable) -> EventTable:
    """Return the table without copies of records."""
    table = table.where(~_drawn_again(table))
    table = table.where(~_of_ranks(table))
    return table.where(~_unlabelled(table)) if len(distinct(table.rank)) == 1 else table


def _drawn_again(table: EventTable) -> Mask:
    """Return the mask of the records that repeat a row of a table on the screen that is drawn again with each new row.
    Such records go back, their times included. A launch that begins again prints the same steps with other times."""
    again = np.zeros(len(table), np.bool_)
    for source, drawn_rows, _ in table.parts:
        if not (source.rule.redraw and source.is_step and _is_timed(source.metrics)):
            continue
        rows = numbers_in(drawn_rows)
        rows = rows[~np.isnan(table.steps[rows])]
        steps = table.steps[rows]
        falls = np.flatnonzero(np.diff(steps) < 0)
        if not len(falls):
            continue
        latest = -1.0
        drawn: deque[Hashable] = deque(maxlen=MAX_DRAWN)
        for index, step in zip(rows[max(0, falls[0] - MAX_DRAWN) :].tolist(), steps[max(0, falls[0] - MAX_DRAWN) :], strict=True):
            row = table[index]
            if _is_timed(row.metrics):
                printed = printed_by(row)
                if step < latest and printed in drawn:
                    again[index] = True
                    continue
                latest = step
                drawn.append(printed)
    return again


def _is_timed(names: Iterable[str]) -> bool:
    return any(name.endswith("_s") and not name.endswith("per_s") for name in names)


def _has_figures(table: EventTable) -> Mask:
    """Return the mask of the records that are steps, evaluations or progress, or print a metric.
    The others only mark where a run begins or ends; those of each rank are kept."""
    found = np.array(table.by_source(lambda source: source.rule.event in _RECORDS))
    for name in table.of_sources(lambda source: source.rule.event not in _RECORDS).metric_names():
        found[table.metric(name).rows] = True
    return found


class _Prints:
    """Compares what records print, column by column.
    Times and rates are compared only for records that print no step and no other figure, unless ``times`` are, and ranks too."""

    def __init__(self, table: EventTable, *, times: bool = False) -> None:
        self.table = table
        columns = [table.column(name) for name in ("step", "planned", *COUNTERS, *(("rank", "clock") if times else ()))]
        names = [*((name, True) for name in table.metric_names()), *((name, False) for name in table.other_names())]
        records = table.by_source(lambda source: source.rule.event in _RECORDS)
        stated = records & not_nan(table.steps)
        for name, known in sorted(names, key=lambda one: one[0].endswith(TIMED)):
            timed = not times and name.endswith(TIMED)
            if timed and stated.all():
                break
            values = table.filled(name) if known else table.spread(table.other(name))
            if not timed and name != "epoch":
                stated |= ~np.isnan(values) & records
            columns.append(np.where(stated, math.nan, values) if timed else values)
        self.columns = columns

    def stated_by(self, row: int) -> Hashable:
        """Return the facts and the texts of the record ``row``, as a key for comparisons."""
        found = self.table[row]
        return frozenset(found.facts.items()), frozenset(found.texts.items())

    def stating(self) -> Mask:
        """Return the mask of the records whose rule can print facts or texts."""
        return self.table.by_source(lambda source: source.speaks)

    def same(self, ours: Integers, theirs: Integers) -> bool:
        """Return whether the records at the rows ``ours`` and ``theirs`` print the same, pair by pair."""
        for part in slices(len(ours)):
            one, other = ours[part], theirs[part]
            pairs = ((column[one], column[other]) for column in self.columns if column.strides != (0,))
            if any(bool(((a != b) & ~(np.isnan(a) & np.isnan(b))).any()) for a, b in pairs):
                return False
        stating = np.flatnonzero(self.stating()[ours])
        return all(self.stated_by(int(ours[row])) == self.stated_by(int(theirs[row])) for row in stating)

    def numbers(self) -> Integers:
        """Return an id for each record (int64 [n]): records have the same id if they print the same."""
        found = self.table.column("source").astype(np.int64)
        texts: dict[Hashable, int] = {}
        stating = self.stating()
        said: list[Array] = []
        if stating.any():
            said = [np.zeros(len(self.table))]
            said[0][stating] = [texts.setdefault(self.stated_by(row), len(texts)) for row in np.flatnonzero(stating).tolist()]
        for column in (*self.columns, *said):
            _, which = np.unique(column, return_inverse=True)
            _, found = np.unique(found * (int(which.max(initial=0)) + 1) + which, return_inverse=True)
        return found


def _of_ranks(table: EventTable) -> Mask:
    """Return the mask of the records of ranks that printed the same as the leading rank of a rule, record by record.
    The leading rank of a rule printed most of its records; on a tie it is the lowest."""
    copies = np.zeros(len(table), np.bool_)
    if len([rank for rank in distinct(table.rank) if rank != NO_RANK]) < 2:
        return copies
    figures = _has_figures(table)
    for source, rows, _ in table.parts:
        if source.rule.redraw or source.rule.companion:  # the record before it decides
            continue
        told = at_rows(figures, rows) & (at_rows(table.rank, rows) != NO_RANK)
        mine = chosen(rows, where(told))
        ranks = at_rows(table.rank, mine)
        printed = {rank: numbers_in(chosen(mine, where(ranks == rank))) for rank in distinct(ranks)}
        if len(printed) < 2:
            continue
        leader = min(printed, key=lambda rank: (-len(printed[rank]), rank))
        others = [rank for rank in printed if rank != leader]
        begin, end = 0, LOOKED_AT  # the first records decide mostly
        while others and begin < len(printed[leader]):
            some = np.sort(np.concatenate([printed[rank][begin:end] for rank in (leader, *others)]))
            prints = _Prints(table.chosen(some))
            found = {rank: np.searchsorted(some, printed[rank][begin:end]) for rank in (leader, *others)}
            others = [rank for rank in others if prints.same(found[leader][: len(found[rank])], found[rank])]
            begin, end = end, end + PIECE
        for rank in others:
            put(copies, printed[rank], True)
    return copies


def _unlabelled(table: EventTable) -> Mask:
    """Return the mask of the copies in a log in which every step record comes equally often, near its copies."""
    copies = np.zeros(len(table), np.bool_)
    is_step = table.by_source(lambda source: source.is_step and not source.rule.redraw)  # of a bar the last redraw counts
    steps = table.where(is_step)
    if not 2 * FEWEST <= len(steps) <= MOST_SINGLE:
        return copies
    first = [(column == column[0]) | np.isnan(column[0]) for column in (steps.positions, steps.filled("loss"))]
    if np.count_nonzero(np.logical_and(*first)) < 2:  # the first record comes only once
        return copies
    asked = numbers_in(where(_has_figures(table)))
    numbers = _Prints(table.chosen(asked)).numbers()
    keys = numbers[is_step[asked]].tolist()
    if not _interleaved(keys):
        return copies
    times = Counter(keys)[keys[0]]
    seen: Counter[int] = Counter()
    counted = table.by_source(lambda source: not source.rule.redraw and not source.rule.companion)[asked]
    for row, key, counts in zip(asked.tolist(), numbers.tolist(), counted.tolist(), strict=True):
        copies[row] = counts and bool(seen[key] % times)
        seen[key] += 1
    return copies


def _interleaved(keys: Sequence[Hashable]) -> bool:
    """Return whether each record comes equally often, twice or more, and no process prints half of them before another begins."""
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


def repeats_at(table: EventTable) -> int | None:
    """Return the row at which the second half of a log begins if it repeats the first half, times included; else None.

    Such a log was appended to itself. Fewer than ``FEWEST`` step records, or step records that are all equal, do not show that,
    unless twice as many different events come again.
    """
    period, rest = divmod(len(table), 2)
    if rest or not period or printed_by(table[0]) != printed_by(table[period]):
        return None
    first = table[:period]
    if (first.column("source") != table[period:].column("source")).any():
        return None
    steps = first.of_sources(lambda source: source.is_step)
    few = len(steps) < FEWEST or not _differ(map(printed_by, steps), 2)
    if few and not _differ(map(printed_by, first), 2 * FEWEST):
        return None
    half = np.arange(period)
    return period if _Prints(table, times=True).same(half, half + period) else None


def _differ(keys: Iterable[Hashable], count: int) -> bool:
    """Return whether at least ``count`` of ``keys`` differ from each other."""
    seen: set[Hashable] = set()
    for key in keys:
        seen.add(key)
        if len(seen) >= count:
            return True
    return False


def printed_by(row: Row) -> Hashable:
    """Return all that a record prints, as a key for comparisons."""
    named = (row.metrics, row.unregistered, row.facts, row.texts, row.counters)
    values = tuple(tuple(sorted((name, repr(value)) for name, value in part.items())) for part in named)
    return row.grammar.id, row.rule.name, row.rank, row.step, row.planned, repr(row.clock), values


def alone(table: EventTable) -> tuple[EventTable, list[Problem]]:
    """Keep one process, the last to print, if several print their own steps in turns; return the table and the problem.

    The table is returned unchanged if its steps do not show such processes.
    """
    given, pasted = table, where(table.by_source(lambda source: source.rule.event == PASTED))
    if size_of(pasted):  # the first record of the second process goes back
        table = table.read_as(numbers_in(pasted), lambda source: replace(source, rule=replace(source.rule, event="step")))
    places = _counted(table)
    counts = table.by_source(lambda source: source.is_step and not source.rule.redraw) & not_nan(places)
    steps = at_rows(places, where(counts))
    if int(np.count_nonzero(steps[1:] < steps[:-1])) < TURNS or len(table) > MOST_SINGLE:
        return given, []
    lanes = _lanes(table, places, counts, _stride(steps))
    if lanes is None:
        return given, []
    own = lanes[counts].tolist()
    sizes = Counter(own)
    turns = Counter(lane for lane, after in pairwise(own) if lane != after)
    shared = {lane for lane, size in sizes.items() if size >= TURNS and turns[lane] >= TURNS}
    if len(shared) < 2 or own[-1] not in shared or sum(sizes[lane] for lane in shared) < OF_LANES * len(own):
        return given, []
    others = (lanes >= 0) & (lanes != own[-1])
    what = f"{len(shared)} processes interleave their steps; kept the last to print"
    left = others & counts
    problem = Problem("side_by_side", int(table.line[left].min()), f"{what}; left out {left.sum():,} other records", "")
    return table.where(~others), [problem]


def _counted(table: EventTable) -> Floats:
    """Return the step of each record (float64 [n]); if no step is printed, a number made of the epoch and the count inside it."""
    rules = {source.rule.name for source in table.sources if source.is_step}
    if len(rules) != 1 or not_nan(table.steps).any() or np.isnan(table.inside).all():
        return table.steps
    return table.positions * np.nanmax(table.inside) + table.inside


def _lanes(table: EventTable, places: Floats, counts: Mask, stride: int) -> Integers | None:
    """Return the id of the process of each step record (mask ``counts``) and its companions (int64 [n]); -1 for other records.

    A record goes on from the process with the nearest lower step, at most some strides below; from several at one step, the one
    with the nearest values. None if there are more than ``MOST_LANES`` processes.
    """
    last: list[tuple[float, int]] = []  # step and process, ascending
    latest: list[int] = []
    ended = set[int]()  # processes after whose last record another one begins, below lines that are no records
    found = np.full(len(table), -1)
    lane = -1
    companion = table.by_source(lambda source: source.rule.companion)
    for index in numbers_in(where(counts | companion)).tolist():
        if not counts[index]:
            found[index] = lane
            continue
        step = float(places[index])
        place = bisect_left(last, (step, -1))
        if place and step - last[place - 1][0] <= MOST_AHEAD * stride:
            first = bisect_left(last, (last[place - 1][0], -1))
            near = [lane for _, lane in last[first:place]]
            near = [lane for lane in near if lane not in ended] or near
            lane = (
                near[0]
                if len(near) == 1
                else min(near, key=lambda lane: (_distance(table[latest[lane]], table[index]), -latest[lane]))
            )
            last.remove((float(places[latest[lane]]), lane))
            latest[lane] = index
        elif len(latest) < MOST_LANES:
            if lane >= 0 and table.line[index] - table.line[latest[lane]] > 1:
                ended.add(lane)
            lane = len(latest)
            latest.append(index)
        else:
            return None
        ended.discard(lane)
        insort(last, (step, lane))
        found[index] = lane
    return found


def _distance(before: Row, row: Row) -> float:
    """Return the sum of the relative differences of the metrics that both records print."""
    ours, theirs = ({**one.unregistered, **one.metrics} for one in (before, row))
    pairs = [(ours[name], theirs[name]) for name in ours.keys() & theirs.keys()]
    return sum(abs(one - other) / (abs(one) + abs(other)) for one, other in pairs if 0 < abs(one) + abs(other) < math.inf)


def _stride(steps: Floats) -> int:
    """Return the most frequent distance of a step to the nearest smaller one printed before; on a tie the one seen first."""
    seen: list[float] = []
    rises: Counter[float] = Counter()
    for number in steps.tolist():
        place = bisect_left(seen, number)
        if place:
            rises[number - seen[place - 1]] += 1
        if place == len(seen) or seen[place] != number:
            seen.insert(place, number)
    return int(rises.most_common(1)[0][0]) if rises else 1
