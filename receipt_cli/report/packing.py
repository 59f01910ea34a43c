"""Pack values of receipts into the small JSON of a report: each text once, six-digit numbers, columns instead of objects."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from receipt_cli.redaction.mask import mask_secrets
from receipt_cli.redaction.text import clean
from receipt_cli.render.fields import real

MAX_TEXT = 500
"""Longest text in characters; longer names and messages end with an ellipsis."""
MAX_NAME = 120
"""Longest text in the tables of all runs, in characters."""
_EXACT = 2.0**53


class Pool:
    """Texts and rows of texts, each stored once and referred to by number. ``size``: their approximate bytes as JSON."""

    def __init__(self) -> None:
        self.size = 0
        self.texts: list[str] = []
        self.facts: list[list[int]] = []
        self._text_at: dict[str, int] = {}
        self._fact_at: dict[tuple[int, ...], int] = {}

    def text(self, value: object, most: int = MAX_TEXT) -> int | None:
        """Return the number of a text, cut to ``most`` characters; None for None and for an empty text."""
        if value is None or value == "":
            return None
        kept = short_text(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False), most)
        place = self._text_at.setdefault(kept, len(self.texts))
        if place == len(self.texts):
            self.texts.append(kept)
            self.size += byte_count(kept) + 1
        return place

    def fact(self, *parts: object) -> int:
        """Return the number of a row of texts; an empty part is -1."""
        key = tuple(-1 if (number := self.text(part)) is None else number for part in parts)
        place = self._fact_at.setdefault(key, len(self.facts))
        if place == len(self.facts):
            self.facts.append(list(key))
            self.size += byte_count(list(key)) + 1
        return place


def short_text(text: str, most: int = MAX_TEXT) -> str:
    """Return ``text`` without control characters and secrets, cut to ``most`` characters with an ellipsis."""
    kept = mask_secrets(clean(text))
    return kept if len(kept) <= most else kept[: most - 1] + "…"


def number(value: object) -> int | float | None:
    """Return a finite number with six significant digits, a whole one exactly; None for anything else."""
    known = real(value)
    if known is None:
        return None
    if known == int(known) and abs(known) < _EXACT:
        return int(known)
    rounded = float(f"{known:.6g}")
    return int(rounded) if rounded == int(rounded) and abs(rounded) < _EXACT else rounded


def compact(value: object) -> str:
    """Return ``value`` as JSON text without blanks."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def byte_count(value: object) -> int:
    """Return the size of ``value`` in a page in bytes: as JSON with escaped markup."""
    text = compact(value)
    return len(text.encode("utf-8", "surrogatepass")) + 5 * sum(map(text.count, "<>&"))


def present(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields with a value: not None, and no empty list or mapping."""
    return {key: value for key, value in fields.items() if value is not None and value != [] and value != {}}


def columns(rows: Iterable[Mapping[str, Any]], names: Iterable[str]) -> dict[str, list[Any]]:
    """Return ``rows`` as one list per name."""
    kept = list(rows)
    return {name: [row[name] for row in kept] for name in names}
