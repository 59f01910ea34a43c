"""Recognise lines of unknown trainers that look like a metric or a step record."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache, cached_property, lru_cache, partial
from itertools import islice
from typing import TypeAlias

from ahocorasick_rs import BytesAhoCorasick, Implementation

from receipt_cli.patterns import compile_later
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


METRIC_LINE = compile_later(
    rb"(?i)\b(?:step|iter(?:ation)?|epoch|batch|loss|lr|acc(?:uracy)?|ppl|tok(?:ens)?/s(?:ec)?|mfu)\b[^\n\r\d]{0,12}\d[^\n\r]*+"
)
STEP_LINE = compile_later(
    rb"(?i)(?<![\w.-])(?:step|iter(?:ation)?|epoch|batch)s?\b[ \t\f\v:=#(\[]{0,6}\d[^\n\r]{0,200}?"
    rb"(?:loss|\blr|learning[ _]rate|acc(?:uracy)?|ppl|/s(?:ec)?|eta)\b[ :=(]{0,4}[-+]?[\d(n]"
)
TRAINING_LINE = compile_later(
    rb"(?i)(?<![A-Za-z])train(?:ing)?(?![A-Za-z])[^\r\n]{0,40}?(?<![\w.-])(?:step|iter(?:ation)?|epoch|episode|update)s?\b"
    rb"[ :=#(\[]{0,3}\d[^\r\n]{0,200}?[A-Za-z][ :=]{1,3}[-+]?\d"
)
"""A counter and another value behind the word for training: the record of a stage that prints no loss."""
_STEP_WORDS = (b"step", b"iter", b"epoch", b"batch")
TRAINING_WORDS = (*_STEP_WORDS, b"loss", b"train")
"""Each record of a training has one of these words."""
_METRIC_WORDS = (*_STEP_WORDS, b"loss", b"lr", b"acc", b"ppl", b"tok", b"mfu")
"""Words that begin such lines: the pattern is tried only at them."""
MAX_SEEN = 3
"""Most such lines kept or counted."""


Likely: TypeAlias = Callable[[bytes, int, bool], int]
"""(records, offset, True for ``STEP_LINE`` or False for ``METRIC_LINE``) → next offset of a possible match, or -1."""


def metric_lines(records: bytes, limit: int, likely: Likely | None = None) -> list[tuple[int, bytes]]:
    """Return offset and bytes of the first ``limit`` records of normalised ``records`` that look like metrics.

    ``likely`` only saves time.
    """
    found: list[tuple[int, bytes]] = []
    for hit in _hits(METRIC_LINE, _METRIC_WORDS, records, likely):
        start = max(records.rfind(b"\n", 0, hit.start()), records.rfind(b"\r", 0, hit.start())) + 1
        record = records[start : hit.end()]
        if record.isascii() or _readable(record):
            found.append((start, record))
        if len(found) >= limit:
            break
    return found


def _hits(
    pattern: re.Pattern[bytes], words: tuple[bytes, ...], records: bytes, likely: Likely | None
) -> Iterator[re.Match[bytes]]:
    """Yield the matches of ``pattern.finditer``; each match must begin with one of ``words``, in any case."""
    done = 0
    for start in _gate(words).starts(records.lower()) if likely is None else _likely(likely, records, words is _STEP_WORDS):
        if start >= done and (hit := pattern.match(records, start)) is not None:
            done = hit.end()
            yield hit


def _likely(likely: Likely, records: bytes, steps: bool) -> Iterator[int]:
    start = likely(records, 0, steps)
    while start >= 0:
        yield start
        start = likely(records, start + 1, steps)


_gate = cache(Prefilter)


def _readable(record: bytes) -> bool:
    """Return whether a record is printable UTF-8, and not a chance match in binary data."""
    try:
        return record.decode("utf-8").isprintable()
    except UnicodeDecodeError:
        return False


def count_step_lines(records: bytes, limit: int, likely: Likely | None = None) -> int:
    """Count matches of a step record in normalised ``records``, up to ``limit``; ``likely`` only saves time."""
    return sum(1 for _ in islice(_hits(STEP_LINE, _STEP_WORDS, records, likely), limit))
