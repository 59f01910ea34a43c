"""Append-only typed columns of events; the columns of two neighbouring pieces concatenate to those of one pass."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np

from receipt_cli.numeric.column import Cells, shifted
from receipt_cli.scan.extraction.model import DROPPED
from receipt_cli.scan.row_texts import RowTexts

if TYPE_CHECKING:
    from receipt_cli.numeric.array_types import Integers

POSITION_BITS = 17
"""Low bits of ``at``: the offset of an event in its record, which has at most 2**16 bytes."""


def place(record: int, offset: int = 0) -> int:
    """Return the sortable position of an event: the ordinal of its record, then its offset inside."""
    return (record << POSITION_BITS) | offset


class Shown(NamedTuple):
    """The records that show some number of decimals: how many, and the positions of the first and of the last."""

    number: int
    first: int
    last: int

    def with_(self, other: Shown, shift: int = 0) -> Shown:
        """Return both; the positions of ``other`` begin after ``shift``."""
        first, last = other.first + shift, other.last + shift
        return Shown(self.number + other.number, min(self.first, first), max(self.last, last))


NONE_SHOWN = Shown(0, 1 << 62, -1)


class NumberColumn:
    """Values of one field, with the row of each; rows without a value have no entry.

    While every row has a value, rows are not stored and a value takes 8 bytes; while all values are equal, these take none.
    ``lines`` are the lines that print the values, 0 for the line of the row; None if all are.
    """

    __slots__ = ("_rows", "lines", "values")

    def __init__(self, values: Cells[Any] | None = None, rows: Cells[int] | None = None, lines: Cells[int] | None = None) -> None:
        """Without ``rows`` the values belong to the first rows."""
        self._rows = rows
        self.lines = lines
        self.values: Cells[float] = Cells("d") if values is None else values

    @property
    def rows(self) -> Sequence[int]:
        """The row of each value, ascending."""
        return range(len(self.values)) if self._rows is None else self._rows

    @property
    def dense(self) -> bool:
        """Return whether value ``i`` belongs to row ``i``."""
        return self._rows is None

    @property
    def index(self) -> slice | Integers:
        """An index that selects the rows in an array of all rows."""
        return slice(len(self.values)) if self._rows is None else self._rows.whole()

    @property
    def printed(self) -> NumberColumn | None:
        """``lines`` as a column with the same rows; None if no line differs."""
        return None if self.lines is None else NumberColumn(self.lines, self._rows)

    def sparse(self) -> Cells[int]:
        """Store the row of each value and return these rows."""
        if self._rows is None:
            self._rows = Cells("q")
            self._rows.extend_array(np.arange(len(self.values)))
        return self._rows

    def append(self, row: int, value: float) -> None:
        """Add ``value`` for ``row``; rows ascend."""
        if self._rows is not None or row != len(self.values):
            self.sparse().append(row)
        self.values.append(value)

    def extend(self, other: NumberColumn, shift: int) -> None:
        """Add the entries of ``other``, whose rows begin after ``shift`` rows of ours."""
        if self._rows is not None or other._rows is not None or shift != len(self.values):
            self.sparse().extend(other.sparse(), shift)
        self.values.extend(other.values)

    def extend_bytes(self, values: bytes | memoryview, rows: bytes | memoryview | None, shift: int) -> None:
        """Add entries from bytes of float64 or int64 ``values`` and int64 ``rows``; without ``rows`` from row ``shift`` on."""
        if self._rows is not None or rows is not None or shift != len(self.values):
            self.sparse().extend_bytes(rows or array("q", range(shift, shift + len(values) // 8)).tobytes())
        self.values.extend_bytes(values)


class TextColumn:
    """Texts of one field, with the row of each."""

    __slots__ = ("rows", "values")

    def __init__(self) -> None:
        self.rows = array("q")
        self.values: list[str] = []

    def __len__(self) -> int:
        return len(self.values)

    def append(self, row: int, value: str) -> None:
        """Add ``value`` for ``row``; rows ascend."""
        self.rows.append(row)
        self.values.append(value)

    def extend(self, other: TextColumn, shift: int) -> None:
        """Add the entries of ``other``, whose rows begin after ``shift`` rows of ours."""
        self.rows.extend(shifted(other.rows, shift))
        self.values.extend(other.values)


@dataclass(slots=True)
class RuleColumns:
    """All events of one rule.

    ``at``: positions (see ``place``); ``line``: 1-based line numbers; ``rank``: rank in the envelope, or ``NO_RANK``;
    ``clock``: timestamp in seconds, NaN if the line has none (naive timestamps read as UTC, so only differences count).

    Texts that other records name are joined by tabs: ``headers`` of a table's header rows, ``cells`` of its other rows,
    ``pairs`` key and value of a block's rows. ``dropped`` counts unread labelled numbers by label, after ``settle``.
    """

    at: Cells[int] = field(default_factory=lambda: Cells("q"))
    line: Cells[int] = field(default_factory=lambda: Cells("q"))
    rank: Cells[int] = field(default_factory=lambda: Cells("q"))
    clock: Cells[float] = field(default_factory=lambda: Cells("d"))
    numbers: dict[str, NumberColumn] = field(default_factory=lambda: defaultdict(NumberColumn))
    texts: dict[str, TextColumn] = field(default_factory=lambda: defaultdict(TextColumn))
    unregistered: dict[str, NumberColumn] = field(default_factory=lambda: defaultdict(NumberColumn))
    headers: RowTexts = field(default_factory=RowTexts)
    cells: RowTexts = field(default_factory=RowTexts)
    pairs: RowTexts = field(default_factory=RowTexts)
    dropped: Counter[str] = field(default_factory=Counter)
    unread: dict[str, TextColumn] = field(default_factory=lambda: defaultdict(TextColumn))
    """Texts of number fields that are not numbers."""
    printed: dict[str, dict[int | None, Shown]] = field(default_factory=lambda: defaultdict(dict))
    """By number column: the counts of decimals its texts show in base units, each with its records; None: a text leaves the
    count open."""

    def __len__(self) -> int:
        return len(self.at)

    def open_row(self, at: int, line: int, rank: int, clock: float) -> int:
        """Add an event and return its row."""
        self.at.append(at)
        self.line.append(line)
        self.rank.append(rank)
        self.clock.append(clock)
        return len(self.at) - 1

    def add_digits(self, name: str, digits: int | None, shown: Shown, shift: int = 0) -> None:
        """Note that records show so many decimals in column ``name``; their positions begin after ``shift``."""
        known = self.printed[name]
        known[digits] = known.get(digits, NONE_SHOWN).with_(shown, shift)

    def settle(self) -> None:
        """Count the cells of count-only columns and drop these columns."""
        for name in [name for name in self.unregistered if name.startswith(DROPPED)]:
            self.dropped[name.split(DROPPED)[2]] += len(self.unregistered.pop(name).values)

    def extend(self, other: RuleColumns, records: int, lines: int) -> None:
        """Add the events of the next piece; the piece before it has ``records`` records and ``lines`` line ends."""
        rows = len(self.at)
        self.at.extend(other.at, place(records))
        self.line.extend(other.line, lines)
        self.rank.extend(other.rank)
        self.clock.extend(other.clock)
        for name, numbers in other.numbers.items():
            self.numbers[name].extend(numbers, rows)
        for name, texts in other.texts.items():
            self.texts[name].extend(texts, rows)
        for name, numbers in other.unregistered.items():
            self.unregistered[name].extend(numbers, rows)
        for name, texts in other.unread.items():
            self.unread[name].extend(texts, rows)
        self.dropped += other.dropped
        for name, printed in other.printed.items():
            for digits, shown in printed.items():
                self.add_digits(name, digits, shown, place(records))
        for ours, after in ((self.headers, other.headers), (self.cells, other.cells), (self.pairs, other.pairs)):
            ours.extend(after, rows)


def interleaved(parts: Sequence[RuleColumns]) -> RuleColumns:
    """Merge the events of several columns of one rule by position; ``parts`` are used up."""
    whole = RuleColumns()
    for part in parts:
        whole.extend(part, 0, 0)
    order = np.argsort(whole.at.whole(), kind="stable")
    row = np.empty(len(order), np.int64)
    row[order] = np.arange(len(order))
    for name in ("at", "line", "rank", "clock"):
        setattr(whole, name, Cells.of(getattr(whole, name).whole()[order]))
    for numbers in (whole.numbers, whole.unregistered):
        for name, column in numbers.items():
            places = row[column.index]
            turn = np.argsort(places, kind="stable")
            dense = bool((places[turn] == np.arange(len(places))).all())
            numbers[name] = NumberColumn(Cells.of(column.values.whole()[turn]), None if dense else Cells.of(places[turn]))
    for texts in (whole.texts, whole.unread):
        for name, held in texts.items():
            texts[name] = TextColumn()
            for place_of, text in sorted(zip(row[held.rows].tolist(), held.values, strict=True)):
                texts[name].append(place_of, text)
    return whole


T = TypeVar("T")


@dataclass(slots=True)
class Bounded(Generic[T]):
    """A count of all items and the first ``limit`` of them, by position."""

    limit: int
    count: int = 0
    first: list[tuple[int, T]] = field(default_factory=list)

    def add(self, at: int, item: T) -> None:
        """Count ``item`` at ``at``; positions ascend."""
        self.count += 1
        if len(self.first) < self.limit:
            self.first.append((at, item))

    def extend(self, other: Bounded[T], records: int, moved: Callable[[T], T]) -> None:
        """Add the next piece, which begins after ``records`` records; ``moved`` shifts its items."""
        self.count += other.count
        self.first += [(at + place(records), moved(item)) for at, item in other.first[: self.limit - len(self.first)]]
