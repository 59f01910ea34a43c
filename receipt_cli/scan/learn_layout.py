"""Learn a layout: prove which matches of one record are valid for all that differ from it only in digits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain

from receipt_cli.grammar.model import Rule
from receipt_cli.lazy_pattern import compile_later
from receipt_cli.records.envelope import MASK
from receipt_cli.scan.book import Outcome
from receipt_cli.scan.candidates import Candidates
from receipt_cli.scan.extraction import NOWHERE, Extraction, PatternTimeout, Span, extract, extract_behind, fields_below
from receipt_cli.scan.layout import MAX_LENGTH, Echo, Layout
from receipt_cli.scan.number_forms import is_plain

_RUN = compile_later(rb"0+")
_DOUBTFUL = compile_later(rb"[\x00-\x08\x0b-\x1f]")
"""Control characters."""
_ESCAPE = compile_later(rb"\\[xuU]?[0-9a-fA-F]{0,8}")
"""An escape in a mapping: its digits may spell any character."""
SOMETIMES_NUMBER = compile_later(rb"0,0|[eE][-+]?000")
"""Thousands and long exponents: not all digits make them a number."""
_MAX_ECHO = 60
"""Digits of a number that a pattern compares with another: the kernel has a word of bits for them."""


def learn_layout(
    record: bytes,
    outcome: Outcome,
    candidates: Candidates,
    numbered: Iterable[tuple[bytes, bytes]],
    *,
    any_bar: bool = False,
) -> Layout | None:
    """Return the layout of ``record``, or None where it is in doubt.

    ``candidates`` were tried; ``numbered`` are the literals with digits, masked and as they are; ``any_bar`` as of the layout.
    """
    masked = record.translate(MASK)
    if len(record) > MAX_LENGTH or outcome.late or _DOUBTFUL.search(masked):
        return None
    read = [rule for _, rule, _ in outcome.read]
    others = [rule for _, rule in (*outcome.missed, *outcome.ignored)]
    if any(rule.mapping is not None for rule in read) and (not record.isascii() or b"\\" in record):
        return None  # its places are those of characters
    if any(rule.asks_digits for rule in others):
        return None
    asked = candidates.asked
    below = [_below_bounds(rule, record) for rule in candidates.bounded]
    spans = [low for low in below if low is not None]
    if asked is None or len(spans) < len(below):
        return None
    fixed = _FixedDigits(record, masked)
    fixed.behind(asked.kept)
    fixed.echo(asked.echoes)
    fixed.literals(numbered)
    if any(rule.mapping is not None for rule in others):
        spans.append([escape.span() for escape in _ESCAPE.finditer(masked)])
    spans.append([hit.code_span for hit in outcome.marks])
    for span in chain.from_iterable(spans):
        fixed.span(span)
    if any(end - start > _MAX_ECHO for (start, end), _, _ in fixed.echoes):
        return None
    for event in chain.from_iterable(events for _, _, events in outcome.read):
        if not _is_certain(record, masked, event):
            return None
        for span in (*event.keys, *(span for span in event.unread if SOMETIMES_NUMBER.search(masked, *span))):
            fixed.span(span)
    return Layout(record, fixed.places(), tuple(fixed.absent), tuple(fixed.echoes), outcome, any_bar)


def _below_bounds(rule: Rule, record: bytes) -> list[Span] | None:
    """Return the places of values below the least one, which rule their event out, and of what named them.

    None where that is not sure.
    """
    try:
        found = extract(rule, record, bounded=False)
        found += extract_behind(rule, record, bounded=False) if rule.anchored else []
    except PatternTimeout:
        return None
    places: list[Span] = []
    for event in found:
        low = fields_below(rule, event)
        places += [event.spans[name] for name in low]
        places += event.keys if low else []
    return None if NOWHERE in places else places


class _FixedDigits:
    """The digits of a record that belong to its layout."""

    def __init__(self, record: bytes, masked: bytes) -> None:
        self.record, self.masked = record, masked
        self.found: set[Span] = set()
        self.absent: list[tuple[int, bytes]] = []
        self.echoes: list[Echo] = []

    def behind(self, texts: Iterable[bytes]) -> None:
        """Fix the runs of digits right behind any of ``texts``, which are in lower case and end with no digit."""
        lowered = self.record.lower()
        for text in texts:
            at = lowered.find(text)
            while at >= 0:
                run = _RUN.match(self.masked, at + len(text))
                if run is not None:
                    self.found.add(run.span())
                at = lowered.find(text, at + 1)

    def echo(self, echoes: Iterable[re.Pattern[bytes]]) -> None:
        """Note how two runs of digits compare that any of ``echoes`` finds."""
        for echo in echoes:
            for found in echo.finditer(self.masked):
                self.echoes.append(Echo.of(self.record, found.span(1), found.span(2)))

    def literals(self, numbered: Iterable[tuple[bytes, bytes]]) -> None:
        """Fix the digits of literals, and note where one would be, were the digits others. ``numbered``: masked, and as it is."""
        for masked, literal in numbered:
            at = self.masked.find(masked)
            while at >= 0:
                if self.record.startswith(literal, at):
                    self.span((at, at + len(literal)))
                else:
                    self.absent.append((at, literal))
                at = self.masked.find(masked, at + 1)

    def span(self, span: Span) -> None:
        """Fix all digits of a part of the record."""
        if span != NOWHERE:
            self.found |= {run.span() for run in _RUN.finditer(self.masked, *span)}

    def places(self) -> tuple[tuple[int, int, bytes], ...]:
        """Return the fixed runs and their digits."""
        return tuple((start, end, self.record[start:end]) for start, end in sorted(self.found))


def _is_certain(record: bytes, masked: bytes, event: Extraction) -> bool:
    """True unless it depends on digits which values the event has, or where."""
    for name, span in event.spans.items():
        if span == NOWHERE and any(char.isdigit() for char in event.texts[name]):
            return False
    for key, span in event.unregistered_spans.items():
        if span == NOWHERE or "\N{REPLACEMENT CHARACTER}" in key:
            return False
        if not is_plain(masked[slice(*span)]) and named_twice(record, key, event.keys):
            return False
    return True


def named_twice(record: bytes, key: str, keys: Sequence[Span]) -> bool:
    """True when a key is in the record again, whose value counts where the first is no number."""
    return sum(record[start:end].strip() == key.encode("utf-8") for start, end in keys) > 1
