"""Turn a layout into the numbers that the kernel executes for each of its records (see ``kernel_add`` in kernel.c)."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from receipt_cli.definitions.units import read_number
from receipt_cli.lazy_dataclass import dataclass, field
from receipt_cli.problems import EXCERPT_BYTES
from receipt_cli.records.envelope import MASK
from receipt_cli.scan.extraction import NOWHERE, Span, convert, read_unregistered
from receipt_cli.scan.layout import EventLayout, Layout, Mark, Prefix, Value, read_day
from receipt_cli.scan.number_forms import Scale, scale_of
from receipt_cli.scan.segment import RuleKey

if TYPE_CHECKING:
    from receipt_cli.scan.kernel._native import Answer

K = TypeVar("K")
DECIMAL, ASKED_NUMBER, ASKED_TEXT, CONSTANT_NUMBER, CONSTANT_TEXT, PLACE, DIGITS = range(7)
"""Kinds of values: computed from their digits, asked of Python, the same in every record, its place, or digits of a text."""
OF_DIGITS = "digits"
"""The name of the column that has the digits of a group of texts."""
MARKER = ""
"""Takes the place of a grammar in the key of a table of a marker's hits."""
MAX_COUNT = 4096
"""``MAX_VALUES`` of kernel.c: a layout has no more of anything."""


class Numbered(dict[K, int]):
    """Numbers what it is asked for, from 0 on; ``listed`` has it in this order."""

    def __init__(self) -> None:
        super().__init__()
        self.listed: list[K] = []

    def __missing__(self, key: K) -> int:
        self.listed.append(key)
        self[key] = number = len(self)
        return number


@dataclass(slots=True)
class Names:
    """The numbers by which the kernel refers to rules, columns, grammars and to what Python answers it.

    ``forms`` are those of the texts of a column (see ``RowTexts``).
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
        """Return the number of the function that ``answer`` is, which reads all texts of ``key``."""
        number = self.resolvers[key]
        if number == len(self.answers):
            self.answers.append(answer)
        return number


def moving_digits(layout: Layout) -> bytes:
    """Return a byte for each of a layout's: 1 for a digit that may vary, else 0."""
    moving = bytearray(layout.sample.translate(_DIGITS))
    for start, end, _ in layout.fixed:
        moving[start:end] = bytes(end - start)
    return bytes(moving)


_DIGITS = bytes(48 <= byte <= 57 for byte in range(256))


def write_program(names: Names, layout: Layout) -> bytes | None:
    """Return the program of a layout; None where its records are for Python."""
    if any(one.host is not None for one in layout.marks):
        return None
    head = [number for at, literal in layout.absent for number in (at, len(literal), *literal)]
    for echo in layout.echoes:
        head += [*_place_of(echo.first), *_place_of(echo.second), echo.same]
    head += [names.ignored[name] for name in layout.ignored]
    head += [names.near[entry] for entry in layout.near]
    body: list[bytes] = []
    total = len(layout.marks)
    for event in layout.events:
        values = _event_values(names, layout.sample, event)
        if values is None:
            return None
        total += len(values)
        table = names.tables[event.key]
        body += [struct.pack("<7q", table, event.start, *_prefix(names, event.prefix), len(values)), *values]
    for mark in layout.marks:
        key = (MARKER, mark.marker)
        body.append(struct.pack("<7q", names.tables[key], mark.start, *_prefix(names, mark.prefix), 1))
        body.append(_text_value(PLACE, names.columns[key, "", ""], (0, 0), names.marks[mark]))
    lengths = len(layout.absent), sum(len(literal) for _, literal in layout.absent), len(layout.echoes)
    counts = (len(layout.ignored), len(layout.near), len(layout.events) + len(layout.marks), total, *lengths)
    if max(counts) > MAX_COUNT:
        return None
    flags = bool(layout.events or layout.ignored), layout.any_bar
    return struct.pack(f"={9 + len(head)}q", *counts, *flags, *head) + b"".join(body)


_PACKED = struct.Struct("=7qdqd").pack
"""Packs a value."""


def _place_of(span: Span) -> tuple[int, int]:
    return span[0], span[1] - span[0]


def _text_value(kind: int, column: int, span: Span, number: int) -> bytes:
    """Return a value of a text: ``number``, the place of the record with it, or the digits at ``span``."""
    return _PACKED(kind, column, *span, -1, number, 0, 1.0, 0, 0.0)


def _prefix(names: Names, prefix: Prefix | None) -> tuple[int, int, int, int]:
    if prefix is None:
        return 0, -1, -1, -1
    time = prefix.time
    return prefix.end, names.resolver(("day", time[0]), lambda text: read_day(text, time)), *time


def _event_values(names: Names, sample: bytes, event: EventLayout) -> list[bytes] | None:
    masked = sample.translate(MASK)
    least = dict(event.bounds)
    made: list[bytes] = []
    for at, value in enumerate((*event.values, *event.unregistered)):
        bound = least.get(at) if at < len(event.values) else None
        start, end = value.number if value.number != NOWHERE else (value.start, value.end)
        kind, resolver, scale, constant = DECIMAL, -1, None, 0.0
        group = "numbers" if at < len(event.values) else "unregistered"
        if value.constant is not None:
            assert value.spec is not None
            read, readable = convert(value.spec, value.constant)
            if not readable:
                return None
            if read is None:
                continue
            start = end = 0
            kind = CONSTANT_TEXT if isinstance(read, str) else CONSTANT_NUMBER
            group = "texts" if isinstance(read, str) else group
            scale = Scale(0, names.texts[read[:EXCERPT_BYTES]] if isinstance(read, str) else 1, 0, 1.0)
            constant = 0.0 if isinstance(read, str) else read
        elif value.number != NOWHERE:
            unit = value.spec.unit if value.spec is not None else None
            scale = scale_of(masked[start:end], unit)
            end = start + scale.length if scale is not None else end
        if scale is None:
            if bound is not None:
                return None
            kind, group, resolver = _asked(names, event, value, group)
            scale = Scale(0, 1, 0, 1.0)
        elif bound is not None and kind != DECIMAL:
            return None
        column = names.columns[event.key, group, value.name]
        limits = bound is not None, bound if bound is not None else constant
        made.append(_PACKED(kind, column, start, end, resolver, scale.times, scale.power, scale.factor, *limits))
    if event.parts is not None:
        printed = event.parts.printed(sample)
        if printed is None:
            return None
        form, spans = printed
        group = event.parts.column
        column = names.columns[event.key, group, ""]
        made.append(_text_value(CONSTANT_TEXT, column, (0, 0), names.forms[column][form]))
        column = names.columns[event.key, group, OF_DIGITS]
        made += [_text_value(DIGITS, column, span, 1) for span in spans]
    return made


def _asked(names: Names, event: EventLayout, value: Value, group: str) -> tuple[int, str, int]:
    """Return kind, group of columns and function of a value whose texts Python reads."""
    spec = value.spec
    if spec is None:
        return ASKED_NUMBER, group, names.resolver("unregistered", _read_other)
    if value.number != NOWHERE:
        return ASKED_NUMBER, group, names.resolver(("number", spec.unit), lambda text: _read_plain(text, spec.unit))
    known = names.texts

    def answer(text: bytes) -> Answer:
        read, readable = convert(spec, text.decode("utf-8", "replace"))
        if isinstance(read, str):
            return known[read[:EXCERPT_BYTES]]
        return read if readable else _unreadable()

    number = names.resolver((event.key, value.name), answer)
    if spec.type in ("string", "boolean"):
        return ASKED_TEXT, "texts", number
    return ASKED_NUMBER, group, number


def _read_plain(text: bytes, unit: str | None) -> Answer:
    number = read_number(text.decode("ascii"), unit)
    return _unreadable() if number is None else number


def _unreadable() -> Any:
    """Return the answer for a text that cannot be read: its record is for Python."""
    return NotImplemented


def _read_other(text: bytes) -> Answer:
    return read_unregistered(text.decode("utf-8", "replace"))
