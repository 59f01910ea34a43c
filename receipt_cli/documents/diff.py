"""Compare two JSON documents field by field."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import zip_longest
from typing import Any, Literal, TypeGuard

from receipt_cli.documents.invariants.rule import pointer


class Absent(Enum):
    """The type of ``ABSENT``."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT
"""Stands where a document has no such field: null is a value that says that nothing is known."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where two documents differ. ``pointer`` is an RFC 6901 JSON pointer, ``""`` the whole document.

    ``gained``: a value where the old document has none (no field, or null); ``lost``: the reverse; ``changed``: another
    value, or a field that is null in one and absent in the other. ``old`` and ``new`` are JSON values or ``ABSENT``.
    """

    pointer: str
    kind: Literal["gained", "lost", "changed"]
    old: object
    new: object

    def document(self) -> dict[str, object]:
        """Return it for JSON: ``old`` and ``new`` are left out where there is no such field."""
        sides = {name: value for name, value in (("old", self.old), ("new", self.new)) if value is not ABSENT}
        return {"pointer": self.pointer, "kind": self.kind, **sides}


def differences(old: object, new: object) -> list[Difference]:
    """Return where two JSON values differ, in the order of their fields; nothing if, and only if, their JSON text is the same.

    Arrays are compared by index. A part that only one side has is one difference, not one for each field in it. Where
    the fields that both have stand in another order, that is a change of the object: ``old`` and ``new`` are their names.
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
    """Yield the fields of both, each once: in the order of ``new``, and those that it lacks where they stood in ``old``."""
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
