"""Read the values of a figure from events and the runs behind them, in order: a list, or one array where there are runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias

from receipt_cli.events.model import Event
from receipt_cli.events.rows import RowRun
from receipt_cli.lazy_dataclass import dataclass, field
from receipt_cli.numeric.arrays import Joined
from receipt_cli.numeric.spill import ascends, joined
from receipt_cli.numeric.spill import pieces as parts_of
from receipt_cli.numeric.statistics import Values, finite

if TYPE_CHECKING:
    from receipt_cli.numeric.array_types import Floats, Integers, Mask

    Found: TypeAlias = tuple[Floats, Mask | None]

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
    count: int = 0


@dataclass(slots=True)
class Piece:
    """Values of a figure that follow one another in the log: those of ``events``, or those of the run behind the only one.

    ``index`` are the records of the run that have them; None: all.
    """

    values: Numbers
    events: list[Event]
    run: RowRun | None = None
    index: Integers | None = None

    def _at(self, place: int) -> int:
        return place if self.index is None else int(self.index[place])

    @property
    def places(self) -> Sequence[int] | Integers:
        """The positions of the records that have the values, ascending."""
        if self.run is None:
            return [event.at for event in self.events]
        return self.run.at if self.index is None else self.run.at[self.index]

    @property
    def steps(self) -> Numbers:
        """The steps of the records that have the values, NaN where one has none."""
        if self.run is None:
            return [math.nan if event.step is None else float(event.step) for event in self.events]
        import numpy as np

        steps = self.run.steps.astype(np.float64)
        if not len(steps):
            return np.full(len(self.values), np.nan)
        return steps if self.index is None else steps[self.index]

    def record(self, place: int) -> tuple[int, int]:
        """Return position and line of the record that has a value."""
        if self.run is None:
            return self.events[place].at, self.events[place].line
        return self.run.record(self._at(place))[:2]

    def line_of(self, name: str, place: int) -> int:
        """Return the line that prints a value of the metric ``name``."""
        return self.events[place].line_of(name) if self.run is None else self.run.line_of(name, self._at(place))

    def step(self, place: int) -> int | None:
        """Return the step of the record that has a value."""
        return self.events[place].step if self.run is None else self.run.values(self._at(place))[0]


@dataclass(slots=True)
class Merged(Piece):
    """Values of several pieces whose records stand between each other's, in the order of the log.

    ``order`` (int64 [n]) is where each is among those of all ``parts``.
    """

    parts: Sequence[Piece] = ()
    order: Integers | None = None

    def _part(self, place: int) -> tuple[Piece, int]:
        """Return the piece that a value is of, and its place there."""
        assert self.order is not None
        within = int(self.order[place])
        for part in self.parts:
            if within < len(part.values):
                return part, within
            within -= len(part.values)
        raise IndexError(place)

    def record(self, place: int) -> tuple[int, int]:
        """Return position and line of the record that has a value."""
        part, within = self._part(place)
        return part.record(within)

    def line_of(self, name: str, place: int) -> int:
        """Return the line that prints a value of the metric ``name``."""
        part, within = self._part(place)
        return part.line_of(name, within)

    def step(self, place: int) -> int | None:
        """Return the step of the record that has a value."""
        part, within = self._part(place)
        return part.step(within)

    @property
    def steps(self) -> Numbers:
        """The steps of the records that have the values, NaN where one has none."""
        import numpy as np

        steps: Floats = np.concatenate([np.asarray(part.steps) for part in self.parts])[self.order]
        return steps


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
    import numpy as np

    order = np.argsort(np.concatenate([np.asarray(part.places, np.int64) for part in parts]), kind="stable")
    values = np.concatenate([np.asarray(part.values, np.float64) for part in parts])
    return Merged(values[order], [], None, None, parts, order)


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
            index = None if mask is None else mask.nonzero()[0]
            if index is not None and len(index):
                whole = index[-1] - index[0] == len(index) - 1
                numbers = numbers[slice(index[0], index[-1] + 1) if whole else index]
            if len(numbers) if index is None else len(index):
                found += [Piece(values, held)] if held else []
                held, values = [], []
                found.append(Piece(numbers, [event], event.run, index))
                passed |= event.run.passed
    found += [Piece(values, held)] if held else []
    return _in_order(found) if passed else found


def values_of(found: Sequence[Piece]) -> Numbers:
    """Return the values of all pieces: a list, or one array where there are runs."""
    parts = [piece.values for piece in found]
    if all(isinstance(part, list) for part in parts):
        return parts[0] if parts else []
    import numpy as np

    return joined(parts, np.float64)


def read(events: Iterable[Event], figure: Figure, within: Selection | None = None) -> Numbers:
    """Return the values of a figure in the order of ``events``; of step records only those ``within``."""
    return values_of(pieces(events, figure, within))


def placed(events: Iterable[Event], figure: Figure) -> tuple[Floats, Floats]:
    """Return steps and values (float64 [n] each) of a figure, in the order of ``events``; what has no step is left out."""
    import numpy as np

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


def ends(events: Sequence[Event], figure: Figure) -> tuple[float, float] | None:
    """Return the first and the last value of a figure, or None where there is none."""
    if any(event.run is not None and event.run.passed for event in events):
        found = pieces(events, figure)
        return (float(found[0].values[0]), float(found[-1].values[-1])) if found else None
    first = next((value for event in events for value in _edge(event, figure, 0)), None)
    last = next((value for event in reversed(events) for value in _edge(event, figure, -1)), None)
    return None if first is None or last is None else (first, last)


def _edge(event: Event, figure: Figure, index: int) -> Iterator[float]:
    """Yield the value at one end of an event and its run."""
    number = figure.of_event(event)
    if index == 0 and number is not None:
        yield number
    found = figure.of_run(event.run) if event.run is not None else None
    if found is not None:
        numbers = found[0] if found[1] is None else found[0][found[1]]
        if len(numbers):
            yield float(numbers[index])
    if number is not None:
        yield number


def positions(events: Iterable[Event]) -> Sequence[int]:
    """Return the positions of all records, ascending."""
    singles: list[int] = []
    runs: list[RowRun] = []
    for event in events:
        singles.append(event.at)
        runs += [event.run] if event.run is not None else []
    if not runs:
        return sorted(singles)
    import numpy as np

    parts = [np.array(singles, np.int64), *(run.at for run in runs)]
    places = joined(parts, np.int64)
    if not ascends(places):
        places = places.copy() if any(np.may_share_memory(places, part) for part in parts) else places
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
        self._names, self._events, self._steady = dict.fromkeys(names), events, steady
        self._known: dict[str, Sequence[float]] = {}
        self.recomputed: dict[str, tuple[Sequence[Event], Figure]] = {}
        """Figures that were recomputed, by metric, and the step records that may have one."""

    def __getitem__(self, name: str) -> Sequence[float]:
        if name not in self._names:
            raise KeyError(name)
        if name not in self._known:
            self._known[name] = Joined([piece.values for piece in pieces(self._events, metric(name))])
        return self._known[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    @property
    def events(self) -> Sequence[Event]:
        """The events that have the values, in log order; some have a run behind them."""
        return self._events

    @property
    def selection(self) -> Selection | None:
        """The step records of the steady window; None where all are."""
        return self._steady

    def steady(self, name: str) -> Values:
        """Return the finite values of a metric in the steady window, in step order."""
        return finite(read(self._events, metric(name), self._steady)) if name in self._names else []

    def curve(self, name: str) -> tuple[Floats, Floats]:
        """Return steps and values (float64 [n] each) of a metric; records without a step are left out."""
        return placed(self._events if name in self._names else (), metric(name))

    def recomputed_curve(self, name: str) -> tuple[Floats, Floats]:
        """Return the same of a figure that was recomputed, beside the printed one or without it."""
        events, figure = self.recomputed.get(name, ((), metric(name)))
        return placed(events, figure)

    def largest(self, name: str) -> float | None:
        """Return the largest value of a metric, infinities too, or None where there is none but NaN."""
        values = read(self._events, metric(name)) if name in self._names else []
        if isinstance(values, list):
            return max((value for value in values if not math.isnan(value)), default=None)
        import numpy as np

        known = values[~np.isnan(values)]
        return float(known.max()) if len(known) else None
