"""Problems of a log or a definition, and the limits that every room keeps when it reports them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

MAX_EXCERPT = 500
"""Longest message or excerpt, in characters."""
QUIET_RECORDS = 200
"""Records after an error that show that the process survived it: more than this."""
EXCERPT_BYTES = 2048
"""Raw bytes of a record kept for an excerpt: more than shown, to mask a secret at its end as a whole."""
MAX_NAMED = 4
"""Most lines and values named by one problem."""
MAX_FIELDS = 64
"""Most numbers that one problem withholds."""
MAX_FIRST = 20
"""Most problems, near-misses and markers listed; the rest is only counted."""
_DIGITS = 18
"""Most digits of an array index; Python refuses to read an integer of thousands of digits."""


class Problem(NamedTuple):
    """A part of a log that could not be read properly: reported, never fatal."""

    kind: str
    line_number: int | None
    detail: str
    excerpt: str
    lines: tuple[int, ...] = ()
    """Lines that contradict each other, or examples: at most ``MAX_NAMED``."""
    values: tuple[str, ...] = ()
    """The values in question, as printed: at most ``MAX_NAMED``."""
    fields: tuple[str, ...] = ()
    """JSON pointers of the values that are null because of it (see ``receipts/assembly.py``)."""

    def moved(self, lines: int) -> Problem:
        """Return the same problem, ``lines`` further down."""
        first = None if self.line_number is None else self.line_number + lines
        return self._replace(line_number=first, lines=tuple(line + lines for line in self.lines))


def first_of_each(problems: Iterable[Problem], most: int) -> tuple[Problem, ...]:
    """Return at most ``most`` problems by line, chosen fields first, then one of each kind before a second of any."""
    ordered = sorted(problems, key=lambda p: (p.line_number or 0, p.kind, p.detail))
    seen: Counter[str] = Counter()
    ranked = list[tuple[bool, int, int]]()
    for number, problem in enumerate(ordered):
        ranked.append((not problem.fields, seen[problem.kind], number))
        seen[problem.kind] += 1
    return tuple(ordered[number] for number in sorted(number for _, _, number in sorted(ranked)[:most]))


class NearMiss(NamedTuple):
    """A record that contains a literal of a rule, but does not match it: the format may have drifted."""

    grammar: str
    rule: str
    line_number: int
    excerpt: str

    def moved(self, lines: int) -> NearMiss:
        """Return the same near-miss, ``lines`` further down."""
        return self._replace(line_number=self.line_number + lines)


@lru_cache(maxsize=4096)
def pointer(*parts: str | int) -> str:
    """Return the RFC 6901 JSON pointer with the path ``parts``."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


def split_pointer(place: str) -> tuple[str, ...]:
    """Return the unescaped keys of a JSON pointer; array indices stay texts."""
    return tuple(part.replace("~1", "/").replace("~0", "~") for part in place.split("/")[1:])


def value_at(document: object, keys: Iterable[str], missing: Any = None) -> Any:
    """Return the value of a JSON document at the path ``keys``, or ``missing`` if there is none."""
    value: Any = document
    for key in keys:
        if isinstance(value, Mapping):
            value = value.get(key, missing)
        elif isinstance(value, list) and len(key) <= _DIGITS and key.isascii() and key.isdigit() and int(key) < len(value):
            value = value[int(key)]
        else:
            return missing
    return value


class Lack(NamedTuple):
    """An unread kind of record that looks like training: its first record, how often it occurs, and the reason."""

    line: str
    seen: int
    why: str
    counted: bool = False
    """A counter is beside a number: the record may be a step."""


class Finding(NamedTuple):
    """One error in a definition. ``where`` is ``file:line``; ``caret`` a column of ``snippet``."""

    severity: str
    where: str
    reason: str
    snippet: str | None = None
    caret: int | None = None
    help: str | None = None
