"""Rules of pairs: an event starts at a match of the rule's start, and key-value cells follow."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from receipt_cli.grammar.model import Pairs, Rule
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
