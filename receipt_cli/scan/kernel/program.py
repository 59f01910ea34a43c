"""Turn a layout into the numbers that the kernel executes for each of its records (see ``kernel_add`` in kernel.c)."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from receipt_cli.definitions.units import MAX_TEXT, find_factor, is_grouped, read_number, split_suffix
from receipt_cli.lazy_dataclass import NamedTuple, dataclass, field
from receipt_cli.lazy_pattern import compile_later
from receipt_cli.problems import EXCERPT_BYTES
from receipt_cli.records.envelope import MASK
from receipt_cli.scan.extraction import NOWHERE, Span, convert, read_unregistered
from receipt_cli.scan.layout import EventLayout, Layout, Parts, Prefix, Value
from receipt_cli.scan.segment import RuleKey

if TYPE_CHECKING:
    from receipt_cli.scan.kernel._native import Answer

DECIMAL, ASKED_NUMBER, ASKED_TEXT, CONSTANT_NUMBER, CONSTANT_TEXT, PARTS = range(6)
"""Kinds of values: computed from their digits, asked of Python, the same in every record, or parts of its text."""
MARKER = ""
"""Takes the place of a grammar in the key of a table of a marker's hits."""
MAX_TIMES = 1 << 40
MAX_COUNT = 4096
"""``MAX_VALUES`` of kernel.c: a layout has no more of anything."""
_FORM = compile_later(r"[-+]?[\d,]*\.?\d*(?:[eE][-+]?\d{1,2})?", re.ASCII)


class MarkText(NamedTuple):
    """Where the message of a marker begins in its record, the exit code that it gives, and its form."""

    start: int
    code: int | None
    form: int


class Scale(NamedTuple):
    """The number of a text is that of its first ``length`` bytes, times ``times`` * 10**``power`` * ``factor``.

    ``times`` is odd and ``factor`` a power of two: the product is rounded once.
    """

    length: int
    times: int
    power: int
    factor: float


@lru_cache(4096)
def scale_of(masked: bytes, unit: str | None) -> Scale | None:
    """Return the scale of texts that have the bytes ``masked`` but for their digits, printed in ``unit``.

    None where ``read_number`` may return None for some of them for another reason than a group that begins with a zero.
    """
    text = masked.translate(_ONES).decode("latin-1")
    parts = split_suffix(text)
    if parts is None or len(text) > MAX_TEXT or unit == "hms":
        return None
    number, suffix = parts
    factor = find_factor(suffix, unit)
    if factor is None or _FORM.fullmatch(number) is None or ("," in number and not is_grouped(number)):
        return None
    times, power, binary = _factors(factor)
    return Scale(len(number), times, power, math.ldexp(1.0, binary)) if times <= MAX_TIMES else None


_ONES = bytes.maketrans(b"0", b"1")


def _factors(factor: Decimal) -> tuple[int, int, int]:
    """Return (a, b, c) with ``factor`` = a * 10**b * 2**c and ``a`` odd and no multiple of five."""
    number, divisor = factor.as_integer_ratio()
    powers = {2: 0, 5: 0}
    for prime in powers:
        while number % prime == 0:
            number, powers[prime] = number // prime, powers[prime] + 1
        while divisor % prime == 0:
            divisor, powers[prime] = divisor // prime, powers[prime] - 1
    return number, powers[5], powers[2] - powers[5]


@dataclass(slots=True)
class Names:
    """The numbers by which the kernel refers to rules, columns, grammars and to what Python answers it."""

    tables: dict[RuleKey, int] = field(default_factory=dict)
    columns: dict[tuple[RuleKey, str, str], int] = field(default_factory=dict)
    ignored: dict[str, int] = field(default_factory=dict)
    near: dict[tuple[str, str], int] = field(default_factory=dict)
    texts: dict[str, int] = field(default_factory=dict)
    parts: list[tuple[Parts, int, int]] = field(default_factory=list)
    messages: list[MarkText] = field(default_factory=list)
    resolvers: dict[object, int] = field(default_factory=dict)
    places: dict[Parts | MarkText, int] = field(default_factory=dict)
    answers: list[Callable[[bytes], Answer]] = field(default_factory=list)

    def text(self, text: str) -> int:
        """Return the number of a text."""
        return self.texts.setdefault(text, len(self.texts))

    def place(self, texts: Parts | MarkText) -> int:
        """Return the number of what is read of a record's text: of a row, or of a marker's message."""
        numbered: list[Any] = self.messages if isinstance(texts, MarkText) else self.parts
        number = self.places.setdefault(texts, len(numbered))
        if number == len(numbered):
            numbered.append(texts if isinstance(texts, MarkText) else (texts, *texts.span))
        return number

    def resolver(self, key: object, answer: Callable[[bytes], Answer]) -> int:
        """Return the number of the function that ``answer`` is, which reads all texts of ``key``."""
        number = self.resolvers.setdefault(key, len(self.answers))
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
    head += [names.ignored.setdefault(name, len(names.ignored)) for name in layout.ignored]
    head += [names.near.setdefault(entry, len(names.near)) for entry in layout.near]
    body: list[bytes] = []
    masked = layout.sample.translate(MASK)
    total = len(layout.marks)
    for event in layout.events:
        values = _event_values(names, masked, event)
        if values is None:
            return None
        total += len(values)
        table = names.tables.setdefault(event.key, len(names.tables))
        body += [struct.pack("<7q", table, event.offset, *_prefix(names, event.prefix), len(values)), *values]
    for mark in layout.marks:
        key = (MARKER, mark.marker)
        table = names.tables.setdefault(key, len(names.tables))
        column = names.columns.setdefault((key, "", ""), len(names.columns))
        body.append(struct.pack("<7q", table, min(mark.start, 65535), *_prefix(names, mark.prefix), 1))
        body.append(_place_value(column, names.place(MarkText(mark.start, mark.code, mark.form)), 0))
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


def _place_value(column: int, number: int, end: int) -> bytes:
    """Return the value of a text of the record that ends at ``end``."""
    return _PACKED(PARTS, column, 0, end, -1, number, 0, 1.0, 0, 0.0)


def _prefix(names: Names, prefix: Prefix | None) -> tuple[int, int, int, int]:
    if prefix is None:
        return 0, -1, -1, -1
    start, end = time = prefix.time
    number = names.resolver(("day", start), lambda text: Prefix(len(text), time).day(text))
    return prefix.end, number, start, end


def _event_values(names: Names, masked: bytes, event: EventLayout) -> list[bytes] | None:
    least = dict(event.bounds)
    made: list[bytes] = []
    for at, value in enumerate((*event.values, *event.unregistered)):
        bound = least.get(at) if at < len(event.values) else None
        start, end = (value.start, value.end) if value.direct or value.number == NOWHERE else value.number
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
            scale = Scale(0, names.text(read[:EXCERPT_BYTES]) if isinstance(read, str) else 1, 0, 1.0)
            constant = 0.0 if isinstance(read, str) else read
        elif value.direct or value.number != NOWHERE:
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
        column = names.columns.setdefault((event.key, group, value.name), len(names.columns))
        limits = bound is not None, bound if bound is not None else constant
        made.append(_PACKED(kind, column, start, end, resolver, scale.times, scale.power, scale.factor, *limits))
    if event.parts is not None:
        column = names.columns.setdefault((event.key, event.parts.column, ""), len(names.columns))
        made.append(_place_value(column, names.place(event.parts), event.parts.span[1]))
    return made


def _asked(names: Names, event: EventLayout, value: Value, group: str) -> tuple[int, str, int]:
    """Return kind, group of columns and function of a value whose texts Python reads."""
    spec, shift = value.spec, value.shift
    if value.direct:
        return ASKED_NUMBER, group, names.resolver(("float", shift), lambda text: float(text + shift))
    if spec is None:
        return ASKED_NUMBER, group, names.resolver("unregistered", _read_other)
    if value.number != NOWHERE:
        return ASKED_NUMBER, group, names.resolver(("number", spec.unit), lambda text: _read_plain(text, spec.unit))
    known = names.texts

    def answer(text: bytes) -> Answer:
        read, readable = convert(spec, text.decode("utf-8", "replace"))
        if isinstance(read, str):
            return known.setdefault(read[:EXCERPT_BYTES], len(known))
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
