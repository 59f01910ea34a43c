"""Rules of tables: header rows name the cells of the rows that follow."""

from __future__ import annotations

from collections.abc import Sequence

from receipt_cli.grammar.model import Block, Rule, Table
from receipt_cli.patterns import regex_later
from receipt_cli.scan.extraction.model import MAX_KEY, Box, Extraction, clean_text, event_of, read_unregistered

_WORD = regex_later(rb"[^ \t\n\r\x0b\f]++")
_CELL = regex_later(rb"\S++(?: (?:[KMGTP]i?)?B\b)?")
_WIDE = regex_later(rb"\S++(?: \S++)*+")
"""A cell between two or more blanks."""


def find_row(rule: Rule, record: bytes, box: Box) -> list[Extraction]:
    """Return the event if ``record`` is a header or a row of a table."""
    header, row = rule.table_patterns
    assert rule.table is not None
    word, cell = (_WORD, _CELL) if rule.table.cell == " " else (_WIDE, _WIDE)
    found = header.search(record, timeout=box.left())
    if found is not None:
        words = list(word.finditer(record, found.start()))
        names = tuple(clean_text(part.group()) for part in words)
        return [Extraction(found.start(), len(record), column="headers", cells=names, parts=[part.span() for part in words])]
    found = row.search(record, timeout=box.left())
    if found is None:
        return []
    parts = list(cell.finditer(record, found.start()))
    cells = tuple(clean_text(part.group()) for part in parts)
    return [Extraction(found.start(), len(record), column="cells", cells=cells, parts=[part.span() for part in parts])]


def bind_cells(spec: Table, header: tuple[str, ...], cells: tuple[str, ...]) -> tuple[dict[str, str], dict[str, float]] | None:
    """Bind the ``cells`` of a row to the latest ``header``; None if their numbers differ.

    If two cells have the same name, the last one counts.
    """
    values = cells[spec.skip_cells :]
    if len(values) != len(header):
        return None
    fields, unknown = plan_columns(spec, header)
    read = ((name, read_unregistered(values[column])) for column, name in unknown.items())
    others = {name: value for name, value in read if value is not None}
    return {name: values[column] for name, column in fields.items()}, others


def plan_columns(spec: Table, header: Sequence[str]) -> tuple[dict[str, int], dict[int, str]]:
    """Return the last column of each field in ``header``, and the names of undeclared columns."""
    fields: dict[str, int] = {}
    others: dict[int, str] = {}
    for column, name in enumerate(header):
        if name in spec.keys:
            fields[spec.keys[name]] = column
        elif spec.other and name not in spec.ignore:
            others[column] = name[:MAX_KEY]
    return fields, others


def find_block_row(rule: Rule, record: bytes, box: Box) -> list[Extraction]:
    """Return the event if ``record`` is the opening line or a row of a block."""
    opening, row = rule.block_patterns
    found = opening.search(record, timeout=box.left()) if opening is not None else None
    if opening is not None and found is not None:
        return [event_of(opening, found)]
    found = row.search(record, timeout=box.left())
    if found is None:
        return []
    row_found = clean_text(found["key"]), clean_text(found["value"])
    return [
        Extraction(found.start(), found.end(), column="pairs", cells=row_found, parts=[found.span("key"), found.span("value")])
    ]


def bind_row(spec: Block, row: tuple[str, ...]) -> tuple[str, str | float] | None:
    """Bind a block row: (field, text), (printed key, number) if undeclared, or None if dropped."""
    key, value = row
    if key in spec.keys:
        return spec.keys[key], value
    other = read_unregistered(value) if is_other(spec, key) else None
    return (key, other) if other is not None else None


def is_other(spec: Block, key: str) -> bool:
    """Return whether no field has this key but its numbers are kept."""
    return spec.other and key not in spec.ignore and 0 < len(key) <= MAX_KEY
