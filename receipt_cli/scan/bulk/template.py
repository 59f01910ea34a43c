"""Read all events of records of one proven layout, given as a matrix of bytes.

They are what the layout's record was, with other digits, so every match of the patterns in it is valid for them. Nothing
here looks at a single record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from receipt_cli.problems import EXCERPT_BYTES
from receipt_cli.records.envelope import NO_RANK
from receipt_cli.scan.book import NAN, PlacedProblems, read_value, unreadable, value_text
from receipt_cli.scan.bulk.decimals import DecimalFields, DecimalPlan
from receipt_cli.scan.bulk.prefixes import Prefixes
from receipt_cli.scan.bulk.recognise import moving_digits
from receipt_cli.scan.columns import POSITION_BITS
from receipt_cli.scan.extraction import convert
from receipt_cli.scan.layout import MASK, EventLayout, Layout, Value

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from receipt_cli.numeric.array_types import Bytes, Floats, Integers


@dataclass(slots=True)
class Piece:
    """Events of one rule in one block, by ascending position: see ``columns.RuleColumns``.

    Numbers and texts are for all events, or for those of the given indices.
    """

    at: Integers
    line: Integers
    rank: Integers
    clock: Floats
    numbers: dict[str, tuple[Integers | None, Floats]] = field(default_factory=dict)
    texts: dict[str, tuple[Integers | None, list[str]]] = field(default_factory=dict)
    unregistered: dict[str, tuple[Integers | None, Floats]] = field(default_factory=dict)


@lru_cache(4096)
def _plan(masked: bytes, unit: str | None) -> DecimalPlan | None:
    return DecimalPlan.of(masked, unit)


def plan_of(layout: Layout, value: Value) -> tuple[int, DecimalPlan] | None:
    """Return where the number of a value begins and how all records' are converted; None where that takes its text."""
    start, end = (value.start, value.end) if value.direct else value.number
    if start < 0:
        return None
    plan = _plan(layout.sample[start:end].translate(MASK), value.spec.unit if value.spec is not None else None)
    return None if plan is None else (start, plan)


class Template:
    """A layout, ready for many records.

    ``plain``: all its values are numbers that have a plan. ``decimals`` converts those of a plain one with a single
    event, in the order of the event's values and others.
    """

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.length = len(layout.sample)
        fields: list[tuple[int, DecimalPlan]] = []
        self._direct: dict[Value, int] = {}
        self.plain = True
        for event in layout.events:
            for value in (*event.values, *event.unregistered):
                found = plan_of(layout, value)
                if found is not None:
                    self._direct[value] = len(fields)
                    fields.append(found)
                self.plain = self.plain and found is not None
        self.decimals = DecimalFields(fields) if fields else None
        moving = moving_digits(layout)
        self.prefixes = [None if e.prefix is None else Prefixes(e.prefix, moving) for e in layout.events]

    def values(self, matrix: Bytes) -> tuple[Floats, NDArray[np.bool_] | None]:
        """Return the numbers that have a plan (fields, n), and which records are in bounds; None: all are."""
        if self.decimals is None:
            return np.empty((0, len(matrix))), None
        numbers = self.decimals.convert(matrix)
        inside: NDArray[np.bool_] | None = None
        for event in self.layout.events:
            for index, least in event.bounds:
                low = numbers[self._direct[event.values[index]]] < least
                if low.any():
                    inside = ~low if inside is None else inside & ~low
        return numbers, inside

    def pieces(
        self, matrix: Bytes, numbers: Floats, ordinals: Integers, lines: Integers, problems: PlacedProblems
    ) -> Iterator[Piece]:
        """Yield for each event of the layout what all records give; ``problems`` gets their problems."""
        for event, prefixes in zip(self.layout.events, self.prefixes, strict=True):
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
                    self._convert(piece, event, value, matrix, problems)
            for value in event.unregistered:
                if value in self._direct:
                    piece.unregistered[value.name] = None, numbers[self._direct[value]]
                else:
                    _read_others(piece, value, matrix)
            yield piece

    def _convert(self, piece: Piece, event: EventLayout, value: Value, matrix: Bytes, problems: PlacedProblems) -> None:
        """Add a value that is no plain number: each distinct text is read once."""
        assert value.spec is not None
        texts, which = _distinct(value, matrix)
        read = [convert(value.spec, text) for text in texts]
        for index, (_, readable) in enumerate(read):
            for row in () if readable else (which == index).nonzero()[0].tolist():
                record = matrix[row, : self.length].tobytes()
                problem = unreadable(event.grammar, event.rule, value.name, texts[index], int(piece.line[row]), record)
                problems.append((int(piece.at[row]), problem))
        numbers = [number for number, _ in read]
        if any(isinstance(number, str) for number in numbers):
            rows, kept = _kept(numbers, which, lambda number: isinstance(number, str))
            piece.texts[value.name] = rows, [str(numbers[i])[:EXCERPT_BYTES] for i in kept.tolist()]
        elif any(isinstance(number, float) for number in numbers):
            rows, kept = _kept(numbers, which, lambda number: isinstance(number, float))
            piece.numbers[value.name] = rows, _floats(numbers)[kept]


def _read_others(piece: Piece, value: Value, matrix: Bytes) -> None:
    texts, which = _distinct(value, matrix)
    numbers = [read_value(value, text.encode("utf-8")) for text in texts]
    if any(number is not None for number in numbers):
        rows, kept = _kept(numbers, which, lambda number: number is not None)
        piece.unregistered[value.name] = rows, _floats(numbers)[kept]


def _distinct(value: Value, matrix: Bytes) -> tuple[list[str], Integers]:
    """Return the distinct texts of a value, and which of them each record has."""
    if value.constant is not None or value.start == value.end:
        return [value_text(value, b"")], np.zeros(len(matrix), np.int64)
    column = np.ascontiguousarray(matrix[:, value.start : value.end]).view(f"S{value.end - value.start}")[:, 0]
    texts, which = np.unique(column, return_inverse=True)
    return [text.decode("utf-8", "replace") for text in texts.tolist()], which.reshape(-1)


def _kept(
    numbers: Sequence[float | str | None], which: Integers, wanted: Callable[[float | str | None], bool]
) -> tuple[Integers | None, Integers]:
    """Return the rows with a wanted value (None: all), and the index of the value of each."""
    good = np.array([wanted(number) for number in numbers])
    if good.all():
        return None, which
    rows = np.flatnonzero(good[which])
    return rows, which[rows]


def _floats(numbers: Sequence[float | str | None]) -> Floats:
    return np.array([number if isinstance(number, float) else NAN for number in numbers], np.float64)
