"""The layout of a record: its bytes with every digit masked, and the events of every record that has them.

The patterns stay the only definition. They match one record of a layout; the match is valid for all others of it as
long as no pattern that was tried distinguishes the digits (see ``grammar.digit_sensitivity``). Where one does, at
certain places, the digits there belong to the layout: they are *fixed*. A record in doubt has no layout and goes through
the patterns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from receipt_cli.records.envelope import read_moment, read_rank, time_of_day
from receipt_cli.scan.book import Outcome
from receipt_cli.scan.extraction import NOWHERE, Span, fields_below

MAX_LENGTH = 16384
"""Longer records have no layout."""
MAX_KEPT = 4096
"""Entries of a cache of layouts; a full one is emptied."""
_LATER, _LATER_S = b"01:01:01", 3661.0


class Prefix(NamedTuple):
    """The text before an event: the same for all records of a layout, but for its digits.

    ``time`` is the place of the ``hh:mm:ss`` and its fraction that move the clock within a day and mean nothing else.
    """

    end: int
    time: Span

    @classmethod
    def of(cls, prefix: bytes) -> Prefix | None:
        """Return how to read prefixes of the layout of this one; None for an empty one."""
        return cls(len(prefix), time_of_day(prefix) or NOWHERE) if prefix else None


def read_day(prefix: bytes, time: Span) -> tuple[int, float, float, bool]:
    """Return rank, clock, what to take off it, and whether the time of day is to be added to it before.

    The time of day in ``prefix``, if ``time`` is somewhere, is midnight.
    """
    whole, part, offset = read_moment(prefix)
    start = time[0]
    if time != NOWHERE:
        later = prefix[:start] + _LATER + prefix[start + len(_LATER) :]
        if read_moment(later) == (whole + _LATER_S, 0.0, offset):
            return read_rank(prefix), whole, offset, True
    return read_rank(prefix), whole + part - offset, 0.0, False


class Echo(NamedTuple):
    """Two runs of digits that a pattern compares; bit i of ``same``: the other begins with the first from its digit i on."""

    first: Span
    second: Span
    same: int

    @classmethod
    def of(cls, record: bytes, first: Span, second: Span) -> Echo:
        """Return how two runs of digits of ``record`` compare."""
        one, other = record[slice(*first)], record[slice(*second)]
        return cls(first, second, sum(other.startswith(one[at:]) << at for at in range(len(one))))


@dataclass(slots=True, eq=False)
class Layout:
    """What the patterns make of every record of one layout; ``fixed`` are the places where its digits are those of ``sample``.

    ``absent`` are places and the literals that records of the layout, whose digits are others, do not have there, and
    ``echoes`` are the runs of digits that patterns compare with each other. ``outcome`` is that of one of them: its places
    are those of all, its texts are not. ``any_bar``: records have it whose bars ``short_bars`` makes those of the sample, too.
    """

    sample: bytes
    fixed: tuple[tuple[int, int, bytes], ...]
    absent: tuple[tuple[int, bytes], ...]
    echoes: tuple[Echo, ...]
    outcome: Outcome
    any_bar: bool = False

    def fits(self, record: bytes) -> bool:
        """True for a record whose masked bytes are those of the sample, when its digits are those of the layout, too."""
        return (
            all(record[start:end] == digits for start, end, digits in self.fixed)
            and not any(record.startswith(literal, at) for at, literal in self.absent)
            and all(echo == Echo.of(record, echo.first, echo.second) for echo in self.echoes)
        )

    def in_bounds(self, record: bytes) -> bool:
        """True when no value of ``record`` is below what its rule demands of it."""
        bounded = ((rule, events) for _, rule, events in self.outcome.read if rule.bounds)
        return not any(fields_below(rule, event.reread(record)) for rule, events in bounded for event in events)
