"""Read fields of an unvalidated document: a value of the wrong type reads as unknown, never as zero."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")
UNKNOWN = "–"
NONE = "-"
"""What a list of a store shows in place of a value that a document lacks."""
_EMPTY: Mapping[str, object] = {}


def or_dash(value: T | None, form: Callable[[T], str] = str, dash: str = UNKNOWN) -> str:
    """Return ``value`` in words, ``dash`` if it is unknown."""
    return dash if value is None else form(value)


def child(value: object, *path: str) -> object:
    """Return the value at ``path`` in nested mappings, or None."""
    for key in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def mapping(value: object, *path: str) -> Mapping[str, object]:
    """Return the mapping at ``path``, empty if there is none; keys that are not strings are left out."""
    inner = child(value, *path)
    if not isinstance(inner, Mapping):
        return _EMPTY
    return inner if all(isinstance(key, str) for key in inner) else {k: v for k, v in inner.items() if isinstance(k, str)}


def items(value: object, *path: str) -> Sequence[object]:
    """Return the list at ``path``, empty if there is none."""
    inner = child(value, *path)
    return inner if isinstance(inner, list | tuple) else ()


def text(value: object, *path: str) -> str | None:
    """Return the string at ``path`` unless it is empty; None otherwise."""
    inner = child(value, *path)
    return inner if isinstance(inner, str) and inner else None


def real(value: object, *path: str) -> float | None:
    """Return the finite number at ``path``; None otherwise (a boolean is not a number)."""
    inner = child(value, *path)
    if isinstance(inner, bool) or not isinstance(inner, int | float):
        return None
    try:
        number = float(inner)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def whole(value: object, *path: str) -> int | None:
    """Return the whole number at ``path``; None otherwise."""
    number = real(value, *path)
    return int(number) if number is not None and number == int(number) else None


def truth(value: object, *path: str) -> bool | None:
    """Return the boolean at ``path``; None otherwise."""
    inner = child(value, *path)
    return inner if isinstance(inner, bool) else None
