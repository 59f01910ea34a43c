"""Rules of mappings: Python or JSON objects printed in a record."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache, partial

import regex

from receipt_cli.definitions.units import read_number
from receipt_cli.grammar.model import Mapped, Rule
from receipt_cli.records.literals import NotALiteral, Number, Text, Value, parse_object
from receipt_cli.scan.extraction.model import MAX_KEY, NOWHERE, Box, Extraction, Span, add_groups, read_unregistered

_MAX_OPENINGS = 16


def find_mappings(rule: Rule, spec: Mapped, record: bytes, box: Box) -> Iterator[Extraction]:
    """Yield an event for each object in ``record`` that has the required keys and values."""
    text = record.decode("utf-8", "surrogateescape")
    end = tries = 0
    for at, opening in _braces(rule, record, text, box):
        if at < end:
            continue  # inside the object before
        tries += 1
        if tries > _MAX_OPENINGS:
            return
        parsed = _parse(text, at)
        event = None if parsed is None else _mapped(spec, parsed[0])
        if parsed is None or (event is None and opening is not None):
            continue
        _, end, keys = parsed
        if event is not None:
            event.start, event.end = at, end
            event.keys += keys
            event = event.moved(_in_bytes(text, at, end))
            if opening is not None:
                add_groups(event, opening.re, opening)
            yield event


def _braces(rule: Rule, record: bytes, text: str, box: Box) -> Iterator[tuple[int, regex.Match[bytes] | None]]:
    """Yield the offset in ``text`` of each brace that may begin an object, with the match of the rule's start that it ends."""
    if rule.opening is not None:
        for found in rule.opening.finditer(record, timeout=box.left()):
            yield len(record[: found.end() - 1].decode("utf-8", "surrogateescape")), found
        return
    at = text.find("{")
    while at >= 0:
        yield at, None
        at = text.find("{", at + 1)


@lru_cache(8)
def _parse(text: str, at: int) -> tuple[dict[str, Value], int, tuple[Span, ...]] | None:
    """Return the object that starts at ``at``, its end and the spans of its keys; None if there is none.

    Cached, because several rules read one record.
    """
    keys: list[Span] = []
    try:
        data, end = parse_object(text, at, keys)
    except (NotALiteral, RecursionError):
        return None
    return data, end, tuple(keys)


def _mapped(spec: Mapped, data: dict[str, Value]) -> Extraction | None:
    """Return the event of ``data``, or None if ``data`` does not meet ``spec``.

    Its spans count characters in the parsed text.
    """
    forbidden = any(key in data or lookup(data, key) is not None for key in spec.forbids)
    if forbidden or any(lookup(data, key) is None for key in spec.requires):
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
    event.declared += [_place(data[key]) for key in spec.ignore if key in data]
    if spec.other:
        for key, value in data.items():
            if key in spec.keys or key in spec.ignore or not 0 < len(key) <= MAX_KEY or not isinstance(value, str):
                continue
            other = read_unregistered(value.strip())
            if other is not None:
                event.unregistered[_utf8(key)] = other
                event.unregistered_spans[_utf8(key)] = _place(value)
            else:
                event.unread.append(_place(value))
    return event


def _place(value: Value) -> Span:
    """Return the span of a parsed value without blanks around it, or ``NOWHERE`` if it has none."""
    if not isinstance(value, Text) or value.start < 0:
        return NOWHERE
    begin = value.start + len(value) - len(value.lstrip())
    return begin, begin + len(value.strip())


def _in_bytes(text: str, start: int, end: int) -> Callable[[int], int]:
    """Return the function that converts a character offset between ``start`` and ``end`` to a byte offset."""
    if text[start:end].isascii():
        return (_offset(text, start) - start).__add__
    return partial(_offset, text)


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
    """Return the value at ``dotted`` (``metadata.status``; a key that contains the dots wins), or None."""
    if dotted in data:
        return data[dotted]
    value: Value = data
    for part in dotted.split("."):
        if not isinstance(value, dict) or part not in value:
            return None
        value = value[part]
    return value
