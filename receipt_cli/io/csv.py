"""A text → a cell of CSV that no spreadsheet takes for a formula."""

from __future__ import annotations

from typing import TypeVar

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
Cell = TypeVar("Cell")


def safe_cell(value: Cell) -> Cell | str:
    """Return ``value``, with an apostrophe before it where it is a text that begins as a formula does."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
