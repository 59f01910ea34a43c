"""The columns of a rule whose cells are being named: values by record, of which a record may have several; what is wrong."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from itertools import accumulate, pairwise, repeat

from receipt_cli.events.model import Ledger
from receipt_cli.events.rows import values_at
from receipt_cli.grammar.model import Grammar, Rule
from receipt_cli.numeric.array_types import Floats, Integers
from receipt_cli.numeric.arrays import is_large
from receipt_cli.numeric.column import Cells
from receipt_cli.numeric.lazy_numpy import np
from receipt_cli.numeric.spill import ascends
from receipt_cli.problems import EXCERPT_BYTES, Problem
from receipt_cli.scan.columns import NumberColumn, RuleColumns, TextColumn


class Notes:
    """What is counted of the cells of one grammar's rules, and what is wrong with them."""

    def __init__(self, grammar: Grammar, ledger: Ledger, copied: Sequence[int]) -> None:
        """Lines that are ``copied`` are not between the rows of a block."""
        self.grammar, self.ledger, self.copied = grammar, ledger, copied
        self.found: list[Problem] = []
        self.orphans: dict[int, Problem] = {}
        self.joined: Cells[int] = Cells("q")
        """Positions of the rows that joined a block: what one rule has no block for may be a row of another's."""

    @property
    def problems(self) -> list[Problem]:
        """What is wrong, and the rows without a block."""
        joined = set(self.joined) if self.orphans else ()
        return [*self.found, *(problem for at, problem in self.orphans.items() if at not in joined)]

    def unreadable(self, rule: Rule, name: str, text: str, line: int) -> None:
        """Note a value of a field that cannot be read."""
        detail = f"{self.grammar.ref} {rule.name}.{name}: {text[:64]!r}"
        self.found.append(Problem("unreadable_value", line, detail, text[:EXCERPT_BYTES]))

    def without_header(self, rule: Rule, line: int) -> None:
        """Note a row of a table that does not fit the header before it."""
        self.found.append(Problem("table_row_without_header", line, f"{rule.name}: cells do not fit the header", ""))

    def orphan(self, rule: Rule, key: str, at: int, line: int) -> None:
        """Note a row at ``at`` that has no block of this rule."""
        self.orphans[at] = Problem("block_row_without_opening", line, f"{rule.name}: {key[:64]!r}", "")


class Values:
    """The values of one column: for each its record, and the line that prints it where that is not the record's (else 0).

    A record may have several: of a metric the first counts, else the last. The line is that of the first.
    """

    def __init__(self, first_counts: bool) -> None:
        self.first_counts = first_counts
        self.held = NumberColumn()
        """The values in the order in which they were added: records may come again, and out of turn."""
        self.lines: Cells[int] = Cells("q")

    def add(self, row: int, value: float, line: int = 0) -> None:
        """Add a value."""
        if line or self.lines:
            self._lines_to(len(self.held.values))
            self.lines.append(line)
        self.held.append(row, value)

    def extend_with(self, rows: Integers, values: Floats, lines: Integers | None = None) -> None:
        """Add values (float64 [n]) of records (int64 [n]); no ``lines`` where records print them themselves."""
        if not len(rows):
            return
        if lines is not None:
            self._lines_to(len(self.held.values))
            self.lines.extend_array(lines)
        follow = bool(rows[-1] - rows[0] == len(rows) - 1 and (rows[1:] > rows[:-1]).all())
        self.held.extend_bytes(values.tobytes(), None if follow else rows.tobytes(), int(rows[0]))

    @property
    def first(self) -> int:
        """The first of their records."""
        if self.held.dense or not is_large(self.held.values):
            return self.held.rows[0] if self.held.dense else min(self.held.rows)
        return int(self.held.sparse().whole().min())

    def extend(self, other: Values) -> None:
        """Add the values of another column."""
        if other.lines:
            self._lines_to(len(self.held.values))
            self.lines.extend(other.lines)
        self.held.extend(other.held, 0)

    def _lines_to(self, count: int) -> None:
        self.lines.extend_bytes(bytes(8 * (count - len(self.lines))))

    def column(self, places: range | array[int]) -> NumberColumn:
        """Return them by ascending record, each at its place; those of a record that has none (-1) are left out."""
        if self.lines:
            self._lines_to(len(self.held.values))
        held, rows, values, lines = self.held, self.held.rows, self.held.values, self.lines
        large = is_large(values)
        if isinstance(places, range) and (held.dense or (ascends(held.index) if large else _ascends(rows))):  # type: ignore[arg-type]
            dense = held.dense or rows[-1] == len(rows) - 1
            return NumberColumn(values, None if dense else held.sparse(), lines or None)
        if large:
            return self._large_column(places)
        found: dict[int, tuple[float, int]] = {}
        for row, value, line in zip(rows, values, lines or repeat(0), strict=False):
            first = found.get(row)
            found[row] = (value, line) if first is None else first if self.first_counts else (value, first[1])
        kept = {places[row]: found[row] for row in sorted(found) if places[row] >= 0}  # places ascend as rows do
        held_lines = Cells("q", [line for _, line in kept.values()]) if lines else None
        dense = not kept or max(kept) == len(kept) - 1
        return NumberColumn(Cells("d", [v for v, _ in kept.values()]), None if dense else Cells("q", kept), held_lines)

    def _large_column(self, places: range | array[int]) -> NumberColumn:
        """Return what ``column`` does, of many values."""
        values, lines = self.held.values.whole(), self.lines.whole()
        rows = np.arange(len(values)) if self.held.dense else self.held.sparse().whole()
        if (rows[1:] <= rows[:-1]).any():
            order = np.argsort(rows, kind="stable")
            changes = np.flatnonzero(np.diff(rows[order]))
            firsts, lasts = order[np.append(0, changes + 1)], order[np.append(changes, len(order) - 1)]
            values = values[firsts if self.first_counts else lasts]
            rows, lines = (held[firsts] if len(held) else held for held in (rows, lines))
        if not isinstance(places, range):
            rows = np.frombuffer(places, np.int64)[rows]
            kept = rows >= 0
            rows, values, lines = (held[kept] if len(held) else held for held in (rows, values, lines))
        dense = not len(rows) or rows[-1] == len(rows) - 1
        return NumberColumn(Cells.of(values), None if dense else Cells.of(rows), Cells.of(lines) if len(lines) else None)


class Named:
    """The columns of a rule whose cells are being named."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self._first = {target: name for name, target in reversed([(n, f.target) for n, f in rule.fields.items()])}
        self._numbers: dict[str, Values] = {}
        self.texts: defaultdict[str, TextColumn] = defaultdict(TextColumn)
        """The texts of each field."""
        self.others: defaultdict[str, Values] = defaultdict(lambda: Values(False))
        """The values of each key that no field has."""

    def figure(self, name: str) -> tuple[str, bool]:
        """Return the first field that prints the figure of a field, and whether the first value of a record counts."""
        target = self.rule.fields[name].target
        return self._first[target], target[0] == "metric"

    def number(self, name: str) -> Values:
        """Return the values of a field; fields of one target print one figure."""
        first, keeps = self.figure(name)
        return self._numbers.get(first) or self._numbers.setdefault(first, Values(keeps))

    def finish(self, columns: RuleColumns, rows: Cells[int], wanted: Sequence[int] | None = None) -> RuleColumns:
        """Return the columns of the records, which are at ``rows`` of ``columns``: all, or those that are ``wanted``."""
        places: range | array[int] = range(len(rows))
        if wanted is not None and not all(wanted):
            counts = accumulate(wanted, initial=0)
            places = array("q", [count if good else -1 for count, good in zip(counts, wanted, strict=False)])
        named = dict(sorted(self.others.items(), key=lambda item: item[1].first))  # as the records name them
        self.others.clear()
        numbers = _columns(self._with(columns.numbers, self._numbers, rows), places)
        others = _columns(self._with(columns.unregistered, named, rows), places)
        texts: dict[str, TextColumn] = {}
        for printed in (True, False):
            for name, text in (columns.texts if printed else self.texts).items():
                for row, value in zip(text.rows, text.values, strict=True):
                    place = _place(rows, row) if printed else row
                    if place >= 0 and places[place] >= 0:
                        texts.setdefault(name, TextColumn()).append(places[place], value)
        kept = rows if isinstance(places, range) else Cells("q", [r for r, place in zip(rows, places, strict=True) if place >= 0])
        at, line, rank = (part.picked(kept) for part in (columns.at, columns.line, columns.rank))
        return RuleColumns(at, line, rank, columns.clock.picked(kept), numbers, texts, others)

    def _with(self, printed: dict[str, NumberColumn], named: dict[str, Values], rows: Cells[int]) -> dict[str, Values]:
        """Return what the records print themselves, which comes first, and what was named, which is used up."""
        made: dict[str, Values] = {}
        for name, column in printed.items():
            own = named is self._numbers and self.rule.fields[name].target[0] == "metric"
            made[name] = Values(own)
            if is_large(column.values):
                at, found = values_at(column, rows.whole())
                made[name].held.extend_bytes(found.tobytes(), None if at is None else at.tobytes(), 0)
                continue
            for row, value in zip(column.rows, column.values, strict=True):
                if (place := _place(rows, row)) >= 0:
                    made[name].add(place, value)
        for name in list(named):
            values = named.pop(name)
            if name in made:
                made[name].extend(values)
            else:
                made[name] = values
        return made


def _columns(named: dict[str, Values], places: range | array[int]) -> dict[str, NumberColumn]:
    """Return the columns that are not empty; the values are used up one after the other, since they are many."""
    made: dict[str, NumberColumn] = {}
    for name in list(named):
        column = named.pop(name).column(places)
        if len(column.values):
            made[name] = column
    return made


def _ascends(rows: Sequence[int]) -> bool:
    """True when each of ``rows`` is larger than the one before."""
    return all(before < after for before, after in pairwise(rows))


def _place(rows: Cells[int], row: int) -> int:
    """Return where ``row`` is among ``rows``, ascending; -1 where it is not."""
    place = bisect_left(rows, row)
    return place if place < len(rows) and rows[place] == row else -1
