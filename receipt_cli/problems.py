"""What may be wrong with a log or a definition, and the bounds that every room keeps in a report of it."""

from __future__ import annotations

from receipt_cli.lazy_dataclass import NamedTuple

MAX_EXCERPT = 500
"""Characters of a message or an excerpt."""
QUIET_RECORDS = 200
"""More records after an error show that the process survived it."""
EXCERPT_BYTES = 2048
"""Raw bytes of a record that are kept for an excerpt: more, so that a secret at its end is masked as a whole."""
MAX_FIRST = 20
"""Problems, near-misses and markers that are listed one by one; the rest is counted."""


class Problem(NamedTuple):
    """A part of a log that could not be read properly: counted, never fatal."""

    kind: str
    line_number: int | None
    detail: str
    excerpt: str

    def moved(self, lines: int) -> Problem:
        """The same problem, ``lines`` further down."""
        return self if self.line_number is None else self._replace(line_number=self.line_number + lines)


class NearMiss(NamedTuple):
    """A record with a literal of a rule that the rule did not match: its format may have drifted."""

    grammar: str
    rule: str
    line_number: int
    excerpt: str

    def moved(self, lines: int) -> NearMiss:
        """The same near-miss, ``lines`` further down."""
        return self._replace(line_number=self.line_number + lines)


class Lack(NamedTuple):
    """A kind of record that looks like training and was not read: its first record, how many there are, and why."""

    line: str
    seen: int
    why: str


class Finding(NamedTuple):
    """One error in a definition. ``where`` is ``file:line``; ``caret`` a column of ``snippet``."""

    severity: str
    where: str
    reason: str
    snippet: str | None = None
    caret: int | None = None
    help: str | None = None
