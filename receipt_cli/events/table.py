"""Hold the records of a log as one table: a row for each record, in log order, and a column for each thing known of them.

A ``Log`` holds the columns, an ``EventTable`` is a selection of its rows. No function changes a column: a pass makes a new one,
and ``EventTable.having`` returns the table with it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar, cast, overload

import numpy as np

from receipt_cli.grammar.model import COUNTERS, MOMENTS, Grammar, Rule
from receipt_cli.numeric.array_types import Array, Floats, Integers, Mask
from receipt_cli.numeric.arrays import distinct_values
from receipt_cli.numeric.column import Cells
from receipt_cli.numeric.spill import PIECE, ascends, extremes, gathered, picked, rises, scratch, show, slices
from receipt_cli.numeric.spill import pieces as parts_of
from receipt_cli.numeric.statistics import Statistic, finite
from receipt_cli.patterns import compile_later
from receipt_cli.scan.columns import NumberColumn, RuleColumns, TextColumn

Rows: TypeAlias = "slice | Integers"
Meaning = tuple[str | None, str | None]
"""Scope and definition of a metric, as its grammar declares them."""
NO_STEP = -(1 << 63)
"""Value of ``EventTable.step`` for a record without a step, or with one that int64 does not hold."""
LARGE = float(1 << 62)
"""Smallest step that ``EventTable.step`` shows as ``NO_STEP``."""
BLOCK = 256
"""Rows of a rule whose values are read together if one row is asked for."""
_KEPT = 64
"""Groups of ``BLOCK`` rows that are kept."""
_PRINTED = ("at", "line", "rank", "clock")
_INSIDE = compile_later(r"_in_epoch\Z|\Aepoch_images\Z")
_STRUCTURAL = {"step": "step", "planned": "planned_steps", **{name: name for name in COUNTERS}}
_NONE: Mapping[str, Any] = MappingProxyType({})


# --- rows ------------------------------------------------------------------------------------------------------------


def size_of(rows: Rows) -> int:
    """Return the number of rows."""
    return rows.stop - rows.start if isinstance(rows, slice) else len(rows)


def where(mask: Mask) -> Rows:
    """Return the indexes at which a mask is true, as a slice if they follow one another."""
    if len(mask) <= PIECE:
        rows = mask.nonzero()[0]
        begin, end = (int(rows[0]), int(rows[-1]) + 1) if len(rows) else (0, 0)
        return slice(begin, end) if end - begin == len(rows) else rows
    count = int(np.count_nonzero(mask))
    first = int(mask.argmax()) if count else 0
    if mask[first : first + count].all():
        return slice(first, first + count)
    return gathered(np.int64, count, (part.start + np.flatnonzero(mask[part]) for part in slices(len(mask))))


def chosen(rows: Rows, index: Rows | None) -> Rows:
    """Return the elements of ``rows`` at ``index`` (counted from 0), or all of them if it is None."""
    if index is None:
        return rows
    if isinstance(rows, slice):
        if isinstance(index, slice):
            return slice(rows.start + index.start, rows.start + index.stop)
        return index if not rows.start else gathered(np.int64, len(index), (rows.start + each for each in parts_of(index)))
    return rows[index] if isinstance(index, slice) else picked(rows, index)


def numbers_in(rows: Rows) -> Integers:
    """Return rows as an array of row numbers (int64)."""
    return np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows


def before_in(rows: Rows, places: Integers) -> Integers:
    """Return for each row in ``places`` how many of ``rows`` (ascending) are before it."""
    if isinstance(rows, slice):
        found: Integers = np.clip(places - rows.start, 0, size_of(rows))
        return found
    return np.searchsorted(rows, places)


def mask_of(count: int, of: Callable[[slice], Mask]) -> Mask:
    """Return a mask of ``count`` rows that ``of`` makes piece by piece."""
    found = np.empty(count, np.bool_)
    for part in slices(count):
        found[part] = of(part)
    return found


def not_nan(values: Floats) -> Mask:
    """Return the mask of the values that are not NaN."""
    return mask_of(len(values), lambda part: ~np.isnan(values[part]))


def falls(values: Floats) -> Mask:
    """Return the mask of the values below the one before."""
    found = np.zeros(len(values), np.bool_)
    for first, rise in rises(values):
        found[first + 1 : first + 1 + len(rise)] = rise < 0
    return found


def last_finite(values: Floats) -> int | None:
    """Return the index of the last finite value; None without one."""
    found = ((part.start, np.flatnonzero(np.isfinite(values[part]))) for part in reversed([*slices(len(values))]))
    return next((begin + int(places[-1]) for begin, places in found if len(places)), None)


def repeated(value: Any, count: int) -> Array:
    """Return a read-only column of one value that takes no room; ``numpy.broadcast_to`` takes twenty times as long."""
    held = np.asarray(value)
    return np.ndarray((count,), held.dtype, held.tobytes(), 0, (0,))


def at_rows(values: Array, rows: Rows) -> Array:
    """Return the values of a column at ``rows``, without a copy if these follow one another."""
    if isinstance(rows, slice):
        show(values[rows].nbytes)
        return values[rows]
    if values.strides == (0,):
        return repeated(values[0], len(rows)) if len(values) else values
    if values.itemsize == 8 or len(rows) <= PIECE:
        return picked(values, rows)
    return np.concatenate([values[part] for part in parts_of(rows)])


def put(column: Array, rows: Rows, value: Any) -> None:
    """Set a column to one value at ``rows``."""
    for part in slices(size_of(rows)):
        column[chosen(rows, part)] = value


def values_at(column: NumberColumn, rows: Rows) -> tuple[Integers | None, Floats]:
    """Return the indexes in ``rows`` (from 0) of the rows that have a value in a column, None for all rows, and the values."""
    values: Floats = column.values.whole()
    if column.dense:
        if isinstance(rows, slice):
            return (None if rows.stop <= len(values) else np.arange(len(values[rows]))), values[rows]
        known = rows < len(values)
        return (None, at_rows(values, rows)) if known.all() else (np.flatnonzero(known), values[rows[known]])
    held = np.asarray(column.rows)
    if isinstance(rows, slice):
        low, high = np.searchsorted(held, [rows.start, rows.stop]).tolist()
        return (None if high - low == rows.stop - rows.start else held[low:high] - rows.start), values[low:high]
    if not len(held):
        return held, values
    places = np.searchsorted(held, rows)
    found = held[np.minimum(places, len(held) - 1)] == rows
    if found.all():
        return None, values if len(values) == len(rows) else at_rows(values, places)
    return np.flatnonzero(found), at_rows(values, places[found])


def read(columns: Sequence[NumberColumn], rows: Rows) -> tuple[Integers | None, Floats]:
    """Return the indexes of the ``rows`` that have a value of a figure (None: all), and the values (float64).
    If several of its ``columns`` have one, the first counts."""
    if len(columns) == 1:
        return values_at(columns[0], rows)
    filled, known = np.full(size_of(rows), math.nan), np.zeros(size_of(rows), np.bool_)
    for column in reversed(columns):
        index, values = values_at(column, rows)
        at = slice(None) if index is None else index
        filled[at], known[at] = values, True
    return (None, filled) if known.all() else (np.flatnonzero(known), filled[known])


def _lines_of(columns: Sequence[NumberColumn], rows: Rows, own: Integers) -> Integers:
    """Return for each of ``rows`` the line that prints a figure: that of its record (``own``), unless another line added it."""
    if all(column.printed is None for column in columns):
        return own
    lines = own.copy()
    for column in reversed(columns):
        index, printed = values_at(column.printed or column, rows)
        at = slice(None) if index is None else index
        lines[at] = own[at] if column.printed is None else np.where(printed > 0, printed, own[at])
    return lines


def distinct(values: Array) -> list[Any]:
    """Return the distinct values of a column, ascending."""
    if values.strides == (0,):
        return list(values[:1].tolist())
    if len(values) < BLOCK:
        return sorted(set(values.tolist()))
    if values.dtype.kind == "i" and len(values):
        least, most = extremes(values)
        if most - least < PIECE:
            counts = sum(np.bincount(values[part] - least, minlength=most - least + 1) for part in slices(len(values)))
            return list((np.flatnonzero(counts) + least).tolist())
    return sorted(set().union(*(distinct_values(values[part]).tolist() for part in slices(len(values)))))


def _code_type(count: int) -> type[np.integer[Any]]:
    """Return the type of the indexes of ``count`` sources."""
    return np.int8 if count <= 1 << 7 else np.int16


# --- the log ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """What one rule read: its records are rows from 0. ``metrics`` and ``others`` (figures outside the registry) map a name to
    columns of which the first with a value counts. ``meanings``: scope and definition of each metric. ``joined`` maps the name of
    another rule to the rows (ascending) to which a line of that rule adds figures."""

    grammar: Grammar
    rule: Rule
    columns: RuleColumns
    metrics: dict[str, Sequence[NumberColumn]]
    others: dict[str, Sequence[NumberColumn]]
    meanings: Mapping[str, Meaning]
    joined: Mapping[str, Integers] = field(default_factory=dict)

    @classmethod
    def of(cls, grammar: Grammar, rule: Rule, columns: RuleColumns) -> Source:
        """Return the source of a rule's columns. If two fields have one target, the first counts for a metric, else the last."""
        metrics: dict[str, Sequence[NumberColumn]] = {}
        others: dict[str, Sequence[NumberColumn]] = {}
        for name, column in columns.numbers.items():
            kind, target = rule.fields[name].target
            if kind == "metric":
                metrics[target] = (*metrics.get(target, ()), column)
            elif kind == "other":
                others[target] = (column, *others.get(target, ()))
        for name, column in columns.unregistered.items():
            others[name] = (column, *others.get(name, ()))
        printed = [spec for name, spec in rule.fields.items() if name in columns.numbers or rule.table or rule.block]
        meanings = {s.target[1]: (s.scope, s.definition) for s in reversed(printed) if s.target[0] == "metric"}
        return cls(grammar, rule, columns, metrics, others, meanings)

    @property
    def key(self) -> tuple[str, str]:
        """The ids of the grammar and of the rule."""
        return self.grammar.id, self.rule.name

    @property
    def is_step(self) -> bool:
        """Whether the records are step records; a companion only adds to one."""
        return self.rule.event == "step" and not self.rule.companion

    @property
    def speaks(self) -> bool:
        """Whether the rule read facts or texts; if not, none of its records prints any."""
        targets = (self.rule.fields[name].target for name in self.columns.numbers)
        return bool(self.columns.texts) or any(kind == "fact" or name in MOMENTS for kind, name in targets)

    @property
    def ranks(self) -> Integers:
        """The rank of each record: the value of a field if it prints one, else the label of its line."""
        labels, printed = self.columns.rank.whole(), self.counted("rank")
        return (
            labels
            if printed.strides == (0,) and printed[:1] != printed[:1]
            else np.where(np.isnan(printed), labels, printed).astype(np.int64)
        )

    def counted(self, target: str) -> Floats:
        """Return the values of the structural ``target`` (step, rank, a counter) without fractions (float64 [n]); NaN: none."""
        columns = [c for name, c in self.columns.numbers.items() if self.rule.fields[name].target == ("structural", target)]
        count = len(self.columns)
        if len(columns) == 1 and columns[0].dense and len(columns[0].values) == count:
            values: Floats = columns[0].values.whole()
            if all(bool((np.isfinite(piece) & (np.trunc(piece) == piece)).all()) for piece in parts_of(values)):
                return values
        found = np.full(count, math.nan) if columns else repeated(math.nan, count)
        for column in columns:
            values = column.values.whole()
            known = np.isfinite(values)
            rows = np.arange(len(values)) if column.dense else np.asarray(column.rows)
            found[rows[known]] = np.trunc(values[known])
        return found

    def taken(self, rows: Integers) -> Source:
        """Return the source with the records ``rows``, in their order."""
        columns, turned = self.columns, {int(row): number for number, row in enumerate(rows.tolist())}

        def moved(column: NumberColumn) -> NumberColumn:
            index, values = values_at(column, rows)
            lines = None if column.printed is None else Cells.of(values_at(column.printed, rows)[1])
            return NumberColumn(Cells.of(values), None if index is None else Cells.of(index), lines)

        def text(column: TextColumn) -> TextColumn:
            made = TextColumn()
            texts = zip(column.rows, column.values, strict=True)
            for row, value in sorted((turned[row], value) for row, value in texts if row in turned):
                made.append(row, value)
            return made

        at, line, rank, clock = (Cells.of(getattr(columns, name).whole()[rows]) for name in _PRINTED)
        numbers, others = ({n: moved(c) for n, c in each.items()} for each in (columns.numbers, columns.unregistered))
        texts = {name: text(column) for name, column in columns.texts.items()}
        return Source.of(self.grammar, self.rule, RuleColumns(at, line, rank, clock, numbers, texts, others))

    def joining(self, other: Source, mine: Rows, its: Rows, line: Integers, *, noted: bool, last: bool) -> Source:
        """Add the figures that ``other`` prints in its rows ``its`` to the rows ``mine`` (ascending) of this source, in pairs.

        If several rows print a figure, this source counts, then the first of ``its``; with ``last`` the last of ``its``, then
        this source. ``line``: the line of each row of ``its``. If ``noted``, ``joined`` records the rule of ``other``.
        """
        count = len(self.columns)
        every = isinstance(mine, slice) and not mine.start and mine.stop == count

        def moved(held: Sequence[NumberColumn]) -> NumberColumn | None:
            index, values = read(held, its)
            if not len(values):
                return None
            lines = at_rows(_lines_of(held, its, line), slice(0, len(line)) if index is None else index)
            if every and index is None:
                return NumberColumn(Cells.of(values), None, Cells.of(lines))
            rows = numbers_in(chosen(mine, index))
            changes = rows[1:] != rows[:-1]
            counts = np.append(changes, True) if last else np.append(True, changes)
            return NumberColumn(*(Cells.of(column[counts]) for column in (values, rows, lines)))

        def added(own: Mapping[str, Sequence[NumberColumn]], theirs: Mapping[str, Sequence[NumberColumn]]) -> Any:
            found = dict(own)
            for name, held in theirs.items():
                before = own.get(name, ())
                hidden = not last and any(one.dense and len(one.values) == count for one in before)
                column = None if hidden else moved(held)
                if column is not None:
                    found[name] = (column, *before) if last else (*before, column)
            return found

        rows = {**self.joined, other.rule.name: numbers_in(mine)} if noted else self.joined
        return replace(
            self, metrics=added(self.metrics, other.metrics), others=added(self.others, other.others),
            meanings={**other.meanings, **self.meanings}, joined=rows,
        )  # fmt: skip


class Cell(NamedTuple):
    """What a record prints, by name: metrics and ``others`` (outside the registry) in base units, facts, and other texts."""

    metrics: dict[str, float]
    others: dict[str, float]
    facts: dict[str, float | str]
    texts: dict[str, str]


class Log:
    """Holds the columns of all records (n) of a log; ``places`` are the rows of the records of each source, ascending."""

    def __init__(self, sources: Sequence[Source], places: Sequence[Rows], columns: Mapping[str, Array] = _NONE) -> None:
        self.sources, self.places = tuple(sources), tuple(places)
        self.first = tuple(range(len(sources)))
        """For each source the index of the one whose rows it has: its own, unless ``read_as`` made it from another source."""
        self.count = sum(map(size_of, places))
        self._columns = dict(columns)
        self._blocks: dict[tuple[int, int], list[Cell]] = {}

    def column(self, name: str) -> Array:
        """Return a column ([n]), read-only.

        ``at``, ``line``, ``rank`` (int64) and ``clock`` (float64) are those of the lines; ``step``, ``planned`` and ``COUNTERS``
        are whole numbers in float64, NaN if unknown; ``epoch`` is the epoch of a record that prints none; ``source`` is the
        index of the record's source in ``sources`` (int8, or int16 for more than 128 sources).
        """
        if name not in self._columns:
            made = self._made(name)
            made.flags.writeable = False
            self._columns[name] = made
        return self._columns[name]

    def _made(self, name: str) -> Array:
        if name == "epoch":
            return repeated(math.nan, self.count)
        if name == "source":
            if len(self.sources) < 2:
                return repeated(np.int8(0), self.count)
            codes = np.empty(self.count, _code_type(len(self.sources)))
            for number, rows in enumerate(self.places):
                put(codes, rows, number)
            return codes  # ``read_as`` sets this column itself
        if name == "rank":
            return self._spread([source.ranks for source in self.sources[: len(self.places)]])
        if name in _PRINTED:
            return self._spread([getattr(source.columns, name).whole() for source in self.sources[: len(self.places)]])
        return self._spread([source.counted(_STRUCTURAL[name]) for source in self.sources[: len(self.places)]])

    def _spread(self, values: Sequence[Array]) -> Array:
        """Return one column from the values of each source."""
        if len(values) == 1:
            return values[0].view()
        if all(each.strides == (0,) for each in values) and len({repr(each[0]) for each in values}) == 1:
            return repeated(values[0][0], self.count)
        found = scratch(values[0].dtype.type if values else np.float64, self.count)
        for rows, each in zip(self.places, values, strict=True):
            for part in slices(len(each)):
                mine = chosen(rows, part)
                found[mine] = each[part]
                show(8 * (size_of(mine) if isinstance(mine, slice) else int(mine[-1] - mine[0])))
        return found

    def having(self, sources: Sequence[Source] | None = None, **columns: Array) -> Log:
        """Return the log with the given columns, or with other sources for the same records."""
        for made in columns.values():
            made.flags.writeable = False
        log = Log(self.sources, self.places, {**self._columns, **columns})
        log.first = self.first
        if sources is None:
            log._blocks = self._blocks
        else:
            log.sources = tuple(sources)
        return log

    def own(self, number: int, rows: Rows) -> Rows:
        """Return the rows in a source (ascending) of some ``rows`` of the log."""
        places = self.places[self.first[number]]
        if isinstance(places, slice):
            if isinstance(rows, slice):
                return slice(rows.start - places.start, rows.stop - places.start)
            return rows - places.start if places.start else rows
        first, last = (rows.start, rows.stop - 1) if isinstance(rows, slice) else (rows[0], rows[-1])
        low, high = np.searchsorted(places, [first, last]).tolist()
        if high - low + 1 == size_of(rows) and (isinstance(rows, slice) or ascends(rows)):
            return slice(low, high + 1)
        return gathered(np.int64, size_of(rows), (np.searchsorted(places, each) for each in parts_of(numbers_in(rows))))

    def own_row(self, number: int, row: int) -> int:
        """Return the index in source ``number`` of the record that is row ``row`` of the log."""
        places = self.places[self.first[number]]
        return row - int(places.start) if isinstance(places, slice) else int(places.searchsorted(row))

    def cell(self, row: int) -> Cell:
        """Return the values that the record of a row prints."""
        number = int(self.column("source")[row])
        own = self.own_row(number, row)
        block = own // BLOCK
        if (number, block) not in self._blocks:
            if len(self._blocks) >= _KEPT:
                del self._blocks[next(iter(self._blocks))]
            self._blocks[number, block] = _cells(self.sources[number], block * BLOCK)
        return self._blocks[number, block][own % BLOCK]


def _cells(source: Source, begin: int) -> list[Cell]:
    """Return the values of each of ``BLOCK`` records of a source from row ``begin`` on."""
    columns, rule = source.columns, source.rule
    rows = slice(begin, min(begin + BLOCK, len(columns)))
    cells = [Cell({}, {}, {}, {}) for _ in range(rows.start, rows.stop)]
    for figures, part in ((source.metrics, 0), (source.others, 1)):
        for name, held in figures.items():
            index, values = read(held, rows)
            for at, value in zip(range(len(values)) if index is None else index.tolist(), values.tolist(), strict=True):
                cells[at][part][name] = value
    for name, column in columns.numbers.items():
        kind, target = rule.fields[name].target
        if kind == "fact" or target in MOMENTS:
            index, values = values_at(column, rows)
            for at, value in zip(range(len(values)) if index is None else index.tolist(), values.tolist(), strict=True):
                cells[at].facts[target] = value
    for name, text in columns.texts.items():
        kind, target = rule.fields[name].target
        low, high = np.searchsorted(np.asarray(text.rows), [rows.start, rows.stop]).tolist()
        for row, said in zip(text.rows[low:high], text.values[low:high], strict=True):
            cell = cells[row - begin]
            (cell.facts if kind == "fact" or target in MOMENTS else cell.texts)[target] = said
    return cells


def log_of(every_source: Iterable[Source]) -> Log:
    """Return the log of some sources; records at the same position are in the order of the sources."""
    sources = [source for source in every_source if len(source.columns)]
    if len(sources) < 2:
        return Log(sources, [slice(0, len(source.columns)) for source in sources])
    every = [source.columns.at.whole() for source in sources]  # ascending each
    most = max(range(len(every)), key=lambda number: len(every[number]))
    others = [number for number in range(len(every)) if number != most]
    at, number_of = np.concatenate([every[number] for number in others]), np.repeat(others, [len(every[n]) for n in others])
    order = np.arange(len(at)) if ascends(at) else np.argsort(at, kind="stable")
    at, number_of = at[order], number_of[order]
    left, right = (np.searchsorted(every[most], at, side) for side in ("left", "right"))
    places = np.arange(len(at)) + np.where(number_of < most, left, right)
    free = np.ones(len(at) + len(every[most]), np.bool_)
    free[places] = False
    placed = np.empty(len(at), np.int64)
    placed[order] = places
    every_place: list[Rows] = [where(free)] * len(every)
    begin = 0
    for number in others:
        mine = placed[begin : begin + len(every[number])]
        every_place[number] = slice(int(mine[0]), int(mine[-1]) + 1) if mine[-1] - mine[0] + 1 == len(mine) else mine
        begin += len(mine)
    return Log(sources, every_place)


# --- some rows of it -------------------------------------------------------------------------------------------------


T = TypeVar("T")


class _Value(Generic[T]):
    """Descriptor of ``Row``: reads one column of the log at the row, and returns what ``made`` makes of the value."""

    def __init__(self, name: str, made: Callable[[Any], T]) -> None:
        self.name, self.made = name, made

    def __get__(self, row: Row, owner: type[Row]) -> T:
        return self.made(row.log.column(self.name)[row.number].item())


class _Printed(Generic[T]):
    """Descriptor of ``Row``: reads one field of the row's ``Cell``, such as its facts."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, row: Row, owner: type[Row]) -> T:
        found: T = getattr(row.log.cell(row.number), self.name)
        return found


def _whole(value: float) -> int | None:
    return None if value != value else int(value)


class Row:
    """One row of a log, by its ``number``."""

    __slots__ = ("log", "number")

    def __init__(self, log: Log, number: int) -> None:
        self.log, self.number = log, number

    at = _Value("at", int)
    """The position of the record in the log."""
    line = _Value("line", int)
    """The line number, from 1."""
    rank = _Value("rank", int)
    """The rank that printed the record, or ``NO_RANK``."""
    clock = _Value("clock", float)
    """The time stamp in seconds; NaN if there is none."""
    step = _Value("step", _whole)
    """The step, or None."""
    planned = _Value("planned", _whole)
    """The planned number of steps, or None."""
    unregistered = _Printed[dict[str, float]]("others")
    """The metrics outside the registry."""
    facts = _Printed[dict[str, "float | str"]]("facts")
    """The facts."""
    texts = _Printed[dict[str, str]]("texts")
    """The texts that are no facts."""

    def __repr__(self) -> str:
        return f"Row({self.rule.name}, line {self.line}, step {self.step}, {self.metrics})"

    @property
    def source(self) -> Source:
        """What the rule of the record read."""
        return self.log.sources[int(self.log.column("source")[self.number])]

    @property
    def grammar(self) -> Grammar:
        """The grammar that read the record."""
        return self.source.grammar

    @property
    def rule(self) -> Rule:
        """The rule that read the record."""
        return self.source.rule

    @property
    def is_step(self) -> bool:
        """Whether the record is a step record; a companion only adds to one."""
        return self.source.is_step

    @property
    def counters(self) -> dict[str, int]:
        """The counters that a trainer which counts by epoch printed (see ``COUNTERS``)."""
        known = ((name, self.log.column(name)[self.number].item()) for name in COUNTERS)
        return {name: int(value) for name, value in known if value == value}

    @property
    def metrics(self) -> dict[str, float]:
        """The metrics, in base units."""
        found, epoch = self.log.cell(self.number).metrics, self.log.column("epoch")[self.number].item()
        return found if epoch != epoch or "epoch" in found else {**found, "epoch": epoch}

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules of the lines that print the figures of the record; its own first."""
        source = self.source
        return source.rule.name, *(name for name, rows in source.joined.items() if np.isin(self._own, rows))

    @property
    def _own(self) -> int:
        """The row in the source."""
        return self.log.own_row(int(self.log.column("source")[self.number]), self.number)

    def line_of(self, name: str) -> int:
        """Return the line that prints a metric of the record, in the registry or outside of it."""
        held = (*self.source.metrics.get(name, ()), *self.source.others.get(name, ()))
        if all(column.lines is None for column in held):
            return self.line
        return int(_lines_of(held, slice(self._own, self._own + 1), np.array([self.line]))[0])


class Column(NamedTuple):
    """A figure: ``rows`` of a table that have it (int64 [m], or a slice), in log order, and their ``values`` (float64 [m])."""

    rows: Rows
    values: Floats

    def within(self, mask: Mask | None) -> Column:
        """Return the figure at the rows of a mask of the table; None: at all rows."""
        return self if mask is None else self.chosen(at_rows(mask, self.rows))

    def chosen(self, mask: Mask) -> Column:
        """Return the figure with only the values in ``mask``, which has an entry for each value."""
        index = where(mask)
        return Column(chosen(self.rows, index), at_rows(self.values, index))

    def row(self, place: int) -> int:
        """Return the row of the value at the index ``place``."""
        return self.rows.start + place if isinstance(self.rows, slice) else int(self.rows[place])


class _Column(Generic[T]):
    """Descriptor of ``EventTable``: reads one column of the log at all rows of the table."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, table: EventTable, owner: type[EventTable]) -> T:
        found: T = table.column(self.name)  # type: ignore[assignment]
        return found


class EventTable:
    """Some records (n) of a log, in log order: ``rows`` are their rows in the log, ascending."""

    def __init__(self, log: Log, rows: Rows | None = None) -> None:
        self.log, self.rows = log, slice(0, log.count) if rows is None else rows
        self.count = size_of(self.rows)
        self._known: dict[str, Array] = {}
        self._figures: dict[str, Column] = {}

    def __len__(self) -> int:
        return self.count

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> EventTable: ...
    def __getitem__(self, index: int | slice) -> Row | EventTable:
        """Return the row at an index, or the table of a slice."""
        if isinstance(index, slice):
            start, stop, _ = index.indices(self.count)
            return EventTable(self.log, chosen(self.rows, slice(start, max(start, stop))))
        place = range(self.count)[index]
        return Row(self.log, self.rows.start + place if isinstance(self.rows, slice) else int(self.rows[place]))

    def __iter__(self) -> Iterator[Row]:
        for part in slices(self.count):
            for number in numbers_in(chosen(self.rows, part)).tolist():
                yield Row(self.log, number)

    # --- columns ---------------------------------------------------------------------------------------------------

    def column(self, name: str) -> Array:
        """Return a column of the log for the rows of this table ([n]; see ``Log.column``)."""
        if name not in self._known:
            self._known[name] = at_rows(self.log.column(name), self.rows)
        return self._known[name]

    at = _Column[Integers]("at")
    """The position in the log of each record (int64 [n])."""
    line = _Column[Integers]("line")
    """The line of each record (int64 [n])."""
    clock = _Column[Floats]("clock")
    """The time stamp of each record in seconds (float64 [n]); NaN if it has none."""
    rank = _Column[Integers]("rank")
    """The rank of each record (int64 [n]), or ``NO_RANK``."""
    steps = _Column[Floats]("step")
    """The step of each record (float64 [n]); NaN if it has none."""

    @property
    def line_span(self) -> tuple[int, int]:
        """The lowest and the highest line of the records, at least one."""
        return extremes(self.line)

    @cached_property
    def step(self) -> Integers:
        """The step of each record (int64 [n]); ``NO_STEP`` if it has none."""
        parts = (self.steps[part] for part in slices(self.count))
        whole = (np.where(np.abs(each) < LARGE, each, NO_STEP) for each in parts)
        return gathered(np.int64, self.count, (each.astype(np.int64) for each in whole))

    @cached_property
    def parts(self) -> list[tuple[Source, Rows, Rows]]:
        """The sources of the records, each with the rows of its records: first in this table, then in the source."""
        codes = at_rows(self.log.column("source"), self.rows)  # not kept: ``parts`` is
        numbers = distinct(codes)
        found: list[tuple[Source, Rows, Rows]] = []
        for number in numbers:
            places: Rows = slice(0, self.count) if len(numbers) == 1 else where(codes == number)
            found.append((self.log.sources[number], places, self.log.own(number, chosen(self.rows, places))))
        return found

    @property
    def sources(self) -> list[Source]:
        """The sources (what one rule read, see ``Source``) of which the table has records."""
        return [source for source, _, _ in self.parts]

    def series(self, mask: Mask) -> Iterator[tuple[Source, Rows]]:
        """Yield for each source and rank the source and the rows (ascending) of its records in a mask."""
        for source, rows, _ in self.parts:
            mine = chosen(rows, where(at_rows(mask, rows)))
            ranks = at_rows(self.rank, mine)
            several = distinct(ranks)
            for rank in several:
                yield source, mine if len(several) == 1 else chosen(mine, where(ranks == rank))

    def by_source(self, value: Callable[[Source], Any]) -> Array:
        """Return for each record ([n]) what the function ``value`` returns for its source."""
        codes, known = at_rows(self.log.column("source"), self.rows), [value(source) for source in self.log.sources]
        if codes.strides == (0,) and len(codes):
            return repeated(known[codes[0]], self.count)
        found: Array = np.asarray(known)[codes] if known else np.empty(0, np.bool_)
        return found

    # --- other tables ----------------------------------------------------------------------------------------------

    def chosen(self, index: Rows) -> EventTable:
        """Return the table of the records at ``index``."""
        return EventTable(self.log, chosen(self.rows, index))

    def where(self, mask: Mask) -> EventTable:
        """Return the table of the records in a mask."""
        return self if mask.all() else self.chosen(where(mask))

    def of_sources(self, wanted: Callable[[Source], bool]) -> EventTable:
        """Return the table of the records for whose source the function ``wanted`` returns true."""
        return self.where(self.by_source(wanted))

    def between(self, start: int, end: int) -> EventTable:
        """Return the table of the records from one position in the log to another (exclusive)."""
        first, last = np.searchsorted(self.at, [start, end]).tolist()
        return self[first:last]

    def with_(self, *others: EventTable) -> EventTable:
        """Return the table of all records of this table and of ``others``, tables of the same log."""
        tables = [table for table in (self, *others) if table.count]
        if len(tables) < 2:
            return tables[0] if tables else self
        if sum(table.count for table in tables) <= PIECE:
            return EventTable(self.log, np.sort(np.concatenate([numbers_in(table.rows) for table in tables])))
        mask = np.zeros(self.log.count, np.bool_)
        for table in tables:
            put(mask, table.rows, True)
        return EventTable(self.log, where(mask))

    def having(self, **columns: Array | Sequence[float]) -> EventTable:
        """Return the table with other values ([n] each) in the named columns of its log."""
        made: dict[str, Array] = {}
        for name, given in columns.items():
            values: Array = np.asarray(given)
            if self.count < self.log.count:
                whole = np.array(self.log.column(name))
                whole[self.rows] = values
                values = whole
            made[name] = values
        return EventTable(self.log.having(None, **made), self.rows)

    def of(self, log: Log) -> EventTable:
        """Return the same rows of another log with as many rows."""
        return EventTable(log, self.rows)

    def joining(self, owners: Integers, members: Integers, *, noted: bool = False, last: bool = False) -> EventTable:
        """Return the table with the figures of the rows ``members`` of the log added to the rows ``owners``, pair by pair.

        If several rows print a figure, the record itself counts, then the first addition; with ``last`` the last addition, then
        the record. If ``noted``, ``Row.rules`` names the rules of the additions.
        """
        log = self.log
        sources, codes = list(log.sources), log.column("source")
        pair = codes[owners].astype(np.int64) * len(sources) + codes[members]
        order = np.argsort(owners, kind="stable")
        for one in dict.fromkeys(pair.tolist()):
            own, other = divmod(one, len(sources))
            mine = order[pair[order] == one]
            rows, line = (log.own(own, owners[mine]), log.own(other, members[mine])), log.column("line")[members[mine]]
            sources[own] = sources[own].joining(log.sources[other], *rows, line, noted=noted, last=last)
        epochs: Array = log.column("epoch")
        if epochs.strides != (0,) and not np.isnan(epochs[members]).all():
            epochs = np.array(epochs)
            epochs[owners] = np.where(np.isnan(epochs[owners]), epochs[members], epochs[owners])
        return self.of(log.having(sources, epoch=epochs))

    def read_as(self, index: Integers, made: Callable[[Source], Source]) -> EventTable:
        """Return the table with its records at ``index`` read otherwise: ``made`` makes their new sources from the old ones."""
        log, rows = self.log, numbers_in(chosen(self.rows, index))
        codes, sources, first = log.column("source"), list(log.sources), list(log.first)
        numbers = distinct_values(codes[rows]).tolist()
        codes = np.array(codes, _code_type(len(sources) + len(numbers)))
        for number in numbers:
            codes[rows[codes[rows] == number]] = len(sources)
            sources.append(made(sources[number]))
            first.append(first[number])
        changed = log.having(sources, source=codes)
        changed.first = tuple(first)
        return self.of(changed)

    def moved(self, at: Integers) -> EventTable:
        """Return a log of its own with the records of this table, each at its new position (``at``)."""
        order = np.argsort(at, kind="stable")
        place_of = np.empty(len(order), np.int64)
        place_of[order] = np.arange(len(order))
        sources: list[Source] = []
        places: list[Rows] = []
        for source, rows, own in self.parts:
            turn = np.argsort(place_of[rows])
            sources.append(source.taken(numbers_in(own)[turn]))
            places.append(place_of[rows][turn])
        return EventTable(Log(sources, places, {"at": at[order], "rank": self.rank[order]}))

    # --- figures ---------------------------------------------------------------------------------------------------

    def metric(self, name: str) -> Column:
        """Return the values of a metric in base units, and the rows of the records that print it."""
        found = self._figure(name, lambda source: source.metrics.get(name, ()))
        if name != "epoch" or (epochs := self.column("epoch")).strides == (0,):
            return found
        values = gathered(np.float64, self.count, (epochs[part] for part in slices(self.count)))
        known = ~np.isnan(values)
        values[found.rows], known[found.rows] = found.values, True
        return Column(slice(0, self.count), values).chosen(known)

    def other(self, name: str) -> Column:
        """Return a metric outside the registry as a figure."""
        return self._figure(f"other {name}", lambda source: source.others.get(name, ()))

    def _figure(self, name: str, held: Callable[[Source], Sequence[NumberColumn]]) -> Column:
        if name not in self._figures:
            made = self._made(held)
            if self.count > PIECE:
                return made
            self._figures[name] = made
        return self._figures[name]

    def _made(self, held: Callable[[Source], Sequence[NumberColumn]]) -> Column:
        found: list[Column] = []
        for source, places, own in self.parts:
            if columns := held(source):
                index, values = read(columns, own)
                found.append(Column(chosen(places, index), values))
        if len(found) == 1:
            return found[0]
        if not found:
            return Column(slice(0, 0), np.empty(0))
        known = np.zeros(self.count, np.bool_)
        for column in found:
            put(known, column.rows, True)

        every = (_filled(found, part)[known[part]] for part in slices(self.count))
        return Column(where(known), gathered(np.float64, sum(len(column.values) for column in found), every))

    def metric_names(self) -> list[str]:
        """Return the names of the metrics that any record prints."""
        names = [name for source, _, own in self.parts for name, held in source.metrics.items() if _any(held, own)]
        if (epochs := self.column("epoch")).strides != (0,) and not np.isnan(epochs).all():
            names.append("epoch")
        return list(dict.fromkeys(names))

    def other_names(self) -> list[str]:
        """Return the names of the metrics outside the registry, in the order of the first records that print them."""
        firsts: dict[str, tuple[int, int]] = {}
        for source, places, own in self.parts:
            for number, (name, held) in enumerate(source.others.items()):
                index, values = read(held, own)
                if len(values):
                    first = Column(chosen(places, index), values).row(0), number
                    firsts[name] = min(first, firsts.get(name, first))
        return sorted(firsts, key=firsts.__getitem__)

    def prints(self, name: str) -> bool:
        """Return whether any record prints a metric."""
        return len(self.metric(name).values) > 0

    def filled(self, name: str) -> Floats:
        """Return a metric as a column (float64 [n]); NaN if a record has none."""
        return self.spread(self.metric(name))

    def spread(self, found: Column) -> Floats:
        """Return a figure as a column (float64 [n]); NaN if a record has none."""
        if isinstance(found.rows, slice) and found.rows == slice(0, self.count):
            return found.values

        return gathered(np.float64, self.count, (_filled([found], part) for part in slices(self.count)))

    def figure(self, values: Floats, known: Mask) -> Column:
        """Return as a figure the ``values`` (float64 [n], one for each record) at which the mask ``known`` is true."""
        return Column(slice(0, self.count), values).chosen(known)

    @cached_property
    def positions(self) -> Floats:
        """The position in training of each record (float64 [n]): its step, else its epoch; NaN if it prints neither."""
        if not any(bool(np.isnan(self.steps[part]).any()) for part in slices(self.count)):
            return self.steps
        steps, epochs = self.steps, self.filled("epoch")
        parts = (np.where(np.isnan(steps[part]), epochs[part], steps[part]) for part in slices(self.count))
        return gathered(np.float64, self.count, parts)

    @cached_property
    def inside(self) -> Floats:
        """The batches or samples so far inside the epoch of each record (float64 [n]); NaN if it prints none."""
        inside = self.column("epoch_step")
        for source, rows, _ in self.parts:
            name = next(filter(_INSIDE.search, source.others), None)
            if name is not None:
                mine = numbers_in(rows)
                values = self.chosen(rows).spread(self.chosen(rows).other(name))
                inside = np.array(inside)
                inside[mine] = np.where(np.isnan(inside[mine]), values, inside[mine])
        return inside

    def steps_of(self, column: Column) -> Floats:
        """Return the steps of the records that have a figure (float64 [m]); NaN if one has none."""
        return at_rows(self.steps, column.rows)


def _filled(columns: Iterable[Column], part: slice) -> Floats:
    """Return the values of some figures at the rows of a slice; NaN at a row that none of them has."""
    values = np.full(part.stop - part.start, math.nan)
    for column in columns:
        first, last = before_in(column.rows, np.array([part.start, part.stop])).tolist()
        values[numbers_in(chosen(column.rows, slice(first, last))) - part.start] = column.values[first:last]
    return values


def _any(held: Sequence[NumberColumn], own: Rows) -> bool:
    return any(len(values_at(column, own)[1]) for column in held)


def of_grammar(name: str) -> Callable[[Source], bool]:
    """Return a function that tells whether a source is of a grammar."""
    return lambda source: source.grammar.id == name


@cache
def is_memory(name: str) -> bool:
    """Return whether a metric is memory in use, in bytes."""
    return "memory" in name and "free" not in name and name.endswith("_bytes")


def place_of(values: Floats, value: float) -> int | None:
    """Return the index of the first occurrence of a value; None if there is none."""
    seen = 0
    for part in parts_of(values):
        if (equal := part == value).any():
            return seen + int(equal.argmax())
        seen += len(part)
    return None


class Series(Mapping[str, Sequence[float]]):
    """Holds the values of metrics in step order, as views of the table if all records are wanted."""

    def __init__(self, names: Iterable[str] = (), table: EventTable | None = None, steady: Mask | None = None) -> None:
        """``steady``: the mask of the rows in the steady window; None: all."""
        self._names = dict.fromkeys(names)
        self.table, self.within = table or EventTable(Log([], [])), steady

    def __getitem__(self, name: str) -> Sequence[float]:
        if name not in self._names:
            raise KeyError(name)
        return cast("Sequence[float]", self.table.metric(name).values.data)

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
        """Return the largest value of a metric, infinities included; None if it has none except NaN."""
        values = self.figure(name).values
        known = values[~np.isnan(values)]
        return float(known.max()) if len(known) else None


def curve_of(table: EventTable, column: Column) -> tuple[Floats, Floats]:
    """Return steps and values (float64 [m] each) of a figure; records without a step are left out."""
    steps = table.steps_of(column)
    numbered = where(not_nan(steps))
    return at_rows(steps, numbered), at_rows(column.values, numbered)


def numbered_steps(table: EventTable) -> Floats:
    """Return the steps (float64 [m]) of the records that have one."""
    return at_rows(table.steps, where(not_nan(table.steps)))


def losses_of(steps: EventTable) -> Iterator[tuple[float, float]]:
    """Yield position and loss of each record that prints both."""
    found = steps.metric("loss")
    known = found.chosen(not_nan(at_rows(steps.positions, found.rows)))
    places = at_rows(steps.positions, known.rows)
    for part in slices(len(places)):
        yield from zip(places[part].tolist(), known.values[part].tolist(), strict=True)


@dataclass(slots=True)
class Places:
    """The lines (from 1; None if there is none) of the first, last, least and greatest value of a metric, and of its first NaN
    and first infinity with their counts; all but the first two are of the steady window. ``resolution``: of the digits."""

    first_line: int | None = None
    last_line: int | None = None
    min_line: int | None = None
    max_line: int | None = None
    nan_count: int = 0
    nan_line: int | None = None
    inf_count: int = 0
    inf_line: int | None = None
    resolution: float | None = None


def find_places(table: EventTable, printed: Column, windowed: Column, name: str, statistic: Statistic) -> Places:
    """Return the lines of the values of ``statistic``, among all ``printed`` values of a metric and those of its window."""

    def line(column: Column, place: int | None) -> int | None:
        return None if place is None else table[column.row(place)].line_of(name)

    values = windowed.values
    odd = numbers_in(where(mask_of(len(values), lambda part: ~np.isfinite(values[part]))))
    nans, infinite = (odd[is_kind(at_rows(values, odd))].tolist() for is_kind in (np.isnan, np.isinf))
    least, most = (None if value is None else place_of(values, value) for value in (statistic.min, statistic.max))
    return Places(
        line(printed, 0), line(printed, len(printed.values) - 1), line(windowed, least), line(windowed, most),
        len(nans), line(windowed, next(iter(nans), None)), len(infinite), line(windowed, next(iter(infinite), None)),
    )  # fmt: skip
