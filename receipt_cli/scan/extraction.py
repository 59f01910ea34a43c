"""One record + one rule → extractions: which texts of the record are which fields."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from time import process_time
from typing import NamedTuple

import regex

from receipt_cli.definitions.units import read_number
from receipt_cli.grammar.model import Block, Field, Mapped, Pairs, Rule, Table
from receipt_cli.records.envelope import starts
from receipt_cli.records.literals import NotALiteral, Number, Text, Value, parse_object

TIME_BOX_S = 2.0
"""CPU seconds that one rule may spend on finding its events in one record (``regex`` counts ``clock()``: a process that
sleeps or is suspended does not use them up). Shipped patterns are linear and stay far below."""
MAX_EVENTS = 64
"""Events that one rule may find in one record."""
MAX_KEY = 64
MAX_INTEGER = 1 << 53
"""From it on a float64 may hold another integer than the one printed: such a value is not read."""
_MAX_OPENINGS = 16
_CELL = regex.compile(rb"\S++(?: (?:[KMGTP]i?)?B\b)?")


Span = tuple[int, int]
NOWHERE: Span = (-1, -1)
"""The place of a text that the record does not hold as it stands, but escaped or with marks inside."""


@dataclass(slots=True)
class Extraction:
    """One event as printed: its span in the record, the text of each field, and values under keys nobody declared.

    ``spans`` and ``other_spans`` say where in the record these texts and numbers stand, ``keys`` where what named them
    does, or decided that this is an event, ``unread`` where values under undeclared keys that are no numbers do. Tables
    and blocks do not say it.

    ``header`` holds the column names of a table's header row; ``cells`` the cells of a value row, not yet named;
    ``row`` key and value of one row of a block.
    """

    start: int
    end: int
    texts: dict[str, str] = field(default_factory=dict)
    others: dict[str, float] = field(default_factory=dict)
    spans: dict[str, Span] = field(default_factory=dict)
    other_spans: dict[str, Span] = field(default_factory=dict)
    keys: list[Span] = field(default_factory=list)
    unread: list[Span] = field(default_factory=list)
    header: tuple[str, ...] | None = None
    cells: tuple[str, ...] | None = None
    row: tuple[str, str] | None = None


class PatternTimeout(Exception):
    """A pattern spent its time box, or the memory it may have, on one record."""


class Box:
    """The CPU time that several searches share, from the first of them on."""

    __slots__ = ("_end",)

    def __init__(self) -> None:
        self._end: float | None = None

    def left(self) -> float:
        """Return the seconds that are left. Raises ``TimeoutError``."""
        now = process_time()
        if self._end is None:
            self._end = now + TIME_BOX_S
        if now >= self._end:
            raise TimeoutError
        return self._end - now


def extract(rule: Rule, record: bytes, *, bounded: bool = True, box: Box | None = None) -> list[Extraction]:
    """Return the events that ``rule`` finds in ``record``, in order. Raises ``PatternTimeout``.

    Without ``bounded`` also those that a value below the least allowed one rules out. ``box`` is shared with other calls.
    """
    try:
        if rule.pattern is not None:
            events = list(_pattern(rule, record, TIME_BOX_S if box is None else box.left()))
        elif rule.pairs is not None:
            events = list(_pairs(rule, rule.pairs, record, box or Box()))
        elif rule.mapping is not None:
            events = list(_mapping(rule, rule.mapping, record, box or Box()))
        else:
            return (_table if rule.table is not None else _block)(rule, record, box or Box())
    except (TimeoutError, MemoryError, RecursionError) as error:
        raise PatternTimeout(rule.name) from error
    return [event for event in events if not fields_below(rule, event)] if bounded and rule.bounds else events


def read_record(rule: Rule, record: bytes) -> list[Extraction]:
    """Return the events that ``rule`` finds in a record as it stands in a log, behind its envelopes too.

    Raises ``PatternTimeout``.
    """
    events = extract(rule, record)
    return events or (extract_behind(rule, record) if rule.anchored else [])


def extract_behind(rule: Rule, record: bytes, *, bounded: bool = True) -> list[Extraction]:
    """Return what an anchored ``rule`` finds where an envelope ends, with offsets into the whole ``record``.

    All these places share one time box. Raises ``PatternTimeout``.
    """
    box = Box()
    for at in starts(record):
        events = extract(rule, record[at:], bounded=bounded, box=box)
        if events:
            for event in events:
                event.start, event.end = event.start + at, event.end + at
                event.spans = {name: _moved(span, at) for name, span in event.spans.items()}
                event.other_spans = {name: _moved(span, at) for name, span in event.other_spans.items()}
                event.keys = [_moved(span, at) for span in event.keys]
                event.unread = [_moved(span, at) for span in event.unread]
            return events
    return []


def _moved(span: Span, by: int) -> Span:
    return span if span == NOWHERE else (span[0] + by, span[1] + by)


def fields_below(rule: Rule, event: Extraction) -> list[str]:
    """Return the fields of ``event`` that are below the least value that ``rule`` allows them."""
    printed = {name: convert(rule.fields[name], event.texts[name])[0] for name in rule.bounds if name in event.texts}
    return [name for name, value in printed.items() if isinstance(value, float) and value < rule.bounds[name]]


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace").strip()


def _pattern(rule: Rule, record: bytes, timeout: float) -> Iterator[Extraction]:
    for count, found in enumerate(rule.start.finditer(record, timeout=timeout)):
        if count >= MAX_EVENTS:
            return
        event = Extraction(found.start(), found.end())
        _groups(event, rule.start, found)
        yield event


def _groups(event: Extraction, pattern: regex.Pattern[bytes], found: regex.Match[bytes]) -> None:
    """Add the named groups of a match, without the blanks around them."""
    for name in pattern.groupindex:
        raw = found[name]
        if raw is not None:
            event.texts[name] = _text(raw)
            event.spans[name] = _stripped(raw, found.start(name))


def _stripped(raw: bytes, start: int) -> Span:
    """Return where ``raw``, which begins at ``start``, stands without the blanks around it."""
    begin = start + len(raw) - len(raw.lstrip())
    return begin, begin + len(raw.strip())


def _pairs(rule: Rule, pairs: Pairs, record: bytes, box: Box) -> Iterator[Extraction]:
    starts = []
    for found in rule.start.finditer(record, timeout=box.left()):
        starts.append(found)
        if len(starts) >= MAX_EVENTS:
            break
    for number, found in enumerate(starts):
        limit = starts[number + 1].start() if number + 1 < len(starts) else len(record)
        if rule.stop is not None:
            stop = rule.stop.search(record, found.end(), limit, timeout=box.left())
            limit = stop.start() if stop else limit
        event = Extraction(found.start(), found.end())
        _groups(event, rule.start, found)
        printed: set[str] = set()
        for cell in _cells(rule, pairs, record, found.end(), limit, box):
            key, value, end = _text(cell.key), _text(cell.value), cell.end
            printed.add(key)
            event.keys.append((cell.key_at, cell.key_at + len(cell.key)))
            if key in pairs.keys:
                name = pairs.keys[key]
                if name not in event.texts:
                    event.texts[name] = value
                    event.spans[name] = _stripped(cell.value, cell.value_at)
                event.end = end
            elif pairs.other and key not in pairs.ignore:
                other = read_other(value)
                span = _stripped(cell.value, cell.value_at)
                if other is None or not 0 < len(key) <= MAX_KEY:
                    event.unread.append(span)
                    continue
                if key not in event.others:
                    event.others[key] = other
                    event.other_spans[key] = span
                event.end = end
            elif key in pairs.ignore:
                event.end = end
        if pairs.requires <= printed and not pairs.forbids & printed:
            yield event


class _Cell(NamedTuple):
    """One cell as printed: its key and value, where each begins, and where the cell ends."""

    key: bytes
    key_at: int
    value: bytes
    value_at: int
    end: int


def _cells(rule: Rule, pairs: Pairs, record: bytes, start: int, limit: int, box: Box) -> Iterator[_Cell]:
    """Yield the cells of ``record[start:limit]``."""
    if rule.cells is not None:
        for found in rule.cells.finditer(record, start, limit, timeout=box.left()):
            yield _Cell(found["key"], found.start("key"), found["value"], found.start("value"), found.end())
        return
    separator, between = pairs.cell.encode(), pairs.key.strip().encode() or pairs.key.encode()
    at = start
    while at < limit:
        end = record.find(separator, at, limit)
        end = limit if end < 0 else end
        key, found_key, value = record[at:end].partition(between)
        if found_key:
            yield _Cell(key, at, value, at + len(key) + len(between), min(end + len(separator.rstrip()), limit))
        at = end + len(separator)


def read_other(text: str) -> float | None:
    """Return the number that an undeclared key's value spells in base units, or None. numpy's own repr counts as a number."""
    if text.startswith("np.") and text.endswith(")"):
        text = text[text.find("(") + 1 : -1]
    return read_number(text) if text[:1] in "+-.0123456789niNI" and text else None


def _mapping(rule: Rule, spec: Mapped, record: bytes, box: Box) -> Iterator[Extraction]:
    text = record.decode("utf-8", "surrogateescape")
    ascii_only = len(text) == len(record)
    if rule.opening is not None:
        yield from _opened(rule, spec, record, box)
        return
    at = text.find("{")
    tries = count = 0
    while at >= 0 and tries < _MAX_OPENINGS and count < MAX_EVENTS:
        tries += 1
        keys: list[Span] = []
        try:
            data, end = parse_object(text, at, keys)
        except (NotALiteral, RecursionError):
            at = text.find("{", at + 1)
            continue
        event = _mapped(spec, data)
        if event is not None:
            count += 1
            event.start, event.end = (at, end) if ascii_only else (_offset(text, at), _offset(text, end))
            event.keys += keys
            yield event
        at = text.find("{", end)


def _opened(rule: Rule, spec: Mapped, record: bytes, box: Box) -> Iterator[Extraction]:
    """Yield the objects of ``record`` whose brace ends a match of the rule's start."""
    assert rule.opening is not None
    end = 0
    for count, found in enumerate(rule.opening.finditer(record, timeout=box.left())):
        if count >= _MAX_OPENINGS:
            return
        if found.end() <= end:
            continue  # inside the object before
        text = record[found.end() - 1 :].decode("utf-8", "surrogateescape")
        keys: list[Span] = []
        try:
            data, length = parse_object(text, 0, keys)
        except (NotALiteral, RecursionError):
            continue
        event = _mapped(spec, data)
        if event is not None:
            event.start = found.end() - 1
            event.end = end = event.start + _offset(text, length)
            event.spans = {name: _moved(span, event.start) for name, span in event.spans.items()}
            event.other_spans = {name: _moved(span, event.start) for name, span in event.other_spans.items()}
            event.keys = [_moved(span, event.start) for span in (*event.keys, *keys)]
            event.unread = [_moved(span, event.start) for span in event.unread]
            yield event


def _mapped(spec: Mapped, data: dict[str, Value]) -> Extraction | None:
    """Return the event that ``data`` is, or None when it is not the one that ``spec`` means.

    Its places are those in the text that was parsed, and so of bytes where that is ASCII.
    """
    if any(lookup(data, key) is None for key in spec.requires) or any(key in data for key in spec.forbids):
        return None
    if any(not _same(lookup(data, key), wanted) for key, wanted in spec.where.items()):
        return None
    event = Extraction(0, 0)
    event.keys += [_place(lookup(data, key)) for key in spec.where]
    for key, name in spec.keys.items():
        value = lookup(data, key)
        if isinstance(value, bool | str) and name not in event.texts:
            event.texts[name] = _utf8(str(value))
            event.spans[name] = _place(value)
    if spec.other:
        for key, value in data.items():
            if key in spec.keys or key in spec.ignore or not 0 < len(key) <= MAX_KEY or not isinstance(value, str):
                continue
            other = read_other(value.strip())
            if other is not None:
                event.others[_utf8(key)] = other
                event.other_spans[_utf8(key)] = _place(value)
            else:
                event.unread.append(_place(value))
    return event


def _place(value: Value) -> Span:
    """Return where a parsed value stands without the blanks around it; ``NOWHERE`` too for one without digits."""
    if not isinstance(value, Text) or value.start < 0:
        return NOWHERE
    begin = value.start + len(value) - len(value.lstrip())
    return begin, begin + len(value.strip())


def _offset(text: str, at: int) -> int:
    return len(text[:at].encode("utf-8", "surrogateescape"))


def _utf8(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace").strip()


def _same(value: Value, wanted: object) -> bool:
    if isinstance(wanted, list):
        return any(_same(value, choice) for choice in wanted)
    if isinstance(value, Number) and isinstance(wanted, int | float) and not isinstance(wanted, bool):
        return read_number(value) == wanted
    kind = str if type(value) is Text else type(value)
    return kind is type(wanted) and value == wanted


def lookup(data: dict[str, Value], dotted: str) -> Value:
    """Return the value at ``dotted`` (``metadata.status``; a key with dots as it stands wins), or None."""
    if dotted in data:
        return data[dotted]
    value: Value = data
    for part in dotted.split("."):
        if not isinstance(value, dict) or part not in value:
            return None
        value = value[part]
    return value


def _table(rule: Rule, record: bytes, box: Box) -> list[Extraction]:
    header, row = rule.table_patterns
    found = header.search(record, timeout=box.left())
    if found is not None:
        names = tuple(_text(cell) for cell in record[found.start() :].split())
        return [Extraction(found.start(), len(record), header=names)]
    found = row.search(record, timeout=box.left())
    if found is None:
        return []
    cells = tuple(_text(cell.group()) for cell in _CELL.finditer(record, found.start()))
    return [Extraction(found.start(), len(record), cells=cells)]


def _block(rule: Rule, record: bytes, box: Box) -> list[Extraction]:
    opening, row = rule.block_patterns
    found = opening.search(record, timeout=box.left()) if opening is not None else None
    if opening is not None and found is not None:
        event = Extraction(found.start(), found.end())
        _groups(event, opening, found)
        return [event]
    found = row.search(record, timeout=box.left())
    if found is None:
        return []
    return [Extraction(found.start(), found.end(), row=(_text(found["key"]), _text(found["value"])))]


def bind_row(spec: Block, row: tuple[str, str]) -> tuple[str, str | float] | None:
    """Name one row of a block: (field, its text), (printed key, number) for an undeclared one, None for what is dropped."""
    key, value = row
    if key in spec.keys:
        return spec.keys[key], value
    if not spec.other or key in spec.ignore or not 0 < len(key) <= MAX_KEY:
        return None
    other = read_other(value)
    return (key, other) if other is not None else None


def bind_cells(spec: Table, header: tuple[str, ...], cells: tuple[str, ...]) -> tuple[dict[str, str], dict[str, float]] | None:
    """Name the ``cells`` of a row by the latest ``header``; None when their number does not fit."""
    values = cells[spec.skip_cells :]
    if len(values) != len(header):
        return None
    texts: dict[str, str] = {}
    others: dict[str, float] = {}
    for name, text in zip(header, values, strict=True):
        if name in spec.keys:
            texts[spec.keys[name]] = text
        elif spec.other and name not in spec.ignore:
            other = read_other(text)
            if other is not None:
                others[name[:MAX_KEY]] = other
    return texts, others


def convert(spec: Field, text: str) -> tuple[float | str | None, bool]:
    """Return the value of ``text`` in base units and whether it could be read.

    ``(None, True)`` is a value that the trainer says it does not know; ``(None, False)`` a problem.
    """
    if text in spec.null_if:
        return None, True
    if spec.value is not None:
        try:
            found = spec.value.search(text, timeout=TIME_BOX_S)
        except (TimeoutError, MemoryError, RecursionError):
            return None, False
        if found is None or found.group(1) is None:
            return None, False
        text = found.group(1).strip()
    if spec.type in ("string", "boolean"):
        return text, bool(text)
    value = read_number(text, spec.unit)
    if value is None or (spec.type == "integer" and not (abs(value) < MAX_INTEGER and value == int(value))):
        return None, False
    return value, True
