"""Learn a layout: prove which matches of one record are valid for all that differ from it only in digits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache

from receipt_cli.definitions.failure_markers import Marker, MarkerHit
from receipt_cli.definitions.units import MAX_TEXT, shift_of
from receipt_cli.grammar.digit_sensitivity import kept_after
from receipt_cli.grammar.model import Field, Grammar, Mapped, Pairs, Rule
from receipt_cli.lazy_dataclass import replace
from receipt_cli.lazy_pattern import compile_later
from receipt_cli.records.envelope import ENVELOPE, before
from receipt_cli.scan.book import Outcome
from receipt_cli.scan.extraction import (
    NOWHERE,
    Extraction,
    PatternTimeout,
    Span,
    extract,
    extract_behind,
    fields_below,
)
from receipt_cli.scan.layout import MASK, MAX_LENGTH, EventLayout, Layout, Parts, Prefix, Value

_PLAIN = compile_later(rb"[-+]?(?:0+\.?0*|\.0+)(?:[eE][-+]?0{1,2})?")
_RUN = compile_later(rb"0+")
_DOUBTFUL = compile_later(rb"[\\\x00-\x08\x0b-\x1f]")
"""Escapes and control characters."""
_SOMETIMES_NUMBER = compile_later(rb"0,0|[eE][-+]?000")
"""Thousands and long exponents: not all digits make them a number."""
_MAX_INTEGER_DIGITS = 15


@cache
def _marker_kept(source: str) -> frozenset[str] | None:
    return kept_after(source)


def _asks_digits(rule: Rule) -> bool:
    """True when keys or values with digits decide whether a record of keys and values is one of the rule's."""
    if isinstance(rule.keyed, Pairs):
        return any(char.isdigit() for key in rule.keyed.requires | rule.keyed.forbids for char in key)
    if isinstance(rule.keyed, Mapped):
        asked = (*rule.keyed.requires, *rule.keyed.forbids, *rule.keyed.where, *map(str, rule.keyed.where.values()))
        return any(char.isdigit() for text in asked for char in text)
    return False


@cache
def envelope_kept() -> frozenset[str]:
    """Return the texts behind which digits decide what is an envelope."""
    kept = kept_after(ENVELOPE.pattern.decode("latin-1"))
    assert kept is not None, "the envelopes may distinguish digits anywhere"
    return kept


def learn_layout(record: bytes, outcome: Outcome, markers: Sequence[Marker], numbered: Iterable[bytes]) -> Layout | None:
    """Return the layout of ``record``, which is UTF-8, or None where it is in doubt.

    ``markers`` are those whose literal the record contains; ``numbered`` are the literals with digits.
    """
    masked = record.translate(MASK)
    if len(record) > MAX_LENGTH or outcome.late or _DOUBTFUL.search(masked) or _say_codes(outcome.marks):
        return None
    kept: set[str] = set()
    below: list[Span] = []
    read = [(grammar, rule) for grammar, rule, _ in outcome.read]
    if not record.isascii() and any(rule.mapping is not None for _, rule in read):
        return None  # its places are those of characters
    if any(_asks_digits(rule) for _, rule in (*outcome.missed, *outcome.ignored)):
        return None
    for _, rule in (*read, *outcome.ignored, *outcome.missed):
        behind = rule.compared_after
        low = _below_bounds(rule, record) if rule.bounds else []
        if behind is None or low is None:
            return None
        kept |= behind
        below += low
    for marker in markers:
        behind = _marker_kept(marker.source)
        if behind is None:
            return None
        kept |= behind
    fixed = _FixedDigits(record, masked)
    fixed.behind(kept | envelope_kept())
    fixed.literals(numbered)
    for span in below:
        fixed.span(span)
    events: list[EventLayout] = []
    for grammar, rule, extractions in outcome.read:
        for extraction in extractions:
            event = _event(record, masked, grammar, rule, extraction)
            if event is None:
                return None
            for span in (*extraction.keys, *(s for s in extraction.unread if _SOMETIMES_NUMBER.search(masked, *s))):
                fixed.span(span)
            events.append(event)
    return Layout(
        sample=record,
        fixed=fixed.places(),
        events=tuple(events),
        ignored=tuple(dict.fromkeys(grammar.id for grammar, _ in outcome.ignored)),
        near=tuple((grammar.id, rule.name) for grammar, rule in outcome.near()),
        marks=tuple((hit.marker.id, hit.start) for hit in outcome.marks),
    )


def _say_codes(hits: Iterable[MarkerHit]) -> bool:
    """True when one of the hits is of a marker that captures a number."""
    return any("exit_code" in hit.marker.pattern.groupindex for hit in hits)


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

    def behind(self, texts: Iterable[str]) -> None:
        """Fix the runs of digits right behind any of ``texts``, which are in lower case."""
        wanted = tuple(text.encode("latin-1") for text in texts)
        lowered = self.record.lower() if wanted else b""
        for run in _RUN.finditer(self.masked) if wanted else ():
            if lowered.endswith(wanted, 0, run.start()):
                self.found.add(run.span())

    def literals(self, numbered: Iterable[bytes]) -> None:
        """Fix the digits where a literal would be, were the digits others."""
        for literal in (one.translate(MASK) for one in numbered):
            at = self.masked.find(literal)
            while at >= 0:
                self.span((at, at + len(literal)))
                at = self.masked.find(literal, at + 1)

    def span(self, span: Span) -> None:
        """Fix all digits of a part of the record."""
        if span != NOWHERE:
            self.found |= {run.span() for run in _RUN.finditer(self.masked, *span)}

    def places(self) -> tuple[tuple[int, int, bytes], ...]:
        """Return the fixed runs and their digits."""
        return tuple((start, end, self.record[start:end]) for start, end in sorted(self.found))


def _event(record: bytes, masked: bytes, grammar: Grammar, rule: Rule, extraction: Extraction) -> EventLayout | None:
    values: list[Value] = []
    for name, text in extraction.texts.items():
        value = _value(rule.fields[name], name, text, extraction.spans.get(name, NOWHERE), masked)
        if value is None:
            return None
        values.append(value)
    unregistered = []
    for key in extraction.unregistered:
        start, end = extraction.unregistered_spans.get(key, NOWHERE)
        direct = _is_plain(masked[start:end])
        if start < 0 or (not direct and _is_twice(record, key, extraction.keys)):
            return None
        unregistered.append(Value(key, start, end, direct=direct, shift=b"", spec=None))
    bounds = []
    for name, least in rule.bounds.items():
        index = next((i for i, value in enumerate(values) if value.name == name), None)
        if index is not None and not (values[index].direct and values[index].end - values[index].start <= _MAX_INTEGER_DIGITS):
            return None
        bounds += [(index, least)] if index is not None else []
    prefix = before(record, extraction.start)
    return EventLayout(
        (grammar.ref, rule.name),
        grammar,
        rule,
        min(extraction.start, 65535),
        Prefix.of(prefix) if prefix else None,
        tuple(values),
        tuple(unregistered),
        tuple(bounds),
        _parts(extraction),
    )


def _parts(extraction: Extraction) -> Parts | None:
    """Return the texts of a row of a table or a block; what separates them is no digit."""
    if extraction.row is not None:
        return Parts("pairs", tuple(extraction.parts))
    if extraction.header is not None or extraction.cells is not None:
        return Parts("cells" if extraction.cells is not None else "headers", tuple(extraction.parts))
    return None


def _is_twice(record: bytes, key: str, keys: Sequence[Span]) -> bool:
    """True when a key is in the record again, whose value counts where the first is no number."""
    return sum(record[start:end].strip() == key.encode("utf-8") for start, end in keys) > 1


def _is_plain(masked: bytes) -> bool:
    return len(masked) <= MAX_TEXT and _PLAIN.fullmatch(masked) is not None


def _value(spec: Field, name: str, text: str, span: Span, masked: bytes) -> Value | None:
    start, end = span
    if start < 0:
        return None if any(char.isdigit() for char in text) else Value(name, -1, -1, False, b"", spec, constant=text)
    generic = Value(name, start, end, direct=False, shift=b"", spec=spec)
    if spec.type not in ("number", "integer") or not 0 < end - start <= MAX_TEXT or not text.isascii():
        return generic
    layout = masked[start:end]
    if any(null.encode("utf-8", "replace").translate(MASK) == layout for null in spec.null_if):
        return generic
    if spec.value is not None:
        found = spec.value.search(text)
        if kept_after(spec.value.pattern) != frozenset() or found is None or found.group(1) is None:
            return generic
        part = found.group(1)
        start += found.start(1) + len(part) - len(part.lstrip())
        end = start + len(part.strip())
        layout = masked[start:end]
    shift = shift_of(spec.unit)
    plain = _is_plain(layout) and shift is not None and not (shift and re.search(rb"[eE]", layout))
    if not plain or shift is None:
        return replace(generic, number=(start, end)) if spec.type == "number" and end > start else generic
    if spec.type == "integer" and (shift or not layout.lstrip(b"+-").isdigit() or len(layout) > _MAX_INTEGER_DIGITS):
        return generic
    return Value(name, start, end, direct=True, shift=shift, spec=spec)
