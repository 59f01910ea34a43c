"""Events and the runs behind them as one table: a row for each record, columns of positions, lines, steps and figures."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, pairwise
from typing import NamedTuple

import numpy as np

from receipt_cli.events.model import Event, numbers_of
from receipt_cli.events.rows import LARGE, Found, RowRun
from receipt_cli.numeric.array_types import Array, Floats, Integers, Mask
from receipt_cli.numeric.arrays import Joined
from receipt_cli.numeric.spill import ascends, gathered, joined
from receipt_cli.numeric.spill import pieces as parts_of
from receipt_cli.numeric.statistics import finite

NO_STEP = -(1 << 63)
"""The step of a record without one, or with one that no array holds."""


class Column(NamedTuple):
    """A figure of some rows of a table, in the order of the log: these rows (int64 [m], or a slice) and its values."""

    rows: slice | Integers
    values: Floats

    def within(self, mask: Mask | None) -> Column:
        """Return the figure of those rows that are in a mask of the table's rows; None: of all."""
        return self if mask is None else self.chosen(mask[self.rows])

    def chosen(self, mask: Mask) -> Column:
        """Return some of the values."""
        first, count = int(mask.argmax()) if len(mask) else 0, int(np.count_nonzero(mask))
        index = slice(first, first + count) if mask[first : first + count].all() else mask.nonzero()[0]
        if not isinstance(self.rows, slice):
            return Column(self.rows[index], self.values[index])
        start = self.rows.start
        rows = slice(start + index.start, start + index.stop) if isinstance(index, slice) else start + index
        return Column(rows, self.values[index])

    def row(self, place: int) -> int:
        """Return the row of a value."""
        return self.rows.start + place if isinstance(self.rows, slice) else int(self.rows[place])


class EventTable:
    """``count`` records (n) of some events, which are in the order of the log; those of a run follow its event.

    If other records stand between those of a run, the rows are not in the order of the log, but figures are.
    """

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events
        self.firsts = [0, *accumulate(event.records for event in events)]
        self.count = self.firsts[-1]
        self.passed = any(event.run is not None and event.run.passed for event in events)

    @cached_property
    def at(self) -> Integers:
        """The position of each record (int64 [n])."""
        return numbers_of(self.events, lambda event: event.at, lambda run: run.at)

    @cached_property
    def line(self) -> Integers:
        """The line of each record (int64 [n])."""
        return numbers_of(self.events, lambda event: event.line, lambda run: run.line)

    @cached_property
    def clock(self) -> Floats:
        """The time stamp of each record in seconds (float64 [n]); NaN if it has none."""
        return numbers_of(self.events, lambda event: event.clock, lambda run: run.clock, np.float64)

    @cached_property
    def step(self) -> Integers:
        """The step of each record (int64 [n]); ``NO_STEP`` if it has none."""
        return numbers_of(self.events, _step_of, lambda run: run.steps if run.has_steps else np.full(len(run), NO_STEP))

    def spread(self, values: Sequence[object] | Array) -> Array:
        """Return a value of each event as a column ([n])."""
        return np.repeat(np.asarray(values), np.diff(self.firsts))

    def metric(self, name: str) -> Column:
        """Return a metric, in base units."""
        return self._column(lambda event: event.metrics.get(name), lambda run: run.metric(name))

    def other(self, name: str) -> Column:
        """Return a metric outside the registry."""
        return self._column(lambda event: event.unregistered.get(name), lambda run: run.unregistered_metric(name))

    def figure(self, values: Floats, known: Mask) -> Column:
        """Return the ``values`` (float64 [n]) of the ``known`` rows as a figure."""
        return self._in_order(Column(slice(0, self.count), values).chosen(known))

    def filled(self, name: str) -> Floats:
        """Return a metric as a column (float64 [n]); NaN if a record has none."""
        found = self.metric(name)
        if isinstance(found.rows, slice) and found.rows == slice(0, self.count):
            return found.values
        values = np.full(self.count, math.nan)
        values[found.rows] = found.values
        return values

    def steps_of(self, column: Column) -> Floats:
        """Return the steps of the records that have a figure (float64 [m]); NaN if one has none."""
        steps = self.step[column.rows]
        return np.where(steps == NO_STEP, math.nan, steps)

    def line_of(self, name: str, row: int) -> int:
        """Return the line that prints a metric of a record, in the registry or outside of it."""
        number = bisect_right(self.firsts, row) - 1
        event, behind = self.events[number], row - self.firsts[number] - 1
        return event.line_of(name) if behind < 0 or event.run is None else event.run.line_of(name, behind)

    def _column(self, of_event: Callable[[Event], float | None], of_run: Callable[[RowRun], Found | None]) -> Column:
        values: list[list[float] | Floats] = []
        places: list[tuple[int, int] | Integers] = []
        """The rows of the values: from which to which, or which."""
        for first, event in zip(self.firsts, self.events, strict=False):
            number = of_event(event)
            if number is not None:
                if places and isinstance(last := places[-1], tuple) and last[1] == first and isinstance(values[-1], list):
                    places[-1] = last[0], first + 1
                    values[-1].append(number)
                else:
                    places.append((first, first + 1))
                    values.append([number])
            if event.run is not None and (found := of_run(event.run)) is not None:
                numbers, mask = found
                places.append((first + 1, first + event.records) if mask is None else first + 1 + mask.nonzero()[0])
                values.append(numbers if mask is None else numbers[mask])
        return self._in_order(Column(_rows(places), joined(values, np.float64)))

    def _in_order(self, column: Column) -> Column:
        if not self.passed:
            return column
        order = np.argsort(self.at[column.rows], kind="stable")
        rows = np.arange(column.rows.start, column.rows.stop) if isinstance(column.rows, slice) else column.rows
        return Column(rows[order], column.values[order])


def _rows(places: Sequence[tuple[int, int] | Integers]) -> slice | Integers:
    """Return the rows of all ``places``, as a slice if they follow one another."""
    ranges = [place for place in places if isinstance(place, tuple)]
    if len(ranges) == len(places) and all(one[1] == other[0] for one, other in pairwise(ranges)):
        return slice(ranges[0][0], ranges[-1][1]) if ranges else slice(0, 0)
    count = sum(place[1] - place[0] if isinstance(place, tuple) else len(place) for place in places)
    return gathered(np.int64, count, (np.arange(*place) if isinstance(place, tuple) else place for place in places))


def _step_of(event: Event) -> int:
    return NO_STEP if event.step is None or abs(event.step) >= LARGE else event.step


def positions(events: Iterable[Event]) -> Sequence[int]:
    """Return the positions of all records, ascending."""
    places = EventTable(list(events)).at
    return (places if ascends(places) else np.sort(places, kind="stable")).data  # mostly in order


def place_of(values: Floats, value: float) -> int | None:
    """Return the first place of a value; None if it is not there."""
    seen = 0
    for part in parts_of(values):
        if (equal := part == value).any():
            return seen + int(equal.argmax())
        seen += len(part)
    return None


class Series(Mapping[str, Sequence[float]]):
    """The values of metrics in step order; nothing is copied of a run that is wanted whole."""

    def __init__(self, names: Iterable[str] = (), table: EventTable | None = None, steady: Mask | None = None) -> None:
        """``steady`` are the rows of the steady window; None: all."""
        self._names = dict.fromkeys(names)
        self.table, self.within = table or EventTable([]), steady
        self._known: dict[str, Sequence[float]] = {}

    def __getitem__(self, name: str) -> Sequence[float]:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._known:
            self._known[name] = Joined([self.table.metric(name).values])
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def figure(self, name: str) -> Column:
        """Return the figure of a metric; empty if it is none of the series."""
        return self.table.metric(name) if name in self._names else Column(slice(0, 0), np.empty(0))

    def steady(self, name: str) -> Floats:
        """Return the finite values of a metric in the steady window, in step order."""
        return finite(self.figure(name).within(self.within).values)

    def curve(self, name: str) -> tuple[Floats, Floats]:
        """Return steps and values (float64 [m] each) of a metric; records without a step are left out."""
        return curve_of(self.table, self.figure(name))

    def largest(self, name: str) -> float | None:
        """Return the largest value of a metric, infinities too; None if it has none but NaN."""
        values = self.figure(name).values
        known = values[~np.isnan(values)]
        return float(known.max()) if len(known) else None


def curve_of(table: EventTable, column: Column) -> tuple[Floats, Floats]:
    """Return steps and values (float64 [m] each) of a figure; records without a step are left out."""
    steps = table.steps_of(column)
    known = ~np.isnan(steps)
    return steps[known], column.values[known]
