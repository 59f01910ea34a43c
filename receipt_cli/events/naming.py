"""Name the cells that only another record names: those of a table's rows, by the header before them, and a block's rows.

In: the columns of a rule as scanned. Out: columns like those of any other rule, whose rows are the records of the table,
or the opening lines of the blocks.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import Any

from receipt_cli.events.ledger import Ledger
from receipt_cli.grammar.model import Grammar, Rule
from receipt_cli.lazy_dataclass import dataclass, field
from receipt_cli.numeric.column import Cells
from receipt_cli.problems import EXCERPT_BYTES, Problem
from receipt_cli.records.envelope import NO_RANK
from receipt_cli.scan.columns import POSITION_BITS, NumberColumn, RuleColumns, TextColumn
from receipt_cli.scan.extraction import bind_columns, bind_row, convert, read_unregistered
from receipt_cli.scan.segment import count_between

PIECE = 4096
"""Rows of a table that are named together."""


class Naming:
    """Names the cells of one grammar's rules, and collects what is wrong with them."""

    def __init__(self, grammar: Grammar, ledger: Ledger, copied: Sequence[int]) -> None:
        """Lines that are ``copied`` are not between the rows of a block."""
        self.grammar, self.ledger, self.copied = grammar, ledger, copied
        self.found: list[Problem] = []
        self.orphans: dict[int, Problem] = {}
        self.joined = array("q")
        """Positions of the rows that joined a block: what one rule has no block for may be a row of another's."""

    @property
    def problems(self) -> list[Problem]:
        """What is wrong, and the rows without a block."""
        joined = set(self.joined) if self.orphans else ()
        return [*self.found, *(problem for at, problem in self.orphans.items() if at not in joined)]

    def named(self, rule: Rule, columns: RuleColumns) -> RuleColumns:
        """Return the columns with all cells named."""
        if rule.table is not None:
            return self._table(rule, columns)
        return columns if rule.block is None else self._blocks(rule, columns)

    def _table(self, rule: Rule, columns: RuleColumns) -> RuleColumns:
        """Bind the cells of each row to the latest header row before it; rows that do not fit it are none."""
        assert rule.table is not None
        made, rows = _Named(rule), array("q")
        headers, cells = _Texts(columns.headers), _Texts(columns.cells)
        known: dict[str | None, _Under] = {None: _Under(())}
        under = known[None]
        for row, line in enumerate(columns.line):
            names, texts = headers.at(row), cells.at(row)
            if names is not None:
                under = known.get(names) or known.setdefault(names, _Under(names.split("\t")))
                continue
            values = None if texts is None else texts.split("\t")[rule.table.skip_cells :]
            if values is None or len(values) != len(under.names):
                self.found.append(Problem("table_row_without_header", line, f"{rule.name}: cells do not fit the header", ""))
                continue
            under.records.append(len(rows))
            under.lines.append(line)
            under.cells.append(values)
            rows.append(row)
            if len(under.cells) == PIECE:
                self._name(made, under)
        for under in known.values():
            self._name(made, under)
        return made.finish(columns, rows)

    def _name(self, made: _Named, under: _Under) -> None:
        """Name the cells of the rows below a header."""
        if not under.cells:
            return
        assert made.rule.table is not None
        fields, others = bind_columns(made.rule.table, under.names, under.cells)
        for name, texts in fields.items():
            spec = made.rule.fields[name]
            values = [convert(spec, text)[0] for text in texts]
            if all(isinstance(value, float) for value in values):
                made.number(name).extend(under.records, values)  # type: ignore[arg-type]
            else:
                for row, text, line in zip(under.records, texts, under.lines, strict=True):
                    self._put(made, row, name, text, line)
            self.ledger.read[name] += len(texts)
        for name, found in others.items():
            if found:
                made.other(name).extend([under.records[row] for row in found], found.values())
                self.ledger.other[name] += len(found)
        under.records, under.lines, under.cells = array("q"), array("q"), []

    def _blocks(self, rule: Rule, columns: RuleColumns) -> RuleColumns:
        """Join the rows of each block to its opening line, or to the row that began it; a rank's rows stay its own.

        A row without a rank joins the block opened last where only opening lines have a rank.
        """
        spec = rule.block
        assert spec is not None
        made = _Named(rule)
        rows = array("q")
        complete = bytearray()
        """Of each block whether it has the rows that it must have."""
        begun: dict[int, _Open] = {}
        latest: _Open | None = None
        pairs = _Texts(columns.pairs)
        for row, (at, line, rank) in enumerate(zip(columns.at, columns.line, _ranks(rule, columns), strict=True)):
            ordinal, pair = at >> POSITION_BITS, pairs.at(row)
            block = None if pair is None else begun.get(rank)
            key, _, value = (pair or "").partition("\t")
            if pair is not None and block is None and rank == NO_RANK and spec.open is not None:
                block = latest
            if block is not None:
                between = count_between(self.copied, block.line, line) if self.copied else 0
                if ordinal - block.last - between > spec.gap + 1 or (spec.open is None and key in block.keys):
                    block = None
            if block is None:
                if pair is not None and spec.open is not None:
                    self.orphans[at] = Problem("block_row_without_opening", line, f"{rule.name}: {key[:64]!r}", "")
                    continue
                block = begun[rank] = _Open(len(rows), line, ordinal, line)
                latest = block if pair is None else latest
                rows.append(row)
                complete.append(not spec.requires)
            if pair is None:
                continue
            block.last, block.line = ordinal, line
            self.joined.append(at)
            again = key in block.keys
            same = block.keys.setdefault(key, value) == value  # a block may print a row twice
            bound = bind_row(spec, (key, value)) if same else None
            if bound is not None:
                name, text = bound
                if not again and isinstance(text, float):
                    made.other(name).add(block.number, text, line)
                elif not again and isinstance(text, str):
                    self._put(made, block.number, name, text, block.first_line, line)
                    block.names.add(name)
                    complete[block.number] = spec.requires <= block.names
                (self.ledger.read if isinstance(text, str) else self.ledger.other)[name] += 1
            elif key not in spec.ignore and read_unregistered(value) is not None:
                self.ledger.dropped[key] += 1
        return made.finish(columns, rows, complete)

    def _put(self, made: _Named, row: int, name: str, text: str, line: int, own: int = 0) -> None:
        """Add the value of a field of the record at ``line``, which its line ``own`` prints."""
        value, readable = convert(made.rule.fields[name], text)
        if isinstance(value, str):
            made.text(name).append(row, value)
        elif value is not None:
            made.number(name).add(row, value, own)
        elif not readable:
            detail = f"{self.grammar.ref} {made.rule.name}.{name}: {text[:64]!r}"
            self.found.append(Problem("unreadable_value", line, detail, text[:EXCERPT_BYTES]))


@dataclass(slots=True)
class _Open:
    """A block that rows may still join: its number, the ordinal and the line of its last row, the keys and fields it has."""

    number: int
    first_line: int
    last: int
    line: int
    keys: dict[str, str] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)


class _Under:
    """The rows of a table that have one header: their records, lines and cells."""

    def __init__(self, names: Sequence[str]) -> None:
        self.names = names
        self.records, self.lines = array("q"), array("q")
        self.cells: list[list[str]] = []


class _Texts:
    """The texts of a column, asked for by ascending rows."""

    def __init__(self, column: TextColumn) -> None:
        self._pairs = zip(column.rows, column.values, strict=True)
        self._next = next(self._pairs, None)

    def at(self, row: int) -> str | None:
        """Return the text of a row, None where it has none."""
        if self._next is None or self._next[0] != row:
            return None
        text, self._next = self._next[1], next(self._pairs, None)
        return text


class _Values:
    """The values of one column: for each its record, and the line that prints it where that is not the record's (else 0).

    A record may have several: of a metric the first counts, else the last. The line is that of the first.
    """

    def __init__(self, first_counts: bool) -> None:
        self.first_counts = first_counts
        self.rows, self.values, self.lines = array("q"), array("d"), array("q")

    def add(self, row: int, value: float, line: int = 0) -> None:
        """Add a value."""
        if line or self.lines:
            self._lines_to(len(self.rows))
            self.lines.append(line)
        self.rows.append(row)
        self.values.append(value)

    def extend(self, rows: Iterable[int], values: Iterable[float], lines: Sequence[int] = ()) -> None:
        """Add values, those of records themselves where there are no ``lines``."""
        if lines:
            self._lines_to(len(self.rows))
            self.lines.extend(lines)
        self.rows.extend(rows)
        self.values.extend(values)

    def _lines_to(self, count: int) -> None:
        self.lines.frombytes(bytes(8 * (count - len(self.lines))))

    def column(self, places: Sequence[int]) -> NumberColumn:
        """Return them by ascending record, each at its place; those of a record that has none (-1) are left out."""
        if self.lines:
            self._lines_to(len(self.rows))
        rows, values, lines = self.rows, self.values, self.lines
        if any(after <= before for before, after in pairwise(rows)):
            order = sorted(range(len(rows)), key=rows.__getitem__)
            firsts = [at for n, at in enumerate(order) if not n or rows[order[n - 1]] != rows[at]]
            lasts = [at for n, at in enumerate(order, 1) if n == len(order) or rows[order[n]] != rows[at]]
            values = array("d", [values[at] for at in (firsts if self.first_counts else lasts)])
            rows, lines = (array("q", [held[at] for at in firsts]) if held else held for held in (rows, lines))
        if not isinstance(places, range):
            kept = [at for at, row in enumerate(rows) if places[row] >= 0]
            values = array("d", [values[at] for at in kept])
            rows, lines = array("q", [places[rows[at]] for at in kept]), array("q", [lines[at] for at in kept] if lines else ())
        dense = not rows or rows[-1] == len(rows) - 1
        return NumberColumn(_cells(values), None if dense else _cells(rows), _cells(lines) if lines else None)


class _Named:
    """The columns of a rule whose cells are being named."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self._first = {target: name for name, target in reversed([(n, f.target) for n, f in rule.fields.items()])}
        self._numbers: dict[str, _Values] = {}
        self._texts: dict[str, TextColumn] = {}
        self._others: dict[str, _Values] = {}

    def number(self, name: str) -> _Values:
        """Return the values of a field; fields of one target print one figure."""
        target = self.rule.fields[name].target
        name = self._first[target]
        return self._numbers.get(name) or self._numbers.setdefault(name, _Values(target[0] == "metric"))

    def text(self, name: str) -> TextColumn:
        """Return the texts of a field."""
        return self._texts.get(name) or self._texts.setdefault(name, TextColumn())

    def other(self, name: str) -> _Values:
        """Return the values of a key that no field has."""
        return self._others.get(name) or self._others.setdefault(name, _Values(False))

    def finish(self, columns: RuleColumns, rows: array[int], wanted: Sequence[int] | None = None) -> RuleColumns:
        """Return the columns of the records, which are at ``rows`` of ``columns``: all, or those that are ``wanted``."""
        places: Sequence[int] = range(len(rows))
        if wanted is not None and not all(wanted):
            places = [count if good else -1 for count, good in zip(accumulate(wanted, initial=0), wanted, strict=False)]
        found = dict(sorted(self._others.items(), key=lambda item: min(item[1].rows)))  # as the records name them
        numbers, others = (
            {name: column for name, values in named.items() if len((column := values.column(places)).values)}
            for named in (self._with(columns.numbers, self._numbers, rows), self._with(columns.unregistered, found, rows))
        )
        texts: dict[str, TextColumn] = {}
        for name, text in (*columns.texts.items(), *self._texts.items()):
            own = name in self._texts and text is self._texts[name]
            for row, value in zip(text.rows, text.values, strict=True):
                place = row if own else _place(rows, row)
                if place >= 0 and places[place] >= 0:
                    texts.setdefault(name, TextColumn()).append(places[place], value)
        kept = (
            rows
            if isinstance(places, range)
            else array("q", [row for row, place in zip(rows, places, strict=True) if place >= 0])
        )
        at, line, rank = (part.picked(kept) for part in (columns.at, columns.line, columns.rank))
        return RuleColumns(at, line, rank, columns.clock.picked(kept), numbers, texts, others)

    def _with(self, printed: dict[str, NumberColumn], named: dict[str, _Values], rows: array[int]) -> dict[str, _Values]:
        """Return what the records print themselves, which comes first, and what was named."""
        made: dict[str, _Values] = {}
        for name, column in printed.items():
            own = named is self._numbers and self.rule.fields[name].target[0] == "metric"
            made[name] = _Values(own)
            for row, value in zip(column.rows, column.values, strict=True):
                if (place := _place(rows, row)) >= 0:
                    made[name].add(place, value)
        for name, values in named.items():
            into = made.setdefault(name, values)
            if into is not values:
                into.extend(values.rows, values.values, values.lines)
        return made


def _cells(values: array[Any]) -> Cells[Any]:
    cells: Cells[Any] = Cells(values.typecode)
    cells.extend(values)
    return cells


def _place(rows: array[int], row: int) -> int:
    """Return where ``row`` is among ``rows``, ascending; -1 where it is not."""
    place = bisect_left(rows, row)
    return place if place < len(rows) and rows[place] == row else -1


def _ranks(rule: Rule, columns: RuleColumns) -> Sequence[int]:
    """Return the rank of each row: as a field prints it, else the label of its line."""
    found: Sequence[int] = columns.rank
    for name, numbers in columns.numbers.items():
        if rule.fields[name].target == ("structural", "rank"):
            printed = {row: int(value) for row, value in zip(numbers.rows, numbers.values, strict=True) if math.isfinite(value)}
            found = [printed.get(row, rank) for row, rank in enumerate(found)]
    return found
