"""Records without an ``Event`` of their own: rows of columns, read as arrays.

``RowRun``: regular step records behind the event before them, or those of one rank that the leading rank prints, too.
``ProgressBars``: bars that only number the records beside them. A long log is mostly such records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from receipt_cli.grammar.model import Grammar, Rule
from receipt_cli.numeric.array_types import Array, Floats, Integers, Mask
from receipt_cli.numeric.column import Cells
from receipt_cli.numeric.ordinals import OrdinalSet, ordinals_in
from receipt_cli.numeric.spill import gathered, picked, pieces, slices
from receipt_cli.scan.columns import NumberColumn, RuleColumns

Found: TypeAlias = "tuple[Floats, Mask | None]"
Rows: TypeAlias = "slice | Integers"


Read = tuple[Grammar, Rule, RuleColumns]
"""The records of one rule of a grammar."""

HEAD = 12
"""Events kept at the beginning of a regular stretch: more than warm up."""
MAX_EPOCHS = 1_000_000
"""Epochs from here on have no step number: nobody trains so long, and their lengths would have to be summed."""
TAIL = 5
"""Events kept at its end: more than a late companion line looks back."""
MANY = 1024
"""Fewest records of a rule that are not worth an object each."""
LARGE = 1 << 62
"""Steps from here on are in no array."""


STEP_TIME = "step_time_s"
"""The metric by which ranks are compared for their pace."""


def are_many(columns: RuleColumns) -> bool:
    """True for so many records that they are worth being read as arrays."""
    return len(columns) >= MANY


@cache
def is_memory(name: str) -> bool:
    """True for a metric of memory in use, in bytes."""
    return "memory" in name and "free" not in name and name.endswith("_bytes")


@dataclass(frozen=True, slots=True, eq=False)
class RowRun:
    """``n`` rows of ``columns``, ascending: of one rank and one plan, their steps ascending strictly or absent.

    The copies of a rank (see ``ReadEvents``) are of that rank alone: their plans and steps may be any.
    ``metrics`` and ``unregistered`` name the columns that may hold values, that which counts first. ``numbers`` are the
    steps; where it is None, they are so many ``beyond`` those of the column ``step``, if there is one. ``inside`` is the column
    that counts inside an epoch, ascending strictly in each, and ``epochs`` the column of these, ascending; the other counters
    are those of the record before, and so is all else that an event has: grammar, rule, rank, planned steps, meanings. ``epoch``
    is that of all, where no column has it.
    ``attached`` are the rows of ``columns`` that have the values of a companion, by its name.
    ``drawn`` is how many rows there were of them: a bar draws a record over, and its last frame counts.
    ``passed``: other events stand between the records (see ``model.in_order``).
    ``begins`` are the indices (ascending) of the records that begin another attempt, of a relay: its steps go back there, unless
    what a later attempt ran again is left out. The first attempt of a relay begins with the event before the run.
    """

    columns: RuleColumns
    rows: Rows
    n: int
    metrics: Mapping[str, Sequence[NumberColumn]]
    unregistered: Mapping[str, Sequence[NumberColumn]]
    step: NumberColumn | None = None
    numbers: Integers | None = None
    beyond: int = 0
    inside: NumberColumn | None = None
    epochs: NumberColumn | None = None
    epoch: float | None = None
    drawn: int = 0
    attached: Mapping[str, Integers] = field(default_factory=dict)
    passed: bool = False
    begins: Integers | None = None

    def __len__(self) -> int:
        return self.n

    @property
    def steps(self) -> Integers:
        """The step of each record (int64 [n]); empty where they have none."""
        if self.numbers is not None:
            return self.numbers
        found: Integers = np.empty(0, np.int64) if self.step is None else self._of(self.step).astype(np.int64)
        if self.beyond:
            found += self.beyond
        return found

    @property
    def has_steps(self) -> bool:
        """True where the records have steps."""
        return self.numbers is not None or self.step is not None

    def in_pieces(self) -> Iterator[RowRun]:
        """Yield the records in pieces; the pages of files are given back meanwhile."""
        yield from (self.part(part.start, part.stop) for part in slices(self.n))

    @property
    def at(self) -> Integers:
        """The position of each record (int64 [n])."""
        return self._cut(self.columns.at)

    @property
    def line(self) -> Integers:
        """The line number of each record (int64 [n])."""
        return self._cut(self.columns.line)

    @property
    def clock(self) -> Floats:
        """The time stamp of each record, in seconds (float64 [n]); NaN where it has none."""
        return self._cut(self.columns.clock)

    @property
    def last(self) -> int | None:
        """The step of the last record."""
        return next(iter(self.part(self.n - 1, self.n).steps.tolist()), None)

    def largest(self, name: str) -> float | None:
        """Return the largest finite value of a metric, or None where there is none."""
        values = self.filled(name)
        if values is None:
            return None
        finite = values[np.isfinite(values)]
        return float(finite.max()) if len(finite) else None

    def metric(self, name: str) -> Found | None:
        """Return the values of a metric, in base units (float64 [n]), and which records have one (None: all).

        None where no record has one.
        """
        if name == "epoch" and self.epoch is not None:
            return np.broadcast_to(np.float64(self.epoch), self.n), None
        return self.read(self.metrics.get(name, ()))

    def unregistered_metric(self, name: str) -> Found | None:
        """Return the same of a metric outside the registry."""
        return self.read(self.unregistered.get(name, ()))

    def filled(self, name: str) -> Floats | None:
        """Return the values of a metric (float64 [n]), NaN where a record has none; None where none has."""
        found = self.metric(name)
        return None if found is None else found[0]

    def between(self, start: int, end: int) -> RowRun | None:
        """Return the records from position ``start`` to ``end`` (exclusive); None where there are none."""
        places = np.searchsorted(self.columns.at.whole(), [start, end])
        own = self.rows
        low, high = (places - own.start).clip(0, self.n) if isinstance(own, slice) else np.searchsorted(own, places)
        return self.part(int(low), int(high)) if low < high else None

    def part(self, start: int, stop: int) -> RowRun:
        """Return the records from ``start`` to ``stop`` (exclusive), counted from 0."""
        own = self.rows
        rows: Rows = slice(own.start + start, own.start + stop) if isinstance(own, slice) else own[start:stop]
        numbers = None if self.numbers is None else self.numbers[start:stop]
        return replace(self, rows=rows, n=stop - start, numbers=numbers, drawn=stop - start, begins=None)

    def chosen(self, indices: Integers, begins: Integers | None) -> RowRun:
        """Return some of the records, counted from 0 and ascending, of which ``begins`` begin another attempt."""
        own = self.rows
        every = (piece + own.start if isinstance(own, slice) else own[piece] for piece in pieces(indices))
        rows = gathered(indices.dtype.type, len(indices), every)
        numbers = None if self.numbers is None else picked(self.numbers, indices)
        return replace(self, rows=rows, n=len(rows), numbers=numbers, drawn=len(rows), begins=begins)

    @property
    def counts(self) -> Integers | None:
        """Where inside its epoch each record is (int64 [n]), or None where they do not print it."""
        return None if self.inside is None else self._of(self.inside).astype("int64")

    @property
    def epoch_numbers(self) -> Integers | None:
        """The epoch of each record (int64 [n]), or None where no column has it."""
        return None if self.epochs is None else self._of(self.epochs).astype("int64")

    def epoch_at(self, index: int) -> int | None:
        """Return the epoch of one record, None where no column has it."""
        found = self.part(index, index + 1).epoch_numbers
        return None if found is None else int(found[0])

    def record(self, index: int) -> tuple[int, int, float]:
        """Return position, line and clock of one record."""
        row = self._row(index)
        return self.columns.at[row], self.columns.line[row], self.columns.clock[row]

    @property
    def printed_elsewhere(self) -> list[str]:
        """The metrics, those outside the registry included, that other lines than those of the records may print."""
        named = (*self.metrics.items(), *self.unregistered.items())
        return [name for name, columns in named if any(column.lines is not None for column in columns)]

    def lines_of(self, name: str) -> Integers:
        """Return the line that prints a metric of each record (int64 [n]), in the registry or outside of it."""
        own = self.line
        lines = own.copy()
        for column in reversed((*self.metrics.get(name, ()), *self.unregistered.get(name, ()))):
            index, printed = values_at(column.printed or column, self.rows)
            at = slice(None) if index is None else index
            lines[at] = own[at] if column.printed is None else np.where(printed > 0, printed, own[at])
        return lines

    def line_of(self, name: str, index: int) -> int:
        """Return the line that prints a metric of one record."""
        return int(self.part(index, index + 1).lines_of(name)[0])

    def values(self, index: int) -> tuple[int | None, dict[str, float]]:
        """Return step and metrics of one record."""
        one = self.part(index, index + 1)
        metrics = {name: float(found[0][0]) for name in self.metric_names if (found := one.metric(name)) is not None}
        return next(iter(one.steps.tolist()), None), metrics

    @property
    def metric_names(self) -> Iterable[str]:
        """The metrics that its records may print, or that their epoch is."""
        return self.metrics if self.epoch is None else {**self.metrics, "epoch": ()}

    def printed(self, figures: Mapping[str, Sequence[NumberColumn]]) -> list[str]:
        """Return the names of those of ``figures`` (``metrics`` or ``unregistered``) that any of its records prints."""
        return [name for name, columns in figures.items() if any(has_values(column, self.rows) for column in columns)]

    def _row(self, index: int) -> int:
        return self.rows.start + index if isinstance(self.rows, slice) else int(self.rows[index])

    def _cut(self, values: Cells[Any]) -> Array:
        return values.whole()[self.rows] if isinstance(self.rows, slice) else picked(values.whole(), self.rows)

    def _of(self, column: NumberColumn) -> Floats:
        """Return the values of a column that has one for every record."""
        index, values = values_at(column, self.rows)
        assert index is None
        return values

    def read(self, columns: Sequence[NumberColumn]) -> Found | None:
        """Return what ``metric`` does, of the figure that ``columns`` hold, that which counts first."""
        if not columns:
            return None
        if len(columns) == 1:
            index, values = values_at(columns[0], self.rows)
            if index is None:
                return values, None
        filled = np.full(self.n, np.nan)
        known = np.zeros(self.n, np.bool_)
        for column in reversed(columns):
            index, values = values_at(column, self.rows)
            at = slice(None) if index is None else index
            filled[at] = values
            known[at] = True
        return (filled, None if bool(known.all()) else known) if known.any() else None


@dataclass(frozen=True, slots=True, eq=False)
class ProgressBars:
    """The bars of one rule of ``grammar`` that show a total: positions, steps and totals (int64 [n], in log order)."""

    grammar: str
    at: Integers
    steps: Integers
    totals: Integers

    def totals_shown(self) -> Counter[int]:
        """Return how many bars show each total."""
        totals, counts = np.unique(self.totals, return_counts=True)
        return Counter(dict(zip(totals.tolist(), counts.tolist(), strict=True)))

    def of_total(self, total: int) -> tuple[Integers, Integers]:
        """Return positions and steps of the bars with this total."""
        mine = self.totals == total
        return (self.at, self.steps) if mine.all() else (self.at[mine], self.steps[mine])


@dataclass(frozen=True, slots=True)
class KeptRows:
    """Rows that are events of their own (int64, ascending), and by such a row the run that follows it."""

    rows: Integers
    runs: Mapping[int, RowRun]


@dataclass(frozen=True, slots=True)
class CompactRows:
    """``read``: the columns to make events of, with the values of companions at the records that they follow.

    ``kept``, by grammar and rule: the rows that become events; all, where a rule has no entry. ``bars`` and ``copies``,
    by rank, have no event. ``ranks`` are those that the log names; of several perhaps not all.
    """

    read: Sequence[Read]
    kept: Mapping[tuple[str, str], KeptRows] = field(default_factory=dict)
    attached: Mapping[tuple[str, str], Mapping[str, Integers]] = field(default_factory=dict)
    bars: list[ProgressBars] = field(default_factory=list)
    copies: dict[int, list[RowRun]] = field(default_factory=dict)
    ranks: Set[int] = frozenset()


def indices_of(attached: Mapping[str, Integers], rows: Sequence[int] | Rows) -> Iterator[tuple[str, list[int]]]:
    """Yield each companion of a rule's records, and the indices in ``rows`` of those that have its values."""
    for companion, owners in attached.items():
        asked = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else np.asarray(rows)
        yield companion, np.flatnonzero(np.isin(asked, owners)).tolist()


def has_values(column: NumberColumn, rows: Rows) -> bool:
    """True where any of ``rows``, ascending and not empty, has a value in a column."""
    if column.dense:
        return int(rows.start if isinstance(rows, slice) else rows[0]) < len(column.values)
    held = np.asarray(column.rows)
    if not isinstance(rows, slice):
        return bool(np.isin(held, rows).any())
    low, high = np.searchsorted(held, [rows.start, rows.stop])
    return bool(low < high)


def values_at(column: NumberColumn, rows: Rows) -> tuple[Integers | None, Floats]:
    """Return which of ``rows``, ascending, have a value in a column (None: all), counted from 0, and those values."""
    values: Floats = column.values.whole()
    if column.dense:
        if isinstance(rows, slice):
            return (None if rows.stop <= len(values) else np.arange(len(values[rows]))), values[rows]
        known = int(np.searchsorted(rows, len(values)))
        if known < len(values):
            values = picked(values, rows[:known])
        return None if known == len(rows) else np.arange(known), values
    held = np.asarray(column.rows)
    if isinstance(rows, slice):
        low, high = np.searchsorted(held, [rows.start, rows.stop]).tolist()
        return (None if high - low == rows.stop - rows.start else held[low:high] - rows.start), values[low:high]
    if not len(held):
        return held, values
    places = np.searchsorted(held, rows)
    found = held[np.minimum(places, len(held) - 1)] == rows
    if found.all():
        return None, values if len(values) == len(rows) else picked(values, places)
    return np.flatnonzero(found), picked(values, places[found])


def count_distinct(steps: Iterable[int], more: Sequence[Integers]) -> int:
    """Return how many different steps there are in ``steps`` and in the arrays ``more``."""
    known = set(steps)
    if not more:
        return len(known)
    large = {step for step in known if abs(step) >= LARGE}  # no array contains one
    least = min([*(known - large), *(int(piece.min()) for array in more for piece in pieces(array) if len(piece))], default=0)
    found = OrdinalSet([step - least for step in known - large])
    for array in more:
        for piece in pieces(array):
            found |= ordinals_in(piece - least)
    return len(large) + len(found)


def steps_among(steps: Iterable[int], more: Sequence[Integers]) -> set[int]:
    """Return those of ``steps`` that the arrays ``more`` hold."""
    wanted = [step for step in steps if abs(step) < LARGE]
    if not wanted or not more:
        return set()
    asked = np.array(wanted, np.int64)
    return set(asked[np.isin(asked, np.concatenate(more))].tolist())
