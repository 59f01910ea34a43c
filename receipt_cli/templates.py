"""Records of one proven layout as a matrix of bytes: which of them fit, and all their values at once.

A template says of a layout what its bytes must be: the same, or any digit. Records of its length are checked in words
of eight bytes; those that fit are what the layout's record was, with other digits, so everything the patterns found in
it holds for them. Nothing here looks at a single record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from receipt_cli.columns import NO_RANK, POSITION_BITS
from receipt_cli.decimals import DecimalFields, DecimalPlan
from receipt_cli.envelope import read_clock
from receipt_cli.examine import NAN, Found, read_value, unreadable, value_text
from receipt_cli.layout import Event, Layout, Prefix, Value
from receipt_cli.match import NOWHERE, convert
from receipt_cli.model import MAX_EXCERPT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]
    Floats = NDArray[np.float64]
    Integers = NDArray[np.int64]

WORD = 8
CHUNK = 256
"""Records checked at a time: their words stay in the cache."""
_KEY_DIGITS = 18
"""Digits that an int64 holds."""


@dataclass(slots=True)
class Piece:
    """Events of one rule in one block, by ascending position: see ``columns.RuleColumns``.

    Numbers and texts are for all events, or for those whose indices stand beside them.
    """

    at: Integers
    line: Integers
    rank: Integers
    clock: Floats
    numbers: dict[str, tuple[Integers | None, Floats]] = field(default_factory=dict)
    texts: dict[str, tuple[Integers | None, list[str]]] = field(default_factory=dict)
    others: dict[str, tuple[Integers | None, Floats]] = field(default_factory=dict)


class Template:
    """A layout, ready for many records."""

    def __init__(self, layout: Layout) -> None:
        import numpy as np

        self.layout = layout
        self.length = len(layout.sample)
        self.width = -(-self.length // WORD) * WORD
        self.idle = 0
        sample = np.zeros(self.width, np.uint8)
        sample[: self.length] = np.frombuffer(layout.sample, np.uint8)
        digit = (sample >= 0x30) & (sample <= 0x39)
        for start, end, _ in layout.fixed:
            digit[start:end] = False
        # What differs from the sample with its digits masked is 0 at the same byte and 0 to 9 at a digit: either way
        # it stays below 0x80 when this is added, and anything else below 0x80 does not.
        self._masked = np.where(digit, 0x30, sample).astype(np.uint8).view(np.uint64)
        self._room = np.where(digit, 0x76, 0x7F).astype(np.uint8).view(np.uint64)
        inside = np.where(np.arange(self.width) < self.length, 0xFF, 0).astype(np.uint8)
        self._last = inside.view(np.uint64)[-1]
        plain: list[tuple[int, DecimalPlan]] = []
        self._direct: dict[Value, int] = {}
        for event in layout.events:
            for value in (*event.values, *event.others):
                unit = value.spec.unit if value.spec is not None else None
                start, stop = (value.start, value.end) if value.direct else value.number
                plan = DecimalPlan.of(layout.sample[start:stop], unit) if start >= 0 else None
                if plan is not None:
                    self._direct[value] = len(plain)
                    plain.append((start, plan))
        self._decimals = DecimalFields(plain) if plain else None
        self._prefixes = [None if e.prefix is None else _Prefixes(e.prefix, digit) for e in layout.events]

    def fitting(self, view: NDArray[np.void], starts: Integers) -> tuple[NDArray[np.bool_], Bytes]:
        """Return which records that begin at ``starts`` fit, and the bytes (n, width) of those that do.

        ``view`` are the ``width`` bytes from each place of a block on.
        """
        import numpy as np

        matrix = view[starts].view(np.uint64).reshape(len(starts), -1)
        high = np.empty(len(starts), np.uint64)
        for begin in range(0, len(starts), CHUNK):
            other = matrix[begin : begin + CHUNK] ^ self._masked
            other[:, -1] &= self._last
            flaw = high[begin : begin + CHUNK]
            np.bitwise_or.reduce(other, axis=1, out=flaw)  # from 0x80 on what is added would be carried
            np.add(other, self._room, out=other)
            flaw |= np.bitwise_or.reduce(other, axis=1)
        fits = (high & np.uint64(0x8080808080808080)) == 0
        return fits, (matrix if fits.all() else matrix[fits]).view(np.uint8)

    def values(self, matrix: Bytes) -> tuple[Floats, NDArray[np.bool_] | None]:
        """Return the plain numbers (fields, n) of fitting records, and which of them are in bounds; None: all are."""
        import numpy as np

        if self._decimals is None:
            return np.empty((0, len(matrix))), None
        numbers = self._decimals.convert(matrix)
        inside: NDArray[np.bool_] | None = None
        for event in self.layout.events:
            for index, least in event.bounds:
                low = numbers[self._direct[event.values[index]]] < least
                if low.any():
                    inside = ~low if inside is None else inside & ~low
        return numbers, inside

    def pieces(self, matrix: Bytes, numbers: Floats, ordinals: Integers, lines: Integers, found: Found) -> Iterator[Piece]:
        """Yield for each event of the layout what all records give; ``found`` gets their problems."""
        import numpy as np

        for event, prefixes in zip(self.layout.events, self._prefixes, strict=True):
            at = (ordinals << POSITION_BITS) + event.offset
            if prefixes is None:
                rank, clock = np.full(len(at), NO_RANK, np.int64), np.full(len(at), NAN)
            else:
                rank, clock = prefixes.read(matrix)
            piece = Piece(at, lines, rank, clock)
            for value in event.values:
                read = numbers[self._direct[value]] if value in self._direct else None
                if read is not None and (value.direct or not np.isnan(read).any()):
                    piece.numbers[value.name] = None, read
                else:
                    self._convert(piece, event, value, matrix, found)
            for value in event.others:
                if value in self._direct:
                    piece.others[value.name] = None, numbers[self._direct[value]]
                else:
                    _read_others(piece, value, matrix)
            yield piece

    def _convert(self, piece: Piece, event: Event, value: Value, matrix: Bytes, found: Found) -> None:
        """Add a value that is no plain number: each distinct text is read once."""
        assert value.spec is not None
        texts, which = _distinct(value, matrix)
        read = [convert(value.spec, text) for text in texts]
        for index, (_, readable) in enumerate(read):
            for row in () if readable else (which == index).nonzero()[0].tolist():
                record = matrix[row, : self.length].tobytes()
                problem = unreadable(event.grammar, event.rule, value.name, texts[index], int(piece.line[row]), record)
                found.append((int(piece.at[row]), problem))
        numbers = [number for number, _ in read]
        if any(isinstance(number, str) for number in numbers):
            rows, kept = _kept(numbers, which, lambda number: isinstance(number, str))
            piece.texts[value.name] = rows, [str(numbers[i])[:MAX_EXCERPT] for i in kept.tolist()]
        elif any(isinstance(number, float) for number in numbers):
            rows, kept = _kept(numbers, which, lambda number: isinstance(number, float))
            piece.numbers[value.name] = rows, _floats(numbers)[kept]


def _read_others(piece: Piece, value: Value, matrix: Bytes) -> None:
    texts, which = _distinct(value, matrix)
    numbers = [read_value(value, text.encode("utf-8")) for text in texts]
    if any(number is not None for number in numbers):
        rows, kept = _kept(numbers, which, lambda number: number is not None)
        piece.others[value.name] = rows, _floats(numbers)[kept]


def _distinct(value: Value, matrix: Bytes) -> tuple[list[str], Integers]:
    """Return the distinct texts of a value, and which of them each record has."""
    import numpy as np

    if value.constant is not None or value.start == value.end:
        return [value_text(value, b"")], np.zeros(len(matrix), np.int64)
    column = np.ascontiguousarray(matrix[:, value.start : value.end]).view(f"S{value.end - value.start}")[:, 0]
    texts, which = np.unique(column, return_inverse=True)
    return [text.decode("utf-8", "replace") for text in texts.tolist()], which.reshape(-1)


def _kept(
    numbers: Sequence[float | str | None], which: Integers, wanted: Callable[[float | str | None], bool]
) -> tuple[Integers | None, Integers]:
    """Return the rows with a wanted value (None: all), and the index of the value of each."""
    import numpy as np

    good = np.array([wanted(number) for number in numbers])
    if good.all():
        return None, which
    rows = np.flatnonzero(good[which])
    return rows, which[rows]


def _floats(numbers: Sequence[float | str | None]) -> Floats:
    import numpy as np

    return np.array([number if isinstance(number, float) else NAN for number in numbers], np.float64)


class _Prefixes:
    """Ranks and clocks of all records of a layout: each distinct day is read once."""

    def __init__(self, prefix: Prefix, moving: NDArray[np.bool_]) -> None:
        import numpy as np

        self.prefix = prefix
        varies = moving[: prefix.end].copy()
        if prefix.time != NOWHERE:
            varies[slice(*prefix.time)] = False
        self.columns = np.flatnonzero(varies)
        self.powers = 10 ** np.arange(min(_KEY_DIGITS, len(self.columns)), dtype=np.int64)[::-1]

    def read(self, matrix: Bytes) -> tuple[Integers, Floats]:
        """Return the ranks and the clocks (n,) of the records in ``matrix``."""
        import numpy as np

        prefix, count = self.prefix, len(matrix)
        digits = matrix[:, self.columns]
        if not len(self.columns):
            first, which = np.zeros(1, np.intp), np.zeros(count, np.intp)
        elif len(self.columns) <= _KEY_DIGITS:
            keys = (digits & 0x0F).astype(np.int64) @ self.powers
            _, first, which = np.unique(keys, return_index=True, return_inverse=True)
        else:
            _, first, which = np.unique(digits, axis=0, return_index=True, return_inverse=True)
        which = which.reshape(-1)
        prefixes = [matrix[row, : prefix.end].tobytes() for row in first.tolist()]
        read = [prefix.day(one if prefix.time == NOWHERE else prefix.midnight(one)) for one in prefixes]
        rank = np.array([entry[0] for entry in read], np.int64)[which]
        whole = np.array([entry[1] for entry in read], np.float64)[which]
        offset = np.array([entry[2] for entry in read], np.float64)[which]
        moves = np.array([entry[3] for entry in read])[which]
        if not moves.any():
            return rank, whole
        start = prefix.time[0]
        hour, minute, second = (_integers(matrix, start + at, start + at + 2) for at in (0, 3, 6))
        begin, end = prefix.fraction
        part = _integers(matrix, begin, end) / 10 ** (end - begin) if end > begin else np.zeros(count)
        clock = np.where(moves, whole + (3600 * hour + 60 * minute + second) + part - offset, whole)
        for row in np.flatnonzero(moves & ((hour > 23) | (minute > 59) | (second > 59))).tolist():
            clock[row] = read_clock(matrix[row, : prefix.end].tobytes())
        return rank, clock


def _integers(matrix: Bytes, start: int, end: int) -> Integers:
    import numpy as np

    powers = 10 ** np.arange(end - start, dtype=np.int64)[::-1]
    integers: Integers = (matrix[:, start:end] & 0x0F).astype(np.int64) @ powers
    return integers
