"""Find the records that contain one of about a thousand literals, in one pass over a block."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache, partial

from ahocorasick_rs import BytesAhoCorasick, Implementation

from receipt_cli.records.envelope import MASK

_automaton = lru_cache(4)(partial(BytesAhoCorasick, implementation=Implementation.ContiguousNFA))
"""The library tries another form first and then chooses this one; naming it saves three quarters of the time.

Cached: a process that reads several logs searches the same literals in each.
"""


class Prefilter:
    """Finds literals, which must be non-empty and without line ends."""

    def __init__(self, literals: Sequence[bytes]) -> None:
        self.literals = tuple(literals)
        self._automaton = _automaton(self.literals)

    def places(self, block: bytes) -> list[int]:
        """Return ascending offsets in ``block``: at least one inside each record with a literal, none in other records."""
        return [end - 1 for _, _, end in self._automaton.find_matches_as_indexes(block, overlapping=True)]

    def starts(self, block: bytes) -> list[int]:
        """Return the offsets in ``block`` at which a literal begins, ascending."""
        return sorted({start for _, start, _ in self._automaton.find_matches_as_indexes(block, overlapping=True)})

    @cached_property
    def _numbered(self) -> tuple[Prefilter, dict[bytes, list[bytes]]]:
        """Literals with a digit, by their form with every digit replaced by 0."""
        table: dict[bytes, list[bytes]] = {}
        for literal in self.literals:
            if literal.translate(None, b"0123456789") != literal:
                table.setdefault(literal.translate(MASK), []).append(literal)
        return Prefilter(tuple(table)), table

    def possible_in(self, masked: bytes) -> list[tuple[bytes, bytes]]:
        """Return (masked form, literal) pairs that a record may contain; ``masked`` is the record with every digit 0."""
        gate, table = self._numbered
        return [(form, literal) for form in sorted(gate.literals_in(masked)) for literal in table[form]]

    def literals_in(self, record: bytes) -> frozenset[bytes]:
        """Return the literals in ``record``."""
        found = self._automaton.find_matches_as_indexes(record, overlapping=True)
        return frozenset([self.literals[index] for index, _, _ in found])
