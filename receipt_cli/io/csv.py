"""CSV cells that no spreadsheet reads as formulas."""

from __future__ import annotations

from typing import TypeVar

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
Cell = TypeVar("Cell")


def safe_cell(value: Cell) -> Cell | str:
    """Return ``value``; a text that begins like a formula gets an apostrophe in front."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
