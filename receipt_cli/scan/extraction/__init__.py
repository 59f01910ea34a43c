"""Extract the fields of one rule from one record.

Each rule syntax except plain patterns (pairs, mapping, table, block) has its own module; ``extract`` selects it.
"""

from __future__ import annotations

from itertools import islice

from receipt_cli.grammar.model import Rule
from receipt_cli.records.envelope import starts
from receipt_cli.scan.extraction.mapping import find_mappings
from receipt_cli.scan.extraction.model import MAX_EVENTS, Box, Extraction, PatternTimeout, event_of, fields_below
from receipt_cli.scan.extraction.table import find_block_row, find_pairs, find_row


def extract(rule: Rule, record: bytes, *, bounded: bool = True, box: Box | None = None) -> list[Extraction]:
    """Return the events that ``rule`` finds in ``record``, in order. Raises ``PatternTimeout``.

    Without ``bounded`` events with a value below its bound are returned too. ``box`` is shared with other calls.
    """
    box = box or Box()
    try:
        if rule.pattern is not None:
            if rule.find(record, timeout=box.left()) is None:
                return []  # most patterns find nothing: faster than an iterator
            matches = islice(rule.start.finditer(record, timeout=box.left()), MAX_EVENTS)
            events = [event_of(rule.start, found) for found in matches]
        elif rule.pairs is not None:
            events = list(find_pairs(rule, rule.pairs, record, box))
        elif rule.mapping is not None:
            events = list(find_mappings(rule, rule.mapping, record, box))
        else:
            return (find_row if rule.table is not None else find_block_row)(rule, record, box)
    except (TimeoutError, MemoryError, RecursionError) as error:
        raise PatternTimeout(rule.name) from error
    return [event for event in events if not fields_below(rule, event)] if bounded and rule.bounds else events


def read_record(rule: Rule, record: bytes) -> list[Extraction]:
    """Return the events that ``rule`` finds in a raw record, also after its envelopes.

    Raises ``PatternTimeout``.
    """
    events = extract(rule, record)
    return events or (extract_behind(rule, record) if rule.anchored else [])


def extract_behind(rule: Rule, record: bytes, *, bounded: bool = True) -> list[Extraction]:
    """Return the events of an anchored ``rule`` after the first envelope end with any, with offsets into ``record``.

    All envelope ends share one time box. Raises ``PatternTimeout``.
    """
    box = Box()
    for at in starts(record):
        events = extract(rule, record[at:], bounded=bounded, box=box)
        if events:
            return [event.moved(at.__add__) for event in events]
    return []
