"""The columns of a rule whose cells are being named, and what is wrong with these."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence

from receipt_cli.events.model import Ledger
from receipt_cli.grammar.model import Grammar, Rule
from receipt_cli.numeric.column import Cells
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


class Named:
    """The columns of a rule whose cells are being named: of each record what it prints itself, and then what is named.

    A record is known by the row that it begins with. It may have several values of a figure: of a metric the first counts,
    else the last; the line is that of the first, 0 where the record prints it.
    """

    def __init__(self, rule: Rule, columns: RuleColumns) -> None:
        self.rule, self.columns = rule, columns
        self._first = {target: name for name, target in reversed([(n, f.target) for n, f in rule.fields.items()])}
        self.texts: defaultdict[str, TextColumn] = defaultdict(TextColumn)
        """The texts of each field that are named, by the place of the record."""

    def figure(self, name: str) -> str:
        """Return the first field that prints the figure of a field: fields of one target print one."""
        return self._first[self.rule.fields[name].target]

    def first_counts(self, name: str) -> bool:
        """True for a field of a metric."""
        return self.rule.fields[name].target[0] == "metric"

    def finish(self, rows: Cells[int], numbers: Mapping[str, NumberColumn], others: Mapping[str, NumberColumn]) -> RuleColumns:
        """Return the columns of the records that begin at ``rows``, ascending; the ``others`` come as the records name them."""
        scanned, texts = self.columns, dict[str, TextColumn]()
        for name, text in scanned.texts.items():
            for row, value in zip(text.rows, text.values, strict=True):
                place = bisect_left(rows, row)
                if place < len(rows) and rows[place] == row:
                    texts.setdefault(name, TextColumn()).append(place, value)
        for name, text in self.texts.items():
            texts.setdefault(name, TextColumn()).extend(text, 0)
        at, line, rank = (part.picked(rows) for part in (scanned.at, scanned.line, scanned.rank))
        numbers, others = ({name: one for name, one in named.items() if len(one.values)} for named in (numbers, others))
        firsts = {name: -1 if name in scanned.unregistered else column.rows[0] for name, column in others.items()}
        others = {name: others[name] for name in sorted(others, key=firsts.__getitem__)}
        return RuleColumns(at, line, rank, scanned.clock.picked(rows), numbers, texts, others)


class NamedSingly(Named):
    """Columns whose cells are named one by one."""

    def __init__(self, rule: Rule, columns: RuleColumns) -> None:
        super().__init__(rule, columns)
        self._numbers, self._others = (
            {name: {row: (value, 0) for row, value in zip(one.rows, one.values, strict=True)} for name, one in printed.items()}
            for printed in (columns.numbers, columns.unregistered)
        )
        self._texts: list[tuple[str, int, str]] = []

    def add_text(self, name: str, row: int, value: str) -> None:
        """Add the text of a field of the record at ``row``."""
        self._texts.append((name, row, value))

    def add(self, name: str, row: int, value: float, line: int = 0) -> None:
        """Add the value of a field of the record at ``row``; ``line`` as the class has it."""
        found = self._numbers.setdefault(self.figure(name), {})
        if row not in found or not self.first_counts(name):
            found[row] = value, found.get(row, (value, line))[1]

    def add_other(self, name: str, row: int, value: float, line: int = 0) -> None:
        """Do the same for a key that no field has."""
        found = self._others.setdefault(name, {})
        found[row] = value, found.get(row, (value, line))[1]

    def columns_of(self, rows: Sequence[int]) -> RuleColumns:
        """Return the columns of the records that begin at ``rows``, ascending."""
        places = {row: place for place, row in enumerate(rows)}
        for name, row, value in self._texts:
            if row in places:
                self.texts[name].append(places[row], value)
        numbers, others = ({name: _column(found, places) for name, found in one.items()} for one in (self._numbers, self._others))
        return self.finish(Cells("q", rows), numbers, others)


def _column(found: Mapping[int, tuple[float, int]], places: Mapping[int, int]) -> NumberColumn:
    """Return the values of the records that have a place, with their lines."""
    column, lines = NumberColumn(), Cells[int]("q")
    for row in sorted(found.keys() & places.keys()):
        value, line = found[row]
        column.append(places[row], value)
        lines.append(line)
    column.lines = lines if any(lines) else None
    return column
