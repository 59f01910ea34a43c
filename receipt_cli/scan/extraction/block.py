"""Rules of blocks: one key and value per row, over several records."""

from __future__ import annotations

from receipt_cli.grammar.model import Block, Rule
from receipt_cli.scan.extraction.model import MAX_KEY, Box, Extraction, clean_text, event_of, read_unregistered


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
