"""What may be wrong with a log or a definition, and the bounds that every room keeps in a report of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

MAX_EXCERPT = 500
"""Characters of a message or an excerpt."""
QUIET_RECORDS = 200
"""More records after an error show that the process survived it."""
EXCERPT_BYTES = 2048
"""Raw bytes of a record that are kept for an excerpt: more, so that a secret at its end is masked as a whole."""
MAX_NAMED = 4
"""Lines and values that one problem names."""
MAX_FIELDS = 64
"""Figures that one problem leaves out."""
MAX_FIRST = 20
"""Problems, near-misses and markers that are listed one by one; the rest is counted."""


class Problem(NamedTuple):
    """A part of a log that could not be read properly: counted, never fatal."""

    kind: str
    line_number: int | None
    detail: str
    excerpt: str
    lines: tuple[int, ...] = ()
    """Lines that contradict each other, or examples: at most ``MAX_NAMED``."""
    values: tuple[str, ...] = ()
    """The values in question, as printed: at most ``MAX_NAMED``."""
    fields: tuple[str, ...] = ()
    """JSON pointers of the figures that are null because of it (see ``receipts/withhold.py``)."""

    def moved(self, lines: int) -> Problem:
        """The same problem, ``lines`` further down."""
        first = None if self.line_number is None else self.line_number + lines
        return self._replace(line_number=first, lines=tuple(line + lines for line in self.lines))


def first_of_each(problems: Iterable[Problem], most: int) -> tuple[Problem, ...]:
    """Return at most ``most`` problems by line: the first of each kind before a second of any, those that name fields first."""
    ordered = sorted(problems, key=lambda p: (p.line_number or 0, p.kind, p.detail))
    seen: Counter[str] = Counter()
    ranked = list[tuple[bool, int, int]]()
    for number, problem in enumerate(ordered):
        ranked.append((not problem.fields, seen[problem.kind], number))
        seen[problem.kind] += 1
    return tuple(ordered[number] for number in sorted(number for _, _, number in sorted(ranked)[:most]))


class NearMiss(NamedTuple):
    """A record with a literal of a rule that the rule did not match: its format may have drifted."""

    grammar: str
    rule: str
    line_number: int
    excerpt: str

    def moved(self, lines: int) -> NearMiss:
        """The same near-miss, ``lines`` further down."""
        return self._replace(line_number=self.line_number + lines)


@lru_cache(maxsize=4096)
def pointer(*parts: str | int) -> str:
    """Return the RFC 6901 JSON pointer of the value that ``parts`` lead to."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in parts)


class Lack(NamedTuple):
    """A kind of record that looks like training and was not read: its first record, how many there are, and why."""

    line: str
    seen: int
    why: str
    counted: bool = False
    """A counter stands beside a figure: the record may be a step."""


class Finding(NamedTuple):
    """One error in a definition. ``where`` is ``file:line``; ``caret`` a column of ``snippet``."""

    severity: str
    where: str
    reason: str
    snippet: str | None = None
    caret: int | None = None
    help: str | None = None
