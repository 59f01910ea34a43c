"""Rules of the header: every value has a source, and every source has a value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from receipt_cli.documents.invariants.rule import Broken, Document, Rule, pointer, pointer_parts

_DIGITS = 18
"""Most digits of an array index; Python refuses to read an integer of thousands of digits."""


def _leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of each leaf that is not null; an empty object or array is a leaf."""
    if isinstance(value, dict | list) and value:
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _leaves(item, (*path, str(key)))
    elif value is not None:
        yield path


def _resolves(header: Any, text: str) -> bool:
    for key in pointer_parts(text):
        if isinstance(header, dict) and key in header:
            header = header[key]
        elif isinstance(header, list) and len(key) <= _DIGITS and key.isascii() and key.isdigit() and int(key) < len(header):
            header = header[int(key)]
        else:
            return False
    return True


def _header_sources(document: Document) -> Broken:
    header = {key: value for key, value in document["header"].items() if key != "sources"}
    sources = document["header"]["sources"]
    for text in sources:
        if not _resolves(header, text):
            yield pointer("header", "sources", text), "points to no value in the header"
    for path in _leaves(header):
        if not any(pointer(*path[:length]) in sources for length in range(1, len(path) + 1)):
            yield pointer("header", *path), "has no source"


HEADER_RULES: tuple[Rule, ...] = (Rule("header_sources", ("header",), _header_sources),)
