"""Learn a layout: prove which matches of one record are valid for all that differ from it only in digits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain

from receipt_cli.definitions.failure_markers import MarkerHit
from receipt_cli.grammar.model import Field, Grammar, Rule
from receipt_cli.lazy_pattern import compile_later
from receipt_cli.records.envelope import MASK, before
from receipt_cli.records.place import form_of, read_host
from receipt_cli.scan.book import Outcome
from receipt_cli.scan.candidates import Candidates
from receipt_cli.scan.extraction import (
    NOWHERE,
    Extraction,
    PatternTimeout,
    Span,
    extract,
    extract_behind,
    fields_below,
)
from receipt_cli.scan.layout import MAX_LENGTH, Echo, EventLayout, Layout, Mark, Parts, Prefix, Value
from receipt_cli.scan.number_forms import MAX_INTEGER_DIGITS, is_plain, number_form

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
    events: list[EventLayout] = []
    for grammar, rule, extractions in outcome.read:
        for extraction in extractions:
            prefix = Prefix.of(before(record, extraction.start))
            event = _event_layout(record, masked, grammar, rule, extraction, prefix)
            if event is None:
                return None
            for span in (*extraction.keys, *(s for s in extraction.unread if SOMETIMES_NUMBER.search(masked, *s))):
                fixed.span(span)
            events.append(event)
    return Layout(
        sample=record,
        fixed=fixed.places(),
        absent=tuple(fixed.absent),
        echoes=tuple(fixed.echoes),
        events=tuple(events),
        ignored=tuple(dict.fromkeys(grammar.id for grammar, _ in outcome.ignored)),
        near=tuple((grammar.id, rule.name) for grammar, rule in outcome.near()),
        marks=tuple(_mark(record, hit) for hit in outcome.marks),
        any_bar=any_bar,
    )


def _mark(record: bytes, hit: MarkerHit) -> Mark:
    prefix = record[: hit.start]
    form, host = form_of(record, hit.start), read_host(prefix)
    return Mark(hit.marker.id, hit.start, hit.exit_code, form, host, Prefix.of(prefix))


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


def _event_layout(
    record: bytes, masked: bytes, grammar: Grammar, rule: Rule, extraction: Extraction, prefix: Prefix | None
) -> EventLayout | None:
    """Return the layout of one event of ``record``; None where what its values are depends on their digits."""
    values: list[Value] = []
    for name, text in extraction.texts.items():
        value = value_at(rule.fields[name], name, text, extraction.spans.get(name, NOWHERE), masked)
        if value is None:
            return None
        values.append(value)
    unregistered = []
    for key in extraction.unregistered:
        start, end = extraction.unregistered_spans.get(key, NOWHERE)
        direct = is_plain(masked[start:end])
        if start < 0 or "\N{REPLACEMENT CHARACTER}" in key or (not direct and named_twice(record, key, extraction.keys)):
            return None
        unregistered.append(Value(key, start, end, None, None, (start, end) if direct else NOWHERE, direct))
    places = {value.name: index for index, value in enumerate(values)}
    bounds = [(places[name], least) for name, least in rule.bounds.items() if name in places]
    if not is_comparable(values, bounds):
        return None
    return EventLayout(
        grammar,
        rule,
        extraction.start,
        prefix,
        tuple(values),
        tuple(unregistered),
        tuple(bounds),
        Parts(extraction.column, tuple(extraction.parts)) if extraction.column else None,
    )


def is_comparable(values: Sequence[Value], bounds: Iterable[tuple[int, float]]) -> bool:
    """True when the values that have bounds are numbers of few digits."""
    return all(
        value.direct and value.number[1] - value.number[0] <= MAX_INTEGER_DIGITS for value in (values[at] for at, _ in bounds)
    )


def named_twice(record: bytes, key: str, keys: Sequence[Span]) -> bool:
    """True when a key is in the record again, whose value counts where the first is no number."""
    return sum(record[start:end].strip() == key.encode("utf-8") for start, end in keys) > 1


def value_at(spec: Field, name: str, text: str, span: Span, masked: bytes) -> Value | None:
    """Return how a value is read whose text is at ``span``; None where that depends on its digits."""
    start, end = span
    if start < 0:
        return None if any(char.isdigit() for char in text) else Value(name, -1, -1, spec, text)
    if len(text) != end - start or not text.isascii():
        return Value(name, start, end, spec)
    direct, (begin, stop) = number_form(spec, masked[start:end])
    return Value(name, start, end, spec, None, (start + begin, start + stop) if stop > begin else NOWHERE, direct)
