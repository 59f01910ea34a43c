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
from receipt_cli.numeric.statistics import Values, finite

if TYPE_CHECKING:
    from receipt_cli.numeric.array_types import Floats, Mask

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


def read(events: Iterable[Event], figure: Figure, within: Selection | None = None) -> Numbers:
    """Return the values of a figure in the order of ``events``; of step records only those ``within``."""
    parts = _parts(events, figure, within)
    if len(parts) == 1 and isinstance(parts[0], list):
        return parts[0]
    import numpy as np

    return joined(parts, np.float64)


def _parts(events: Iterable[Event], figure: Figure, within: Selection | None = None) -> list[Numbers]:
    """Return the same in parts: lists, and an array for each run, the run's own where all of it is wanted."""
    values: list[float] = []
    parts: list[Numbers] = [values]
    for event in events:
        number = figure.of_event(event)
        if number is not None and (within is None or event.rule.event != "step" or id(event) in within.events):
            values.append(number)
        if event.run is not None and (found := figure.of_run(event.run)) is not None:
            numbers, mask = found
            chosen = within.masks.get(id(event)) if within is not None else None
            if mask is not None or chosen is not None:
                numbers = numbers[chosen if mask is None else mask if chosen is None else mask & chosen]
            values = []
            parts += [numbers, values]
    return parts


def placed(events: Iterable[Event], figure: Figure) -> tuple[Floats, Floats]:
    """Return steps and values (float64 [n] each) of a figure, in the order of ``events``; what has no step is left out."""
    import numpy as np

    steps: list[Floats | list[float]] = [[]]
    values: list[Floats | list[float]] = [[]]
    for event in events:
        number = figure.of_event(event)
        if number is not None and event.step is not None:
            steps.append([event.step])
            values.append([number])
        found = figure.of_run(event.run) if event.run is not None else None
        if event.run is not None and found is not None and len(event.run.steps):
            chosen = slice(None) if found[1] is None else found[1]
            steps.append(event.run.steps[chosen].astype(np.float64))
            values.append(found[0][chosen])
    return np.concatenate(steps), np.concatenate(values)


def steps_at(events: Iterable[Event], figure: Figure, places: Sequence[int]) -> list[int | None]:
    """Return the step of some values of a figure, None where it has none: ``places`` count its values from 0, ascending."""
    found: list[int | None] = []
    wanted, seen = iter(places), 0
    place = next(wanted, None)
    for event in events:
        if place is None:
            break
        if figure.of_event(event) is not None:
            if place == seen:
                found.append(event.step)
                place = next(wanted, None)
            seen += 1
        read_run = figure.of_run(event.run) if event.run is not None and place is not None else None
        if event.run is not None and read_run is not None:
            count = len(read_run[0]) if read_run[1] is None else int(read_run[1].sum())
            while place is not None and place < seen + count:
                index = place - seen if read_run[1] is None else int(read_run[1].nonzero()[0][place - seen])
                found.append(event.run.values(index)[0])
                place = next(wanted, None)
            seen += count
    return found


def ends(events: Sequence[Event], figure: Figure) -> tuple[float, float] | None:
    """Return the first and the last value of a figure, or None where there is none."""
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
        places.sort(kind="stable")  # mostly in order
    return places.data


def first_with(events: Iterable[Event], figure: Figure, value: float) -> tuple[int, int]:
    """Return position and line of the first record that has ``value``. Raises ``ValueError`` where none has it."""
    for event in events:
        if figure.of_event(event) == value:
            return event.at, event.line
        found = figure.of_run(event.run) if event.run is not None else None
        if event.run is not None and found is not None:
            equal = found[0] == value
            index = int(equal.argmax())
            if equal[index]:
                return event.run.record(index)[:2]
    raise ValueError(f"no record has {value}")


def not_finite_since(events: Sequence[Event], figure: Figure) -> int | None:
    """Return the line from which on no value is finite, 0 where the last one is finite, and None where there is none."""
    line: int | None = None
    for event in reversed(events):
        found = figure.of_run(event.run) if event.run is not None else None
        if event.run is not None and found is not None:
            import numpy as np

            values, mask = found
            good = np.flatnonzero(np.isfinite(values))
            after = int(good[-1]) + 1 if len(good) else 0
            bad = np.flatnonzero(np.ones(len(values) - after, np.bool_) if mask is None else mask[after:])
            if len(bad):
                line = event.run.record(after + int(bad[0]))[1]
            if len(good):
                return line or 0
        value = figure.of_event(event)
        if value is not None:
            if math.isfinite(value):
                return line or 0
            line = event.line
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
            self._known[name] = Joined(_parts(self._events, metric(name)))
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
