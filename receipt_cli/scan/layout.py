"""The layout of a record (its bytes, every digit masked) → what every record of that layout gives.

The patterns stay the only definition. They match one record of a layout; what they found holds for all others of it as
long as no pattern that was tried can tell the digits apart (see ``blindness``). Where one can, at certain places, the
digits there belong to the layout: they are *fixed*. Whatever is not sure has no layout, and each record of it goes
through the patterns.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

from receipt_cli.definitions.failure_markers import Marker, MarkerHit
from receipt_cli.definitions.units import MAX_TEXT, shift_of
from receipt_cli.grammar.digit_sensitivity import kept_after
from receipt_cli.grammar.model import Block, Field, Grammar, Mapped, Pairs, Rule, Table
from receipt_cli.records.envelope import ENVELOPE, before, read_clock, read_moment, read_rank, time_of_day
from receipt_cli.scan.extraction import (
    MAX_EVENTS,
    NOWHERE,
    Extraction,
    PatternTimeout,
    Span,
    extract,
    extract_behind,
    fields_below,
)

MAX_LENGTH = 4096
"""Longer records have no layout."""
MAX_KEPT = 4096
"""Layouts that are remembered; when there are more, all are forgotten."""
MAX_VARIANTS = 16
"""Layouts that differ only in fixed digits."""
MAX_SEEN = 65536
MAX_FAILURES = 4
"""Records of one form that may turn out to have no layout, before no more of them are tried."""
MASK = bytes.maketrans(b"123456789", b"000000000")
_PLAIN = re.compile(rb"[-+]?(?:0+\.?0*|\.0+)(?:[eE][-+]?0{1,2})?")
_RUN = re.compile(rb"0+")
_DOUBTFUL = re.compile(rb"[\\\x00-\x08\x0b-\x1f]")
"""Escapes and control characters."""
_SOMETIMES_NUMBER = re.compile(rb"0,0|[eE][-+]?000")
"""Thousands and long exponents: not all digits make them a number."""
_MAX_INTEGER_DIGITS = 15
_MIDNIGHT = b"00:00:00"
_LATER, _LATER_S = b"01:01:01", 3661.0


@dataclass(frozen=True, slots=True)
class Value:
    """One value of an event: the bytes ``start`` to ``end`` of the record.

    ``direct``: the number is ``float(bytes + shift)`` for all digits. Otherwise ``spec`` (None: under a key that nobody
    declared) says how each text is to be read, or ``constant`` is the text for all. ``number``, where it is known, is the
    part of the text that ``read_number`` gives the value of, in the unit of ``spec``.
    """

    name: str
    start: int
    end: int
    direct: bool
    shift: bytes
    spec: Field | None
    constant: str | None = None
    number: Span = NOWHERE


@dataclass(slots=True)
class Prefix:
    """What stands before an event: the same text for all records of a layout, but for its digits.

    ``time`` is the place of the ``hh:mm:ss`` and its fraction that move the clock within a day and mean nothing else.
    """

    end: int
    time: Span
    known: dict[bytes, tuple[int, float, float, bool]] = field(default_factory=dict)

    @classmethod
    def of(cls, prefix: bytes) -> Prefix:
        """Return how to read prefixes of the layout of this one."""
        return cls(len(prefix), time_of_day(prefix) or NOWHERE)

    @property
    def fraction(self) -> Span:
        """The place of the digits of the fraction; empty where there is none."""
        start, end = self.time
        return min(start + len(_MIDNIGHT) + 1, end), end

    def read(self, record: bytes) -> tuple[int, float]:
        """Return rank and clock of a record."""
        if self.time == NOWHERE:
            rank, clock, _, _ = self.day(record[: self.end])
            return rank, clock
        start, end = self.time
        rank, whole, offset, moves = self.day(self.midnight(record))
        if not moves:
            return rank, whole
        hour, minute = int(record[start : start + 2]), int(record[start + 3 : start + 5])
        second = int(record[start + 6 : start + 8])
        if hour > 23 or minute > 59 or second > 59:
            return rank, read_clock(record[: self.end])
        begin, end = self.fraction
        part = int(record[begin:end]) / 10 ** (end - begin) if end > begin else 0.0
        return rank, whole + (3600 * hour + 60 * minute + second) + part - offset

    def midnight(self, record: bytes) -> bytes:
        """Return the prefix of a record with its time set to midnight."""
        start, end = self.time
        return record[:start] + record[start:end].translate(MASK) + record[end : self.end]

    def day(self, prefix: bytes) -> tuple[int, float, float, bool]:
        """Return rank, clock, what to take off it, and whether the time of day is to be added to it before.

        The time of day in ``prefix`` is midnight.
        """
        read = self.known.get(prefix)
        if read is None:
            whole, part, offset = read_moment(prefix)
            start = self.time[0]
            moves = self.time != NOWHERE
            if moves:
                later = prefix[:start] + _LATER + prefix[start + len(_LATER) :]
                moves = read_moment(later) == (whole + _LATER_S, 0.0, offset)
            if not moves:
                whole, offset = whole + part - offset, 0.0
            if len(self.known) >= MAX_KEPT:
                self.known.clear()
            read = self.known[prefix] = read_rank(prefix), whole, offset, moves
        return read


@dataclass(frozen=True, slots=True)
class Event:
    """One event that every record of a layout gives. ``bounds`` are indices into ``values`` and the least value there."""

    key: tuple[str, str]
    grammar: Grammar
    rule: Rule
    offset: int
    prefix: Prefix | None
    values: tuple[Value, ...]
    others: tuple[Value, ...]
    bounds: tuple[tuple[int, float], ...]


@dataclass(slots=True, eq=False)
class Layout:
    """What a record of one layout gives; ``fixed`` are the places where its digits are those of ``sample``.

    ``ignored`` and ``near`` name the grammars that ignore it, and rules that missed it, ``marks`` the markers that fire,
    and where their messages begin.
    """

    sample: bytes
    fixed: tuple[tuple[int, int, bytes], ...]
    events: tuple[Event, ...]
    ignored: tuple[str, ...]
    near: tuple[tuple[str, str], ...]
    marks: tuple[tuple[str, int], ...]
    count: int = 0

    def fits(self, record: bytes) -> bool:
        """True for a record whose masked bytes are those of the sample, when it has the fixed digits too."""
        return all(record[start:end] == digits for start, end, digits in self.fixed)

    def in_bounds(self, record: bytes) -> bool:
        """True when no value of ``record`` is below what its rule demands of it."""
        for event in self.events:
            for index, least in event.bounds:
                value = event.values[index]
                if float(record[value.start : value.end] + value.shift) < least:
                    return False
        return True


@dataclass(slots=True)
class Outcome:
    """What the patterns made of one record: events by rule, the rules that found nothing, and those that took too long."""

    read: list[tuple[Grammar, Rule, list[Extraction]]] = field(default_factory=list)
    ignored: list[tuple[Grammar, Rule]] = field(default_factory=list)
    missed: list[tuple[Grammar, Rule]] = field(default_factory=list)
    late: list[tuple[Grammar, Rule]] = field(default_factory=list)
    marks: list[MarkerHit] = field(default_factory=list)

    @property
    def hit(self) -> bool:
        """True when a rule of any grammar explained the record."""
        return bool(self.read or self.ignored)

    @property
    def crowded(self) -> list[tuple[Grammar, Rule]]:
        """The rules that found as many events as are read of one record: there may be more."""
        return [(grammar, rule) for grammar, rule, events in self.read if len(events) >= MAX_EVENTS]

    def near(self) -> list[tuple[Grammar, Rule]]:
        """Return for each grammar the first rule whose literal stands in the record, though no rule explained it."""
        if self.hit:
            return []
        first: dict[str, tuple[Grammar, Rule]] = {}
        for grammar, rule in self.missed:
            if rule.event not in ("ignored", "progress"):
                first.setdefault(grammar.id, (grammar, rule))
        return list(first.values())


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
    """Return the texts behind which digits tell what is an envelope."""
    kept = kept_after(ENVELOPE.pattern.decode("latin-1"))
    assert kept is not None, "the envelopes may tell digits apart anywhere"
    return kept


def learn_layout(
    record: bytes, outcome: Outcome, markers: Sequence[Marker], numbered: Iterable[bytes]
) -> Layout | None:
    """Return what holds for all records of the layout of ``record``, which is UTF-8, or None where that is not sure.

    ``markers`` are those whose literal the record holds; ``numbered`` are the literals with digits.
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
    events: list[Event] = []
    for grammar, rule, extractions in outcome.read:
        if isinstance(rule.keyed, Table | Block):
            return None
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
    """True when one of the hits is of a marker that gives a number."""
    return any("exit_code" in hit.marker.pattern.groupindex for hit in hits)


def _below_bounds(rule: Rule, record: bytes) -> list[Span] | None:
    """Return where the values stand that are below the least one and so made an event none, and what named them.

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
        """Fix the digits where a literal might stand, were the digits others."""
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


def _event(record: bytes, masked: bytes, grammar: Grammar, rule: Rule, extraction: Extraction) -> Event | None:
    values: list[Value] = []
    for name, text in extraction.texts.items():
        value = _value(rule.fields[name], name, text, extraction.spans.get(name, NOWHERE), masked)
        if value is None:
            return None
        values.append(value)
    others = []
    for key in extraction.others:
        start, end = extraction.other_spans.get(key, NOWHERE)
        direct = _is_plain(masked[start:end])
        if start < 0 or (not direct and _is_twice(record, key, extraction.keys)):
            return None
        others.append(Value(key, start, end, direct=direct, shift=b"", spec=None))
    bounds = []
    for name, least in rule.bounds.items():
        index = next((i for i, value in enumerate(values) if value.name == name), None)
        if index is not None and not (values[index].direct and values[index].end - values[index].start <= _MAX_INTEGER_DIGITS):
            return None
        bounds += [(index, least)] if index is not None else []
    prefix = before(record, extraction.start)
    return Event(
        (grammar.ref, rule.name),
        grammar,
        rule,
        min(extraction.start, 65535),
        Prefix.of(prefix) if prefix else None,
        tuple(values),
        tuple(others),
        tuple(bounds),
    )


def _is_twice(record: bytes, key: str, keys: Sequence[Span]) -> bool:
    """True when a key stands in the record again, whose value counts where the first is no number."""
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


class Layouts:
    """The layouts that were learned."""

    def __init__(self) -> None:
        self._known: dict[bytes, list[Layout]] = {}
        self._size = 0
        self._seen: set[int] = set()
        self._failed: dict[bytes, int] = {}

    def find(self, masked: bytes, record: bytes) -> Layout | None:
        """Return the layout of ``record``, whose masked form is ``masked``, or None."""
        for layout in self._known.get(masked, ()):
            if layout.fits(record):
                return layout if layout.in_bounds(record) else None
        return None

    def known(self) -> Iterator[Layout]:
        """Yield the layouts."""
        for layouts in self._known.values():
            yield from layouts

    def wanted(self, masked: bytes) -> bool:
        """True when records of this form come again, and there is no reason to think that they have no layout."""
        mark = hash(masked)
        if mark not in self._seen:
            if len(self._seen) >= MAX_SEEN:
                self._seen.clear()
            self._seen.add(mark)
            return False
        return self._failed.get(masked, 0) < MAX_FAILURES and len(self._known.get(masked, ())) < MAX_VARIANTS

    def add(self, masked: bytes, layout: Layout | None) -> None:
        """Remember ``layout``, or that a record of this form has none."""
        if layout is None:
            if len(self._failed) >= MAX_KEPT:
                self._failed.clear()
            self._failed[masked] = self._failed.get(masked, 0) + 1
            return
        if self._size >= MAX_KEPT:
            self._known.clear()
            self._size = 0
        self._known.setdefault(masked, []).append(layout)
        self._size += 1
