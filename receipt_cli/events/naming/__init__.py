"""Name the cells that only another record names: those of a table's rows, by the header before them, and a block's rows.

In: the columns of a rule as scanned. Out: columns like those of any other rule, whose rows are the records of the table,
or the opening lines of the blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from receipt_cli.events.naming.blocks import ranks_of
from receipt_cli.events.naming.named import NamedSingly, Notes
from receipt_cli.grammar.model import Rule
from receipt_cli.numeric.arrays import is_large
from receipt_cli.records.envelope import NO_RANK
from receipt_cli.scan.columns import POSITION_BITS, RuleColumns
from receipt_cli.scan.extraction import bind_cells, bind_row, convert, read_unregistered
from receipt_cli.scan.row_texts import RowTexts
from receipt_cli.scan.segment import count_between

WEIGHT = 2
"""What a row weighs in the choice to name many together (see ``is_large``)."""


class Naming(Notes):
    """Names the cells of one grammar's rules, and collects what is wrong with them."""

    def named(self, rule: Rule, columns: RuleColumns) -> RuleColumns:
        """Return the columns with all cells named."""
        if rule.table is None and rule.block is None:
            return columns
        if not is_large(columns, WEIGHT):
            return self._blocks(rule, columns) if rule.table is None else self._table(rule, columns)
        from receipt_cli.events.naming.together import name_blocks, name_table

        return name_blocks(self, rule, columns) if rule.table is None else name_table(self, rule, columns)

    def _table(self, rule: Rule, columns: RuleColumns) -> RuleColumns:
        """Bind the cells of each row to the latest header row before it; rows that do not fit it are none."""
        assert rule.table is not None
        made, rows = NamedSingly(rule, columns), list[int]()
        header: tuple[str, ...] = ()
        headers, cells = _by_row(columns.headers), _by_row(columns.cells)
        for row, line in enumerate(columns.line):
            if row in headers:
                header = tuple(headers[row].split("\t"))
                continue
            bound = bind_cells(rule.table, header, tuple(cells[row].split("\t"))) if row in cells else None
            if bound is None:
                self.without_header(rule, line)
                continue
            fields, others = bound
            for name, text in fields.items():
                self._put(made, row, name, text, line)
                self.ledger.read[name] += 1
            for name, value in others.items():
                made.add_other(name, row, value)
                self.ledger.other[name] += 1
            rows.append(row)
        return made.columns_of(rows)

    def _blocks(self, rule: Rule, columns: RuleColumns) -> RuleColumns:
        """Join the rows of each block to its opening line, or to the row that began it; a rank's rows stay its own.

        A row without a rank joins the block opened last where only opening lines have a rank.
        """
        spec = rule.block
        assert spec is not None
        made, blocks = NamedSingly(rule, columns), list[_Open]()
        begun: dict[int, _Open] = {}
        latest: _Open | None = None
        pairs = _by_row(columns.pairs)
        for row, (at, line, rank) in enumerate(zip(columns.at, columns.line, ranks_of(rule, columns), strict=True)):
            ordinal, pair = at >> POSITION_BITS, pairs.get(row)
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
                    self.orphan(rule, key, at, line)
                    continue
                block = begun[rank] = _Open(row, line, ordinal, line)
                latest = block if pair is None else latest
                blocks.append(block)
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
                    made.add_other(name, block.row, text, line)
                elif not again and isinstance(text, str):
                    self._put(made, block.row, name, text, block.first_line, line)
                    block.names.add(name)
                (self.ledger.read if isinstance(text, str) else self.ledger.other)[name] += 1
            elif key not in spec.ignore and read_unregistered(value) is not None:
                self.ledger.dropped[key] += 1
        return made.columns_of([block.row for block in blocks if spec.requires <= block.names])

    def _put(self, made: NamedSingly, row: int, name: str, text: str, line: int, own: int = 0) -> None:
        """Add the value of a field of the record at ``line``, which its line ``own`` prints."""
        value, readable = convert(made.rule.fields[name], text)
        if isinstance(value, str):
            made.add_text(name, row, value)
        elif value is not None:
            made.add(name, row, value, own)
        elif not readable:
            self.unreadable(made.rule, name, text, line)


@dataclass(slots=True)
class _Open:
    """A block: the row that it begins with, the ordinal and the line of its last row, the keys and fields it has."""

    row: int
    first_line: int
    last: int
    line: int
    keys: dict[str, str] = field(default_factory=dict)
    names: set[str] = field(default_factory=set)


def _by_row(texts: RowTexts) -> dict[int, str]:
    return dict(zip(texts.rows, texts.texts(), strict=True))
