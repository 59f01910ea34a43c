"""Bytes of a fuzzer → the small choices and the texts that a target is made of; the same bytes always give the same."""

import itertools
import json
from collections.abc import Sequence
from typing import Any, TypeVar

T = TypeVar("T")


class Feed:
    """Takes choices from the front of an input; where it is used up, the first choice of all."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def byte(self) -> int:
        """Return the next byte, 0 at the end."""
        self._at += 1
        return self._data[self._at - 1] if self._at <= len(self._data) else 0

    def below(self, limit: int) -> int:
        """Return a number from 0 to ``limit`` - 1: one byte up to 256, else two."""
        value = self.byte() if limit <= 256 else self.byte() << 8 | self.byte()
        return value % limit

    def pick(self, choices: Sequence[T]) -> T:
        """Return one of ``choices``."""
        return choices[self.below(len(choices))]

    def rest(self) -> bytes:
        """Return what is left."""
        return self._data[self._at :]


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    """Return ``data`` in pieces, cut at ``places`` modulo its length."""
    bounds = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(bounds)]


def choice(number: int, limit: int) -> bytes:
    """Return the bytes by which ``Feed.below(limit)`` gives ``number``: how seeds state their choices."""
    return bytes([number]) if limit <= 256 else bytes([number >> 8, number & 255])


def change(document: dict[str, Any], feed: Feed) -> None:
    """Set, drop or rename values at places that the input chooses; what is left of the input is a text or JSON."""
    steps = [(feed.below(1 << 16), feed.below(4)) for _ in range(feed.pick((1, 2, 3, 6)))]
    rest = feed.rest()
    try:
        value = json.loads(rest)
    except (ValueError, RecursionError):
        value = rest.decode("utf-8", "replace")
    for place, how in steps:
        ways = list(places(document))
        holder, key = ways[place % len(ways)]
        if how == 0 and isinstance(holder, dict) and key != "schema_version":
            del holder[key]
        elif how == 1 and isinstance(holder, dict):
            holder[str(value)[:200]] = holder.pop(key)
        elif how == 2 and isinstance(holder[key], int | float) and isinstance(value, str):
            holder[key] = -holder[key]
        else:
            holder[key] = value
        if not document:
            return


def places(value: object) -> list[tuple[Any, Any]]:
    """Return every place in a JSON value: what holds it, and its key there."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found: list[tuple[Any, Any]] = []
    for key, item in items:
        found += [(value, key), *places(item)]
    return found
