"""The layout of a record: its bytes with every digit masked, and the events of every record that has them.

The patterns stay the only definition. They match one record of a layout; the match is valid for all others of it as
long as no pattern that was tried distinguishes the digits (see ``grammar.digit_sensitivity``). Where one does, at
certain places, the digits there belong to the layout: they are *fixed*. A record in doubt has no layout and goes through
the patterns.
"""

from __future__ import annotations

from itertools import accumulate, islice

from receipt_cli.definitions.units import read_number
from receipt_cli.grammar.model import Field, Grammar, Rule
from receipt_cli.lazy_dataclass import NamedTuple, dataclass
from receipt_cli.records.envelope import read_moment, read_rank, time_of_day
from receipt_cli.scan.extraction import NOWHERE, Extraction, Span, convert, read_unregistered
from receipt_cli.scan.extraction.model import Converted, clean_text, join_cells
from receipt_cli.scan.row_texts import ZEROS, places_of

MAX_LENGTH = 16384
"""Longer records have no layout."""
MAX_KEPT = 4096
"""Entries of a cache of layouts; a full one is emptied."""
_LATER, _LATER_S = b"01:01:01", 3661.0


class Value(NamedTuple):
    """One value of an event: the bytes ``start`` to ``end`` of the record, or ``constant`` in all records.

    ``spec`` defines how each text is read; None: under a key that nobody declared. ``number``, where it is known, is the part of
    the text whose value ``read_number`` returns, in the unit of ``spec``. ``direct``: it is a number whatever its digits are.
    """

    name: str
    start: int
    end: int
    spec: Field | None
    constant: str | None = None
    number: Span = NOWHERE
    direct: bool = False

    def text(self, record: bytes) -> str:
        """Return the text of the value in a record."""
        return self.constant if self.constant is not None else record[self.start : self.end].decode("utf-8", "replace")

    def read(self, record: bytes) -> Converted:
        """Return what ``convert`` makes of the text of a field in a record."""
        assert self.spec is not None
        if self.number == NOWHERE:
            return convert(self.spec, self.text(record))
        number = read_number(record[slice(*self.number)].decode("ascii"), self.spec.unit)
        return number, number is not None


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


@dataclass(frozen=True, slots=True)
class Parts:
    """The places of the texts that a table's or a block's record gives the column ``column``."""

    column: str
    spans: tuple[Span, ...]

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
        form = join_cells(self.column, self.texts(record)).translate(ZEROS)
        return form, [(origin[start], origin[end - 1] + 1) for start, end in places_of(form)]

    def texts(self, record: bytes) -> tuple[str, ...]:
        """Return the texts of a record."""
        return tuple([clean_text(record[begin:end]) for begin, end in self.spans])


@dataclass(frozen=True, slots=True)
class EventLayout:
    """One event of every record of a layout. ``bounds`` are indices into ``values`` and the least value there.

    ``parts`` are the texts of a record that other records give a meaning.
    """

    grammar: Grammar
    rule: Rule
    start: int
    prefix: Prefix | None
    values: tuple[Value, ...]
    unregistered: tuple[Value, ...]
    bounds: tuple[tuple[int, float], ...]
    parts: Parts | None = None

    @property
    def key(self) -> tuple[str, str]:
        """The key of its columns."""
        return self.grammar.ref, self.rule.name

    def read(self, record: bytes) -> Extraction:
        """Return the event of a record, as far as columns keep it."""
        event = Extraction(self.start, self.start, {value.name: value.text(record) for value in self.values})
        for value in self.unregistered:
            number = read_unregistered(value.text(record))
            if number is not None:
                event.unregistered[value.name] = number
        if self.parts is not None:
            event.column, event.cells = self.parts.column, self.parts.texts(record)
        return event


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
        read = ((event.values[index].read(record)[0], least) for event in self.events for index, least in event.bounds)
        return not any(isinstance(value, float) and value < least for value, least in read)
