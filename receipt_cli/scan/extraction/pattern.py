"""Rules of one regular expression: each match is an event."""

from __future__ import annotations

from collections.abc import Iterator

from receipt_cli.grammar.model import Rule
from receipt_cli.scan.extraction.model import MAX_EVENTS, Box, Extraction, add_groups


def find_matches(rule: Rule, record: bytes, box: Box) -> Iterator[Extraction]:
    """Yield an event for each match of the rule's pattern."""
    for count, found in enumerate(rule.start.finditer(record, timeout=box.left())):
        if count >= MAX_EVENTS:
            return
        event = Extraction(found.start(), found.end())
        add_groups(event, rule.start, found)
        yield event
