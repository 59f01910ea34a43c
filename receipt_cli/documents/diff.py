"""Compare two JSON documents field by field."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import zip_longest
from typing import Any, Literal, TypeGuard

from receipt_cli.problems import pointer


class Absent(Enum):
    """The type of ``ABSENT``."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT
"""Marks a missing field; null is a value: the field is there, its value unknown."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference between two documents. ``pointer`` is an RFC 6901 JSON pointer, ``""`` the whole document.

    ``gained``: only the new document has a value (the old one has no field, or null); ``lost``: the reverse; ``changed``:
    the values differ, or one is null and the other absent. ``old`` and ``new`` are JSON values or ``ABSENT``.
    """

    pointer: str
    kind: Literal["gained", "lost", "changed"]
    old: object
    new: object

    def document(self) -> dict[str, object]:
        """Return the difference as JSON values, without ``old`` or ``new`` if that field is absent."""
        sides = {name: value for name, value in (("old", self.old), ("new", self.new)) if value is not ABSENT}
        return {"pointer": self.pointer, "kind": self.kind, **sides}


def differences(old: object, new: object) -> list[Difference]:
    """Return the differences of two JSON values in field order; none if, and only if, their JSON text is the same.

    Arrays are compared by index. A part that only one side has is one difference, not one for each field in it. If the
    common fields are in another order, the object is ``changed``: ``old`` and ``new`` are then its lists of field names.
    """
    return list(_compare((), old, new))


def _compare(path: tuple[str | int, ...], old: object, new: object) -> Iterator[Difference]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        order = [[key for key in side if key in other] for side, other in ((old, new), (new, old))]
        if order[0] != order[1]:
            yield Difference(pointer(*path), "changed", *order)
        pairs: Iterable[tuple[str | int, Any, Any]]
        pairs = ((key, old.get(key, ABSENT), new.get(key, ABSENT)) for key in _fields(old, new))
    elif _is_array(old) and _is_array(new):
        pairs = ((at, *pair) for at, pair in enumerate(zip_longest(old, new, fillvalue=ABSENT)))
    else:
        if not _same(old, new):
            yield Difference(pointer(*path), _kind(old, new), old, new)
        return
    for part, before, after in pairs:
        yield from _compare((*path, part), before, after)


def _fields(old: Mapping[str, object], new: Mapping[str, object]) -> Iterator[str]:
    """Yield each field of both once: in the order of ``new``, with the lost fields at their places in ``old``."""
    waiting = iter(old)
    for key in new:
        if key in old:
            for before in waiting:
                if before == key:
                    break
                if before not in new:
                    yield before
        yield key
    yield from (key for key in waiting if key not in new)


def _is_array(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _same(old: object, new: object) -> bool:
    """Return whether both have the same JSON text: 1, 1.0 and true are three values."""
    if old is ABSENT or new is ABSENT:
        return old is new
    return json.dumps(old) == json.dumps(new)


def _kind(old: object, new: object) -> Literal["gained", "lost", "changed"]:
    had, has = (value is not None and value is not ABSENT for value in (old, new))
    return "changed" if had == has else "gained" if has else "lost"
