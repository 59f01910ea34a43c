"""The layout of a record: its bytes with digits masked, and the events of every record with these bytes.

The patterns remain the only definition. They match one record of a layout; the match holds for all its records unless a pattern
distinguishes digits (see ``grammar.digit_sensitivity``). If a pattern does so at some spans, the digits there become part of
the layout: they are *fixed*. A record without a provable layout is read by the patterns.
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
"""Most layouts in a cache; a full cache is emptied."""
_LATER, _LATER_S = b"01:01:01", 3661.0


class Prefix(NamedTuple):
    """The text before an event; only its digits vary within a layout.

    ``time`` is the span of an ``hh:mm:ss`` with fraction that only sets the time of day.
    """

    end: int
    time: Span

    @classmethod
    def of(cls, prefix: bytes) -> Prefix | None:
        """Return the prefix form of ``prefix``; None if it is empty."""
        return cls(len(prefix), time_of_day(prefix) or NOWHERE) if prefix else None


def read_day(prefix: bytes, time: Span) -> tuple[int, float, float, bool]:
    """Return rank, clock [s], offset [s] to subtract, and whether the time of day must be added.

    The caller sets the time of day in ``prefix`` to midnight, unless ``time`` is ``NOWHERE``.
    """
    whole, part, offset = read_moment(prefix)
    start = time[0]
    if time != NOWHERE:
        later = prefix[:start] + _LATER + prefix[start + len(_LATER) :]
        if read_moment(later) == (whole + _LATER_S, 0.0, offset):
            return read_rank(prefix), whole, offset, True
    return read_rank(prefix), whole + part - offset, 0.0, False


class BackrefCheck(NamedTuple):
    """Two runs of digits that a pattern compares. Bit i of ``same``: ``second`` starts with ``first[i:]``."""

    first: Span
    second: Span
    same: int

    @classmethod
    def of(cls, record: bytes, first: Span, second: Span) -> BackrefCheck:
        """Compare two runs of digits of ``record``."""
        one, other = record[slice(*first)], record[slice(*second)]
        return cls(first, second, sum(other.startswith(one[at:]) << at for at in range(len(one))))


@dataclass(slots=True, eq=False)
class Layout:
    """The outcome for every record of one layout.

    ``fixed``: (start, end, digits) that all records share. ``absent``: (offset, literal) that no record has. ``echoes``: runs
    of digits that patterns compare. ``outcome`` is the outcome for ``sample``: its spans hold for all records, its texts do
    not. ``any_bar``: the layout also holds for records that equal it after ``short_bars``.
    """

    sample: bytes
    fixed: tuple[tuple[int, int, bytes], ...]
    absent: tuple[tuple[int, bytes], ...]
    echoes: tuple[BackrefCheck, ...]
    outcome: Outcome
    any_bar: bool = False

    def fits(self, record: bytes) -> bool:
        """Return whether a record with the same masked bytes also has the digits the layout requires."""
        return (
            all(record[start:end] == digits for start, end, digits in self.fixed)
            and not any(record.startswith(literal, at) for at, literal in self.absent)
            and all(echo == BackrefCheck.of(record, echo.first, echo.second) for echo in self.echoes)
        )

    def in_bounds(self, record: bytes) -> bool:
        """Return whether no value of ``record`` is below its rule's least value."""
        bounded = ((rule, events) for _, rule, events in self.outcome.read if rule.bounds)
        return not any(fields_below(rule, event.reread(record)) for rule, events in bounded for event in events)
