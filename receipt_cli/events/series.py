"""Read the values of a figure from events and the runs behind them, in order: a list, or one array where there are runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from receipt_cli.events.model import Event
from receipt_cli.events.rows import Found, RowRun
from receipt_cli.numeric.array_types import Floats, Integers, Mask
from receipt_cli.numeric.arrays import Joined
from receipt_cli.numeric.spill import ascends, joined
from receipt_cli.numeric.spill import pieces as parts_of
from receipt_cli.numeric.statistics import Values, finite

Numbers: TypeAlias = "list[float] | Floats"
"""The numbers of one figure: a list, or a float64 array [n]."""


@dataclass(frozen=True, slots=True)
class Figure:
    """How to read one figure of an event, and of a run: its values (float64 [n]) and which records have one (None: all)."""

    of_event: Callable[[Event], float | None]
    of_run: Callable[[RowRun], Found | None]


def metric(name: str) -> Figure:
    """Return the reader of a metric, in base units."""
    return Figure(lambda event: event.metrics.get(name), lambda run: run.metric(name))


def unregistered(name: str) -> Figure:
    """Return the reader of a metric outside the registry."""
    return Figure(lambda event: event.unregistered.get(name), lambda run: run.unregistered_metric(name))


@dataclass(slots=True)
class Selection:
    """Some of the step records: ``events`` by their identity, and of the run behind one the records in its mask.

    A run without a mask belongs to it whole.
    """

    events: set[int] = field(default_factory=set)
    masks: dict[int, Mask] = field(default_factory=dict)


@dataclass(slots=True)
class Piece:
    """Values of a figure that follow one another in the log: those of ``events``, or those of the run behind the only one.

    Where records of several ``parts`` stand between each other's, it has their values in the order of the log. ``index`` is
    which record of the run, or which value of all parts, each one is; None: all in turn.
    """

    values: Numbers
    events: list[Event]
    run: RowRun | None = None
    index: Integers | slice | None = None
    parts: Sequence[Piece] = ()

    @property
    def places(self) -> Sequence[int] | Integers:
        """The positions of the records that have the values, ascending; not asked of one with parts."""
        if self.run is None:
            return [event.at for event in self.events]
        return self.run.at if self.index is None else self.run.at[self.index]

    @property
    def steps(self) -> Numbers:
        """The steps of the records that have the values, NaN where one has none."""
        if self.run is None and not self.parts:
            return [math.nan if event.step is None else float(event.step) for event in self.events]
        found = joined([part.steps for part in self.parts or (self.run,) if part is not None], np.float64)
        if not len(found):
            return np.full(len(self.values), np.nan)
        return found if self.index is None else found[self.index]

    def record(self, place: int) -> tuple[int, int]:
        """Return position and line of the record that has a value."""
        piece, at = self._find(place)
        return piece.run.record(at)[:2] if piece.run is not None else (piece.events[at].at, piece.events[at].line)

    def line_of(self, name: str, place: int) -> int:
        """Return the line that prints a value of the metric ``name``."""
        piece, at = self._find(place)
        return piece.events[at].line_of(name) if piece.run is None else piece.run.line_of(name, at)

    def step(self, place: int) -> int | None:
        """Return the step of the record that has a value."""
        piece, at = self._find(place)
        return piece.events[at].step if piece.run is None else piece.run.part(at, at + 1).last

    def _find(self, place: int) -> tuple[Piece, int]:
        """Return the piece without parts that a value is of, and which of its records has it."""
        index = self.index
        place = place if index is None else place + index.start if isinstance(index, slice) else int(index[place])
        for part in self.parts:
            if place < len(part.values):
                return part._find(place)
            place -= len(part.values)
        return self, place


def _in_order(found: Sequence[Piece]) -> list[Piece]:
    """Return the pieces in the order of the log: those whose records stand between each other's are merged."""
    together: list[list[Piece]] = []
    end = -1
    for piece in found:
        places = piece.places
        if places[0] > end:
            together.append([])
        together[-1].append(piece)
        end = max(end, int(places[-1]))
    return [several[0] if len(several) == 1 else _merge(several) for several in together]


def _merge(parts: Sequence[Piece]) -> Piece:
    order = np.argsort(np.concatenate([np.asarray(part.places, np.int64) for part in parts]), kind="stable")
    values = np.concatenate([np.asarray(part.values, np.float64) for part in parts])
    return Piece(values[order], [], None, order, parts)


def pieces(events: Iterable[Event], figure: Figure, within: Selection | None = None) -> list[Piece]:
    """Return the values of a figure in the order of ``events``; of step records only those ``within``."""
    found: list[Piece] = []
    passed = False
    held, values, of_event = list[Event](), list[float](), figure.of_event
    for event in events:
        number = of_event(event)
        if number is not None and (within is None or event.rule.event != "step" or id(event) in within.events):
            held.append(event)
            values.append(number)
        if event.run is not None and (printed := figure.of_run(event.run)) is not None:
            numbers, mask = printed
            chosen = within.masks.get(id(event)) if within is not None else None
            mask = chosen if mask is None else mask if chosen is None else mask & chosen
            index = None if mask is None else _rows_in(mask)
            numbers = numbers if index is None else numbers[index]
            if len(numbers):
                found += [Piece(values, held)] if held else []
                held, values = [], []
                found.append(Piece(numbers, [event], event.run, index))
                passed |= event.run.passed
    found += [Piece(values, held)] if held else []
    return _in_order(found) if passed else found


def _rows_in(mask: Mask) -> Integers | slice:
    """Return the rows that are in a mask, mostly one stretch of them."""
    first, count = int(mask.argmax()), int(np.count_nonzero(mask))
    return slice(first, first + count) if mask[first : first + count].all() else mask.nonzero()[0]


def values_of(found: Sequence[Piece]) -> Numbers:
    """Return the values of all pieces: a list, or one array where there are runs."""
    parts = [piece.values for piece in found]
    if all(isinstance(part, list) for part in parts):
        return parts[0] if parts else []
    return joined(parts, np.float64)


def read(events: Iterable[Event], figure: Figure, within: Selection | None = None) -> Numbers:
    """Return the values of a figure in the order of ``events``; of step records only those ``within``."""
    return values_of(pieces(events, figure, within))


def placed(events: Iterable[Event], figure: Figure) -> tuple[Floats, Floats]:
    """Return steps and values (float64 [n] each) of a figure, in the order of ``events``; what has no step is left out."""
    steps: list[Floats | list[float]] = [[]]
    values: list[Floats | list[float]] = [[]]
    for piece in pieces(events, figure):
        placed = np.asarray(piece.steps)
        known = ~np.isnan(placed)
        steps.append(placed[known])
        values.append(np.asarray(piece.values)[known])
    return np.concatenate(steps), np.concatenate(values)


def steps_at(events: Iterable[Event], figure: Figure, places: Sequence[int]) -> list[int | None]:
    """Return the step of some values of a figure, None where it has none: ``places`` count its values from 0, ascending."""
    found: list[int | None] = []
    seen = 0
    for piece in pieces(events, figure) if places else ():
        found += [piece.step(place - seen) for place in places if seen <= place < seen + len(piece.values)]
        seen += len(piece.values)
    return found


def is_shown(events: Iterable[Event], figure: Figure) -> bool:
    """True where any record has a figure."""
    of_event = figure.of_event
    return any(of_event(event) is not None or (event.run is not None and bool(pieces((event,), figure))) for event in events)


def positions(events: Iterable[Event]) -> Sequence[int]:
    """Return the positions of all records, ascending."""
    held = list(events)
    singles = [event.at for event in held]
    runs = [event.run.at for event in held if event.run is not None]
    if not runs:
        return sorted(singles)
    places = joined([np.array(singles, np.int64), *runs], np.int64)
    if not ascends(places):
        places = places.copy() if any(np.may_share_memory(places, run) for run in runs) else places
        places.sort(kind="stable")  # mostly in order
    return places.data


def first_with(events: Iterable[Event], figure: Figure, value: float) -> tuple[int, int]:
    """Return position and line of the first record that has ``value``. Raises ``ValueError`` where none has it."""
    for piece in pieces(events, figure):
        if (place := place_of(piece.values, value)) is not None:
            return piece.record(place)
    raise ValueError(f"no record has {value}")


def place_of(values: Numbers, value: float) -> int | None:
    """Return where a value is first; None where it is not."""
    if isinstance(values, list):
        return values.index(value) if value in values else None
    seen = 0
    for part in parts_of(values):
        if (equal := part == value).any():
            return seen + int(equal.argmax())
        seen += len(part)
    return None


def not_finite_since(events: Sequence[Event], figure: Figure) -> int | None:
    """Return the line from which on no value is finite, 0 where the last one is finite, and None where there is none."""
    line: int | None = None
    for piece in reversed(pieces(events, figure)):
        count = len(piece.values)
        after = next((place for place in range(count, 0, -1) if math.isfinite(piece.values[place - 1])), 0)
        if after < count:
            line = piece.record(after)[1]
        if after:
            return line or 0
    return line


class Series(Mapping[str, Sequence[float]]):
    """The values of metrics in step order; nothing is copied of a run that is wanted whole."""

    def __init__(self, names: Iterable[str] = (), events: Sequence[Event] = (), steady: Selection | None = None) -> None:
        self._names = dict.fromkeys(names)
        self.events, self.selection = events, steady
        """The events that have the values, in log order, some with a run behind them; the step records of the steady window, or
        None where all are."""
        self._known: dict[str, Sequence[float]] = {}
        self.recomputed: dict[str, tuple[Sequence[Event], Figure]] = {}
        """Figures that were recomputed, by metric, and the step records that may have one."""

    def __getitem__(self, name: str) -> Sequence[float]:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._known:
            self._known[name] = Joined([piece.values for piece in pieces(self.events, metric(name))])
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def steady(self, name: str) -> Values:
        """Return the finite values of a metric in the steady window, in step order."""
        return finite(read(self.events, metric(name), self.selection)) if name in self._names else []

    def curve(self, name: str) -> tuple[Floats, Floats]:
        """Return steps and values (float64 [n] each) of a metric; records without a step are left out."""
        return placed(self.events if name in self._names else (), metric(name))

    def recomputed_curve(self, name: str) -> tuple[Floats, Floats]:
        """Return the same of a figure that was recomputed, beside the printed one or without it."""
        events, figure = self.recomputed.get(name, ((), metric(name)))
        return placed(events, figure)

    def largest(self, name: str) -> float | None:
        """Return the largest value of a metric, infinities too, or None where there is none but NaN."""
        values = read(self.events, metric(name)) if name in self._names else []
        if isinstance(values, list):
            return max((value for value in values if not math.isnan(value)), default=None)
        known = values[~np.isnan(values)]
        return float(known.max()) if len(known) else None
