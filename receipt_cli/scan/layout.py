"""The layout of a record: its bytes with every digit masked, and the events of every record that has them.

The patterns stay the only definition. They match one record of a layout; the match is valid for all others of it as
long as no pattern that was tried distinguishes the digits (see ``grammar.digit_sensitivity``). Where one does, at
certain places, the digits there belong to the layout: they are *fixed*. A record in doubt has no layout and goes through
the patterns.
"""

from __future__ import annotations

from itertools import accumulate, islice

from receipt_cli.grammar.model import Field, Grammar, Rule
from receipt_cli.lazy_dataclass import NamedTuple, dataclass, field
from receipt_cli.problems import MAX_EXCERPT
from receipt_cli.records.envelope import MASK, read_clock, read_moment, read_rank, time_of_day
from receipt_cli.scan.extraction import NOWHERE, Span
from receipt_cli.scan.extraction.model import clean_text
from receipt_cli.scan.row_texts import ZEROS, places_of

MAX_LENGTH = 16384
"""Longer records have no layout."""
MAX_KEPT = 4096
"""Entries of a cache of layouts or prefixes; a full one is emptied."""
_LATER, _LATER_S = b"01:01:01", 3661.0


class Value(NamedTuple):
    """One value of an event: the bytes ``start`` to ``end`` of the record.

    ``direct``: the number is ``float(bytes + shift)`` for all digits. Otherwise ``spec`` (None: under a key that nobody
    declared) defines how each text is read, or ``constant`` is the text for all. ``number``, where it is known, is the
    part of the text whose value ``read_number`` returns, in the unit of ``spec``.
    """

    name: str
    start: int
    end: int
    direct: bool
    shift: bytes
    spec: Field | None
    constant: str | None = None
    number: Span = NOWHERE


@dataclass(slots=True)
class Prefix:
    """The text before an event: the same for all records of a layout, but for its digits.

    ``time`` is the place of the ``hh:mm:ss`` and its fraction that move the clock within a day and mean nothing else.
    """

    end: int
    time: Span
    known: dict[bytes, tuple[int, float, float, bool]] = field(default_factory=dict)

    @classmethod
    def of(cls, prefix: bytes) -> Prefix:
        """Return how to read prefixes of the layout of this one."""
        return cls(len(prefix), time_of_day(prefix) or NOWHERE)

    @property
    def fraction(self) -> Span:
        """The place of the digits of the fraction; empty where there is none."""
        start, end = self.time
        return min(start + len(_LATER) + 1, end), end

    def read(self, record: bytes) -> tuple[int, float]:
        """Return rank and clock of a record."""
        if self.time == NOWHERE:
            rank, clock, _, _ = self.day(record[: self.end])
            return rank, clock
        start, end = self.time
        rank, whole, offset, moves = self.day(self.midnight(record))
        if not moves:
            return rank, whole
        hour, minute = int(record[start : start + 2]), int(record[start + 3 : start + 5])
        second = int(record[start + 6 : start + 8])
        if hour > 23 or minute > 59 or second > 59:
            return rank, read_clock(record[: self.end])
        begin, end = self.fraction
        part = int(record[begin:end]) / 10 ** (end - begin) if end > begin else 0.0
        return rank, whole + (3600 * hour + 60 * minute + second) + part - offset

    def midnight(self, record: bytes) -> bytes:
        """Return the prefix of a record with its time set to midnight."""
        start, end = self.time
        return record[:start] + record[start:end].translate(MASK) + record[end : self.end]

    def day(self, prefix: bytes) -> tuple[int, float, float, bool]:
        """Return rank, clock, what to take off it, and whether the time of day is to be added to it before.

        The time of day in ``prefix`` is midnight.
        """
        read = self.known.get(prefix)
        if read is None:
            whole, part, offset = read_moment(prefix)
            start = self.time[0]
            moves = self.time != NOWHERE
            if moves:
                later = prefix[:start] + _LATER + prefix[start + len(_LATER) :]
                moves = read_moment(later) == (whole + _LATER_S, 0.0, offset)
            if not moves:
                whole, offset = whole + part - offset, 0.0
            if len(self.known) >= MAX_KEPT:
                self.known.clear()
            read = self.known[prefix] = read_rank(prefix), whole, offset, moves
        return read


@dataclass(frozen=True, slots=True)
class Parts:
    """The texts that a table's or a block's record gives the column ``column`` (``headers``, ``cells`` or ``pairs``)."""

    column: str
    spans: tuple[Span, ...]

    def read(self, record: bytes) -> str:
        """Return the texts of a record joined by tabs, as its column keeps them."""
        joined = "\t".join([clean_text(record[begin:end]) for begin, end in self.spans])
        return joined[:MAX_EXCERPT] if self.column == "pairs" else joined

    def printed(self, record: bytes) -> tuple[str, list[Span]] | None:
        """Return the form of the joined texts (see ``RowTexts``) and where a record prints their numbers.

        None for texts that are not UTF-8.
        """
        origin: list[int] = []
        for begin, end in self.spans:
            raw = record[begin:end]
            text = raw.decode("utf-8", "replace")
            if text.encode("utf-8") != raw:
                return None
            starts = accumulate((len(char.encode("utf-8")) for char in text), initial=begin)
            first = len(text) - len(text.lstrip())
            origin += [*islice(starts, first, first + len(text.strip())), end]
        form = self.read(record).translate(ZEROS)
        return form, [(origin[start], origin[end - 1] + 1) for start, end in places_of(form)]


@dataclass(frozen=True, slots=True)
class EventLayout:
    """One event of every record of a layout. ``bounds`` are indices into ``values`` and the least value there.

    ``parts`` are the texts of a record that other records give a meaning.
    """

    key: tuple[str, str]
    grammar: Grammar
    rule: Rule
    offset: int
    prefix: Prefix | None
    values: tuple[Value, ...]
    unregistered: tuple[Value, ...]
    bounds: tuple[tuple[int, float], ...]
    parts: Parts | None = None


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


class Mark(NamedTuple):
    """A marker that fires: where its message begins, in which form (see ``records.place``), which host its head names."""

    marker: str
    start: int
    code: int | None
    form: int
    host: str | None
    prefix: Prefix | None


@dataclass(slots=True, eq=False)
class Layout:
    """The events of every record of one layout; ``fixed`` are the places where its digits are those of ``sample``.

    ``absent`` are places and the literals that records of the layout, whose digits are others, do not have there, and
    ``echoes`` are the runs of digits that patterns compare with each other. ``ignored`` and ``near`` name the grammars that
    ignore it, and rules that missed it, ``marks`` the markers that fire. ``any_bar``: records have it whose bars
    ``short_bars`` makes those of the sample, too.
    """

    sample: bytes
    fixed: tuple[tuple[int, int, bytes], ...]
    absent: tuple[tuple[int, bytes], ...]
    echoes: tuple[Echo, ...]
    events: tuple[EventLayout, ...]
    ignored: tuple[str, ...]
    near: tuple[tuple[str, str], ...]
    marks: tuple[Mark, ...]
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
        for event in self.events:
            for index, least in event.bounds:
                value = event.values[index]
                if float(record[value.start : value.end] + value.shift) < least:
                    return False
        return True
