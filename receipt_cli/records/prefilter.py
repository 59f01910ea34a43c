"""Find the records that contain one of a thousand literals, in one pass over a block."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ahocorasick_rs import BytesAhoCorasick

if TYPE_CHECKING:
    import hyperscan

MUCH = 12 << 20
"""Bytes after which the search is worth hyperscan, where it is installed: 3 ms to import, 30 ms to make its tables."""


class Prefilter:
    """Finds literals. ``literals`` contain no line end and are not empty."""

    def __init__(self, literals: Sequence[bytes]) -> None:
        self.literals = tuple(literals)
        self._automaton = BytesAhoCorasick(self.literals)
        self._searched = 0
        self._database: hyperscan.Database | None = None
        self._tried = False

    def places(self, block: bytes) -> list[int]:
        """Return places in ``block``, ascending: at least one inside each record that contains a literal, and none in others."""
        self._searched += len(block)
        if self._searched > MUCH and not self._tried:
            self._tried = True
            self._database = self._prepared()
        if self._database is None:
            return [end - 1 for _, _, end in self._automaton.find_matches_as_indexes(block, overlapping=True)]
        ends: list[int] = []
        self._database.scan(block, match_event_handler=_note, context=ends)
        return ends

    def starts(self, block: bytes) -> list[int]:
        """Return every place in ``block`` where a literal begins, ascending."""
        return sorted({start for _, start, _ in self._automaton.find_matches_as_indexes(block, overlapping=True)})

    @cached_property
    def numbered(self) -> tuple[bytes, ...]:
        """The literals that hold a digit."""
        return tuple(literal for literal in self.literals if literal.translate(None, b"0123456789") != literal)

    def literals_in(self, record: bytes) -> set[bytes]:
        """Return the literals that ``record`` contains."""
        found = self._automaton.find_matches_as_indexes(record, overlapping=True)
        return {self.literals[index] for index, _, _ in found}

    def _prepared(self) -> hyperscan.Database | None:
        """Return hyperscan's tables of all literals, or None where hyperscan is not installed or not for this machine."""
        try:
            import hyperscan
        except ImportError:
            return None
        database = hyperscan.Database()
        database.compile(expressions=self._shortest(), literal=True, flags=0)
        return database

    def _shortest(self) -> list[bytes]:
        """Return the literals that contain no other one: they are part of every longer one."""
        return [literal for literal in self.literals if self.literals_in(literal) == {literal}]


def _note(_index: int, _start: int, end: int, _flags: int, ends: Any) -> None:
    ends.append(end - 1)
