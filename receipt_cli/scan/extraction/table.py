"""Rules of tables: header rows name the cells of the rows that follow.

Rules of pairs: an event starts at a match of the rule's start, and key-value cells follow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from receipt_cli.grammar.model import Block, Pairs, Rule, Table
from receipt_cli.patterns import regex_later
from receipt_cli.scan.extraction.model import (
    MAX_EVENTS,
    MAX_KEY,
    Box,
    Extraction,
    clean_text,
    event_of,
    read_unregistered,
    stripped,
)

_WORD = regex_later(rb"[^ \t\n\r\x0b\f]++")
_CELL = regex_later(rb"\S++(?: (?:[KMGTP]i?)?B\b)?")
_WIDE = regex_later(rb"\S++(?: \S++)*+")
"""A cell between two or more blanks."""


def find_row(rule: Rule, record: bytes, box: Box) -> list[Extraction]:
    """Return the cells of ``record`` if it is the heading or a row of the printed table that ``rule`` describes, else nothing."""
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


def find_pairs(rule: Rule, pairs: Pairs, record: bytes, box: Box) -> Iterator[Extraction]:
    """Yield an event for each match of the rule's start that has the required keys."""
    starts = list(islice(rule.start.finditer(record, timeout=box.left()), MAX_EVENTS))
    for number, found in enumerate(starts):
        limit = starts[number + 1].start() if number + 1 < len(starts) else len(record)
        if rule.stop is not None:
            stop = rule.stop.search(record, found.end(), limit, timeout=box.left())
            limit = stop.start() if stop else limit
        event = event_of(rule.start, found)
        printed: set[str] = set()
        for cell in _cells(rule, pairs, record, found.end(), limit, box):
            key, value, end = clean_text(cell.key), clean_text(cell.value), cell.end
            printed.add(key)
            event.keys.append((cell.key_at, cell.key_at + len(cell.key)))
            if key in pairs.keys:
                name = pairs.keys[key]
                if name not in event.texts:
                    event.texts[name] = value
                    event.spans[name] = stripped(cell.value, cell.value_at)
                event.end = end
            elif pairs.other and key not in pairs.ignore:
                other = read_unregistered(value)
                span = stripped(cell.value, cell.value_at)
                if other is None or not 0 < len(key) <= MAX_KEY:
                    event.unread.append(span)
                    continue
                if key not in event.unregistered:
                    event.unregistered[key] = other
                    event.unregistered_spans[key] = span
                event.end = end
            elif key in pairs.ignore:
                event.declared.append(stripped(cell.value, cell.value_at))
                event.end = end
        if pairs.requires <= printed and not pairs.forbids & printed:
            yield event


class _Cell(NamedTuple):
    """One cell as printed: key and value with their offsets, and the end of the cell."""

    key: bytes
    key_at: int
    value: bytes
    value_at: int
    end: int


def _cells(rule: Rule, pairs: Pairs, record: bytes, start: int, limit: int, box: Box) -> Iterator[_Cell]:
    """Yield the cells of ``record[start:limit]``."""
    if rule.cells is not None:
        for found in rule.cells.finditer(record, start, limit, timeout=box.left()):
            yield _Cell(found["key"], found.start("key"), found["value"], found.start("value"), found.end())
        return
    separator, between = pairs.cell.encode(), pairs.key.strip().encode() or pairs.key.encode()
    at = start
    while at < limit:
        end = record.find(separator, at, limit)
        end = limit if end < 0 else end
        key, found_key, value = record[at:end].partition(between)
        if found_key:
            yield _Cell(key, at, value, at + len(key) + len(between), min(end + len(separator.rstrip()), limit))
        at = end + len(separator)
