"""Compile a layout into the program that the kernel runs on its records (see ``kernel_add`` in kernel.c)."""

from __future__ import annotations

import json
import struct
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from receipt_cli.grammar.model import Field, Rule
from receipt_cli.problems import EXCERPT_BYTES
from receipt_cli.records.envelope import MASK, before
from receipt_cli.records.place import form_of, read_host
from receipt_cli.scan.extraction.model import NOWHERE, Extraction, Span, clean_text, convert, join_cells, read_unregistered
from receipt_cli.scan.layout import Layout, Prefix, read_day
from receipt_cli.scan.number_forms import MAX_INTEGER_DIGITS, Scale, decimals_in, is_plain, number_form, scale_of
from receipt_cli.scan.row_texts import ZEROS, places_of
from receipt_cli.scan.segment import RuleKey

if TYPE_CHECKING:
    from receipt_cli.scan.kernel._native import Answer

K = TypeVar("K")
DECIMAL, ASKED_NUMBER, ASKED_TEXT, _, CONSTANT_TEXT, PLACE, DIGITS = range(7)
"""Kinds of values: computed from digits, asked from Python, constant in all records, a position, or digits of a text."""
OF_DIGITS = "digits"
"""The column with the digits of a group of texts."""
MARKER = ""
"""Replaces the grammar in the table key of a marker's hits."""
MAX_COUNT = 4096
"""``MAX_VALUES`` of kernel.c: most entries of each kind in a layout."""


class Numbered(dict[K, int]):
    """Numbers each new key from 0 on; ``listed`` has the keys in this order."""

    def __init__(self) -> None:
        super().__init__()
        self.listed: list[K] = []

    def __missing__(self, key: K) -> int:
        self.listed.append(key)
        self[key] = number = len(self)
        return number


class Mark(NamedTuple):
    """A marker hit: start of its message, its exit code, and its form (see ``records.place``)."""

    start: int
    code: int | None
    form: int


@dataclass(slots=True)
class Names:
    """The numbers by which the kernel refers to rules, columns, grammars and Python's answers.

    ``forms`` are the forms of a column's texts (see ``RowTexts``).
    """

    tables: Numbered[RuleKey] = field(default_factory=Numbered)
    columns: Numbered[tuple[RuleKey, str, str]] = field(default_factory=Numbered)
    ignored: Numbered[str] = field(default_factory=Numbered)
    near: Numbered[tuple[str, str]] = field(default_factory=Numbered)
    texts: Numbered[str] = field(default_factory=Numbered)
    forms: dict[int, Numbered[str]] = field(default_factory=lambda: defaultdict(Numbered))
    marks: Numbered[Mark] = field(default_factory=Numbered)
    resolvers: Numbered[object] = field(default_factory=Numbered)
    answers: list[Callable[[bytes], Answer]] = field(default_factory=list)

    def resolver(self, key: object, answer: Callable[[bytes], Answer]) -> int:
        """Return the number of ``answer``, the function that reads all texts of ``key``."""
        number = self.resolvers[key]
        if number == len(self.answers):
            self.answers.append(answer)
        return number


def moving_digits(layout: Layout) -> bytes:
    """Return one byte per byte of the layout: 1 for a digit that may vary, else 0."""
    moving = bytearray(layout.sample.translate(_DIGITS))
    for start, end, _ in layout.fixed:
        moving[start:end] = bytes(end - start)
    return bytes(moving)


_DIGITS = bytes(48 <= byte <= 57 for byte in range(256))


def write_program(names: Names, layout: Layout) -> bytes | None:
    """Return the program of a layout; None if Python must read its records."""
    sample, outcome = layout.sample, layout.outcome
    if any(read_host(sample[: hit.start]) is not None for hit in outcome.marks):
        return None
    head = [number for at, literal in layout.absent for number in (at, len(literal), *literal)]
    for echo in layout.echoes:
        head += [*_place_of(echo.first), *_place_of(echo.second), echo.same]
    ignored = dict.fromkeys(grammar.id for grammar, _ in outcome.ignored)
    near = outcome.near()
    head += [names.ignored[name] for name in ignored]
    head += [names.near[grammar.id, rule.name] for grammar, rule in near]
    body: list[bytes] = []
    total = 0
    for grammar, rule, events in outcome.read:
        for event in events:
            key = (grammar.ref, rule.name + event.form)
            try:
                values = [*(_parts(names, key, sample, event) if event.column else _values(names, key, rule, sample, event))]
            except _ForPython:
                return None
            total += len(values)
            body.append(_row(names, key, event.start, before(sample, event.start), values))
    for hit in outcome.marks:
        key = (MARKER, hit.marker.id)
        mark = Mark(hit.start, hit.exit_code, form_of(sample, hit.start))
        value = _text_value(PLACE, names.columns[key, "", ""], (0, 0), names.marks[mark])
        body.append(_row(names, key, hit.start, sample[: hit.start], [value]))
    total += len(outcome.marks)
    lengths = len(layout.absent), sum(len(literal) for _, literal in layout.absent), len(layout.echoes)
    counts = (len(ignored), len(near), len(body), total, *lengths)
    if max(counts) > MAX_COUNT:
        return None
    return struct.pack(f"={9 + len(head)}q", *counts, outcome.hit, layout.any_bar, *head) + b"".join(body)


class _ForPython(Exception):
    """The kernel cannot read a value."""


_PACKED = struct.Struct("=7qdqd").pack
_WHOLE = Scale(0, 1, 0, 1.0)
_NO_LIMIT = (False, 0.0)
_UNREADABLE: Any = NotImplemented
"""The answer for an unreadable text: Python must read the record."""


def _value(
    kind: int, column: int, span: Span, scale: Scale = _WHOLE, resolver: int = -1, limit: tuple[bool, float] = _NO_LIMIT
) -> bytes:
    """Return the program of a value; ``limit``: whether it has a least value, and this value."""
    return _PACKED(kind, column, *span, resolver, scale.times, scale.power, scale.factor, *limit)


def _text_value(kind: int, column: int, span: Span, number: int) -> bytes:
    """Return the program of a text: ``number``, the position of its record, or the digits at ``span``."""
    return _value(kind, column, span, Scale(0, number, 0, 1.0))


def _place_of(span: Span) -> tuple[int, int]:
    return span[0], span[1] - span[0]


def _row(names: Names, key: RuleKey, start: int, before: bytes, values: list[bytes]) -> bytes:
    """Return the program of a row: rank and clock are read from ``before``, the text before ``start``."""
    prefix = Prefix.of(before)
    when = (0, -1, -1, -1)
    if prefix is not None:
        time = prefix.time
        when = prefix.end, names.resolver(("day", time[0]), lambda text: read_day(text, time)), *time
    return struct.pack("<7q", names.tables[key], start, *when, len(values)) + b"".join(values)


def _parts(names: Names, key: RuleKey, sample: bytes, event: Extraction) -> Iterator[bytes]:
    """Encode the cells of a table or block record for the compiled scanner (``native/kernel.c``).

    Raises ``_ForPython``, which leaves the record to the Python engine, if a cell is not UTF-8.
    """
    origin: list[int] = []
    for begin, end in event.parts:
        raw = sample[begin:end]
        text = raw.decode("utf-8", "replace")
        if text.encode("utf-8") != raw:
            raise _ForPython
        starts = accumulate((len(char.encode("utf-8")) for char in text), initial=begin)
        first = len(text) - len(text.lstrip())
        origin += [*islice(starts, first, first + len(text.strip())), end]
    form = join_cells(event.column, [clean_text(sample[slice(*part)]) for part in event.parts]).translate(ZEROS)
    column, digits = names.columns[key, event.column, ""], names.columns[key, event.column, OF_DIGITS]
    yield _text_value(CONSTANT_TEXT, column, (0, 0), names.forms[column][form])
    for start, end in places_of(form):
        yield _text_value(DIGITS, digits, (origin[start], origin[end - 1] + 1), 1)


def _values(names: Names, key: RuleKey, rule: Rule, sample: bytes, event: Extraction) -> Iterator[bytes]:
    """Yield the values of an event."""
    masked = sample.translate(MASK)
    for name, span in event.spans.items():
        spec, least = rule.fields[name], rule.bounds.get(name)
        start, end = span
        form = number_form(spec, masked[start:end] if span != NOWHERE and sample[start:end].isascii() else b"")
        start, end = start + form.span[0], start + form.span[1]
        scale = scale_of(masked[start:end], spec.unit) if end > start else None
        if least is not None and (scale is None or not form.direct or end - start > MAX_INTEGER_DIGITS):
            raise _ForPython
        if scale is not None:
            limit = _NO_LIMIT if least is None else (True, least)
            yield _value(DECIMAL, names.columns[key, "numbers", name], (start, start + scale.length), scale, limit=limit)
            continue
        constant = event.texts[name] if span == NOWHERE else None
        asked = names.resolver((key, name, constant), _reader(names, spec, constant))
        kind, group = (ASKED_TEXT, "texts") if spec.type in ("string", "boolean") else (ASKED_NUMBER, "numbers")
        yield _value(kind, names.columns[key, group, name], (0, 0) if span == NOWHERE else span, resolver=asked)
    for name, span in event.unregistered_spans.items():
        column, text = names.columns[key, "unregistered", name], masked[slice(*span)]
        scale = scale_of(text, None) if is_plain(text) else None
        if scale is not None:
            yield _value(DECIMAL, column, (span[0], span[0] + scale.length), scale)
        else:
            asked = names.resolver("unregistered", lambda text: read_unregistered(text.decode("utf-8", "replace")))
            yield _value(ASKED_NUMBER, column, span, resolver=asked)
    digits = json.dumps(decimals_in(sample, rule, event))
    yield _text_value(CONSTANT_TEXT, names.columns[key, "printed", ""], (0, 0), names.texts[digits])


def _reader(names: Names, spec: Field, constant: str | None) -> Callable[[bytes], Answer]:
    """Return the function that reads the texts of a field, or the one constant text."""

    def answer(text: bytes) -> Answer:
        read, readable = convert(spec, text.decode("utf-8", "replace") if constant is None else constant)
        if isinstance(read, str):
            return names.texts[read[:EXCERPT_BYTES]]
        return read if readable else _UNREADABLE

    return answer
