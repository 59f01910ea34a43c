"""The nouns that travel between modules, and the bounds of what a receipt may hold."""

from __future__ import annotations

from typing import NamedTuple

RULES = "derive/2"
"""Version of everything in code that decides derived bytes."""
SCHEMA_VERSION = "receipt/1.2"
MAX_EXCERPT = 500
"""Characters of a message or an excerpt."""
QUIET_RECORDS = 200
"""Records that a process which goes on prints after an error, and one that dies of it does not."""
EXCERPT_BYTES = 2048
"""Raw bytes that are kept of a record for one: more, so that a secret at its end is whole when it is masked."""
MAX_FIRST = 20
"""Problems, near-misses and markers that are told one by one; the rest is counted."""
TAIL_LINES = 50
TAIL_BYTES = 8 * 1024


class Problem(NamedTuple):
    """Something in a log that could not be read as it should: counted, never fatal."""

    kind: str
    line_number: int | None
    detail: str
    excerpt: str

    def moved(self, lines: int) -> Problem:
        """The same problem, ``lines`` further down."""
        return self if self.line_number is None else self._replace(line_number=self.line_number + lines)


class NearMiss(NamedTuple):
    """A record with a rule's literal that no spelling of that rule matched: a format may have drifted."""

    grammar: str
    rule: str
    line_number: int
    excerpt: str

    def moved(self, lines: int) -> NearMiss:
        """The same near-miss, ``lines`` further down."""
        return self._replace(line_number=self.line_number + lines)


class Finding(NamedTuple):
    """One thing that a definition gets wrong. ``where`` is ``file:line``; ``caret`` a column of ``snippet``."""

    severity: str
    where: str
    reason: str
    snippet: str | None = None
    caret: int | None = None
    help: str | None = None
