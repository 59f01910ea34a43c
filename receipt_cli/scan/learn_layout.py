"""Learn a layout: prove which matches of one record are valid for all that differ from it only in digits."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain

from receipt_cli.grammar.model import Rule
from receipt_cli.patterns import compile_later
from receipt_cli.records.envelope import MASK
from receipt_cli.scan.book import Outcome
from receipt_cli.scan.candidates import RUN, Candidates, places_of
from receipt_cli.scan.extraction import NOWHERE, Extraction, PatternTimeout, Span, extract, extract_behind, fields_below
from receipt_cli.scan.layout import MAX_LENGTH, Echo, Layout
from receipt_cli.scan.number_forms import is_plain

_DOUBTFUL = compile_later(rb"[\x00-\x08\x0b-\x1f]")
"""Control characters."""
_ESCAPE = compile_later(rb"\\[xuU]?[0-9a-fA-F]{0,8}")
"""An escape in a mapping: its digits may spell any character."""
SOMETIMES_NUMBER = compile_later(rb"0,0|[eE][-+]?000")
"""Thousands and long exponents: not all digits make them a number."""
_MAX_ECHO = 60
"""Digits of a number that a pattern compares with another: the kernel has a word of bits for them."""


def learn_layout(
    record: bytes, outcome: Outcome, candidates: Candidates, numbered: Iterable[tuple[bytes, bytes]], *, any_bar: bool = False
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
    echoes = tuple(Echo.of(record, *pair) for pair in asked.pairs(masked))
    if any(end - start > _MAX_ECHO for (start, end), _, _ in echoes):
        return None
    return Layout(record, fixed, tuple(absent), echoes, outcome, any_bar)


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
