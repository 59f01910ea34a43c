"""Find the records that contain one of a thousand literals, in one pass over a block."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache, partial

from ahocorasick_rs import BytesAhoCorasick, Implementation

from receipt_cli.records.envelope import MASK

_automaton = lru_cache(4)(partial(BytesAhoCorasick, implementation=Implementation.ContiguousNFA))
"""The form that is chosen for so many literals anyway, once another was tried in vain: a quarter of the time.

A process that reads several logs finds the same literals in each.
"""


class Prefilter:
    """Finds literals. ``literals`` contain no line end and are not empty."""

    def __init__(self, literals: Sequence[bytes]) -> None:
        self.literals = tuple(literals)
        self._automaton = _automaton(self.literals)

    def places(self, block: bytes) -> list[int]:
        """Return places in ``block``, ascending: at least one inside each record that contains a literal, and none in others."""
        return [end - 1 for _, _, end in self._automaton.find_matches_as_indexes(block, overlapping=True)]

    def starts(self, block: bytes) -> list[int]:
        """Return every place in ``block`` where a literal begins, ascending."""
        return sorted({start for _, start, _ in self._automaton.find_matches_as_indexes(block, overlapping=True)})

    @cached_property
    def _numbered(self) -> tuple[Prefilter, dict[bytes, list[bytes]]]:
        """The literals that contain a digit, by what they are with every digit 0."""
        table: dict[bytes, list[bytes]] = {}
        for literal in self.literals:
            if literal.translate(None, b"0123456789") != literal:
                table.setdefault(literal.translate(MASK), []).append(literal)
        return Prefilter(tuple(table)), table

    def possible_in(self, masked: bytes) -> list[tuple[bytes, bytes]]:
        """Return the literals that a record may contain whose digits are 0 in ``masked``: with digits of 0, and as they are."""
        gate, table = self._numbered
        return [(form, literal) for form in sorted(gate.literals_in(masked)) for literal in table[form]]

    def literals_in(self, record: bytes) -> frozenset[bytes]:
        """Return the literals that ``record`` contains."""
        found = self._automaton.find_matches_as_indexes(record, overlapping=True)
        return frozenset([self.literals[index] for index, _, _ in found])
