"""The layout of a record: its bytes with digits masked, and the events of every record with these bytes.

The patterns remain the only definition. They match one record of a layout; the match holds for all its records unless a pattern
distinguishes digits (see ``grammar.digit_sensitivity``). If a pattern does so at some spans, the digits there become part of
the layout: they are *fixed*. A record without a provable layout is read by the patterns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from receipt_cli.grammar.model import Rule
from receipt_cli.patterns import compile_later
from receipt_cli.records.envelope import MASK, read_moment, read_rank, time_of_day
from receipt_cli.scan.book import Outcome
from receipt_cli.scan.candidates import RUN, Candidates, places_of
from receipt_cli.scan.extraction import extract, extract_behind
from receipt_cli.scan.extraction.model import NOWHERE, Extraction, PatternTimeout, Span, fields_below
from receipt_cli.scan.number_forms import is_plain

MAX_LENGTH = 16384
"""Longer records have no layout."""
MAX_KEPT = 4096
"""Most layouts in a cache; a full cache is emptied."""
_LATER, _LATER_S = b"01:01:01", 3661.0


class Prefix(NamedTuple):
    """The text before an event; only its digits vary within a layout.

    ``time`` is the span of an ``hh:mm:ss`` with fraction that only sets the time of day.
    """

    end: int
    time: Span

    @classmethod
    def of(cls, prefix: bytes) -> Prefix | None:
        """Return the length of the text before a record, and where its time of day is; None if ``prefix`` is empty."""
        return cls(len(prefix), time_of_day(prefix) or NOWHERE) if prefix else None


def read_day(prefix: bytes, time: Span) -> tuple[int, float, float, bool]:
    """Return rank, clock [s], offset [s] to subtract, and whether the time of day must be added.

    The caller sets the time of day in ``prefix`` to midnight, unless ``time`` is ``NOWHERE``.
    """
    whole, part, offset = read_moment(prefix)
    start = time[0]
    if time != NOWHERE:
        later = prefix[:start] + _LATER + prefix[start + len(_LATER) :]
        if read_moment(later) == (whole + _LATER_S, 0.0, offset):
            return read_rank(prefix), whole, offset, True
    return read_rank(prefix), whole + part - offset, 0.0, False


class BackrefCheck(NamedTuple):
    """Two runs of digits that a pattern compares. Bit i of ``same``: ``second`` starts with ``first[i:]``."""

    first: Span
    second: Span
    same: int

    @classmethod
    def of(cls, record: bytes, first: Span, second: Span) -> BackrefCheck:
        """Compare two runs of digits of ``record``."""
        one, other = record[slice(*first)], record[slice(*second)]
        return cls(first, second, sum(other.startswith(one[at:]) << at for at in range(len(one))))


@dataclass(slots=True, eq=False)
class Layout:
    """The outcome for every record of one layout.

    ``fixed``: (start, end, digits) that all records share. ``absent``: (offset, literal) that no record has. ``echoes``: runs
    of digits that patterns compare. ``outcome`` is the outcome for ``sample``: its spans hold for all records, its texts do
    not. ``any_bar``: the layout also holds for records that equal it after ``short_bars``.
    """

    sample: bytes
    fixed: tuple[tuple[int, int, bytes], ...]
    absent: tuple[tuple[int, bytes], ...]
    echoes: tuple[BackrefCheck, ...]
    outcome: Outcome
    any_bar: bool = False

    def fits(self, record: bytes) -> bool:
        """Return whether a record with the same masked bytes also has the digits the layout requires."""
        return (
            all(record[start:end] == digits for start, end, digits in self.fixed)
            and not any(record.startswith(literal, at) for at, literal in self.absent)
            and all(echo == BackrefCheck.of(record, echo.first, echo.second) for echo in self.echoes)
        )

    def in_bounds(self, record: bytes) -> bool:
        """Return whether no value of ``record`` is below its rule's least value."""
        bounded = ((rule, events) for _, rule, events in self.outcome.read if rule.bounds)
        return not any(fields_below(rule, event.reread(record)) for rule, events in bounded for event in events)


_DOUBTFUL = compile_later(rb"[\x00-\x08\x0b-\x1f]")
"""Control characters."""
_ESCAPE = compile_later(rb"\\[xuU]?[0-9a-fA-F]{0,8}")
"""An escape in a mapping: its digits may encode any character."""
SOMETIMES_NUMBER = compile_later(rb"0,0|[eE][-+]?000")
"""Thousands and long exponents: only some digits make them numbers."""
_MAX_ECHO = 60
"""Most digits of a compared number: the kernel keeps one bit for each in a word."""


def learn_layout(
    record: bytes, outcome: Outcome, candidates: Candidates, numbered: Iterable[tuple[bytes, bytes]], *, any_bar: bool = False
) -> Layout | None:
    """Return the layout of ``record``, or None if none can be proven.

    ``candidates`` were tried on it; ``numbered`` are literals with digits, masked and as printed; ``any_bar``: see ``Layout``.
    """
    masked = record.translate(MASK)
    if len(record) > MAX_LENGTH or outcome.late or _DOUBTFUL.search(masked):
        return None
    read = [rule for _, rule, _ in outcome.read]
    others = [rule for _, rule in (*outcome.missed, *outcome.ignored)]
    if any(rule.mapping is not None for rule in read) and (not record.isascii() or b"\\" in record):
        return None  # its spans count characters
    if any(rule.asks_digits or (rule.mapping is not None and rule.asked_texts and b"\\" in record) for rule in others):
        return None
    asked = candidates.asked
    below = [_below_bounds(rule, record) for rule in candidates.bounded]
    spans = [*chain.from_iterable(low for low in below if low is not None), *(hit.code_span for hit in outcome.marks)]
    if asked is None or None in below:
        return None
    if any(rule.mapping is not None for rule in others):
        spans += [escape.span() for escape in _ESCAPE.finditer(masked)]
    for event in chain.from_iterable(events for _, _, events in outcome.read):
        if not _is_certain(record, masked, event):
            return None
        spans += [*event.keys, *(span for span in event.unread if SOMETIMES_NUMBER.search(masked, *span))]
    absent: list[tuple[int, bytes]] = []
    for form, literal in numbered:
        for at in places_of(masked, form):
            if record.startswith(literal, at):
                spans.append((at, at + len(literal)))
            else:
                absent.append((at, literal))
    lowered = record.lower()
    for at, text in asked.possible_in(masked):
        end = at + len(text)
        if lowered.startswith(text, at):
            spans.append((at, end))
        else:
            absent.append(
                (at, bytes(new if new in b"0123456789" else old for old, new in zip(record[at:end], text, strict=True)))
            )
    behind = (RUN.match(masked, at + len(text)) for text in asked.kept for at in places_of(lowered, text))
    runs = {run.span() for run in behind if run is not None}
    runs |= {run.span() for span in spans if span != NOWHERE for run in RUN.finditer(masked, *span)}
    fixed = tuple((start, end, record[start:end]) for start, end in sorted(runs))
    held = {at for start, end, _ in fixed for at in range(start, end)}
    absent = [(at, text) for at, text in absent if not any(i in held and record[i] != byte for i, byte in enumerate(text, at))]
    echoes = tuple(BackrefCheck.of(record, *pair) for pair in asked.pairs(masked))
    if any(end - start > _MAX_ECHO for (start, end), _, _ in echoes):
        return None
    return Layout(record, fixed, tuple(absent), echoes, outcome, any_bar)


def _below_bounds(rule: Rule, record: bytes) -> list[Span] | None:
    """Return the spans of values below their bounds, which rule out an event, and of their keys.

    None if these are not certain.
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


def _is_certain(record: bytes, masked: bytes, event: Extraction) -> bool:
    """Return whether the event's values and spans do not depend on digits."""
    for name, span in event.spans.items():
        if span == NOWHERE and any(char.isdigit() for char in event.texts[name]):
            return False
    for key, span in event.unregistered_spans.items():
        if span == NOWHERE or "\N{REPLACEMENT CHARACTER}" in key:
            return False
        named = (record[start:end].strip() == key.encode("utf-8") for start, end in event.keys)
        if not is_plain(masked[slice(*span)]) and sum(named) > 1:
            return False  # the second value may count
    return True


MAX_VARIANTS = 64
"""Most layouts that differ only in fixed digits."""
MAX_FAILURES = 4
"""Failures to learn a layout for one form before no more are tried."""
EAGER = 64
"""Layouts per set of candidates learned at first sight; after that only for forms that recur, whatever their numbers' lengths."""
MAX_FORMS = 1 << 16
"""Most forms remembered to detect recurrence."""


class LayoutCache:
    """Learned layouts by masked bytes."""

    def __init__(self) -> None:
        self._known: dict[bytes, list[Layout]] = {}
        self._size = 0
        self._failed: dict[bytes, int] = {}
        self._met: set[int] = set()

    def find(self, masked: bytes, record: bytes) -> Layout | None:
        """Return the layout of ``record``, whose masked form is ``masked``, or None."""
        for layout in self._known.get(masked, ()):
            if layout.fits(record):
                return layout if layout.in_bounds(record) else None
        return None

    def wanted(self, masked: bytes) -> bool:
        """Return whether learning a layout for this form is still worth trying."""
        return self._failed.get(masked, 0) < MAX_FAILURES and len(self._known.get(masked, ())) < MAX_VARIANTS

    def comes_again(self, masked: bytes, candidates: Candidates) -> bool:
        """Return whether a form recurs, so that learning its layout pays; varying words give each line its own form."""
        if candidates.learned < EAGER:
            return True
        form = hash(RUN.sub(b"0", masked))
        if form in self._met:
            return True
        if len(self._met) >= MAX_FORMS:
            self._met.clear()
        self._met.add(form)
        return False

    def add(self, masked: bytes, layout: Layout | None, candidates: Candidates) -> None:
        """Cache ``layout`` learned from a record of this form, or the failure to learn one."""
        candidates.learned += 1
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
