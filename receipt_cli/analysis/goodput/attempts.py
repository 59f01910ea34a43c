"""The attempts of a phase with everything that they printed: the records that stand, and those that a later one overtook."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, TypeAlias, TypeGuard

from receipt_cli.events.model import Event
from receipt_cli.events.phases import Phase
from receipt_cli.events.relays import Relay, as_retained, is_relay
from receipt_cli.events.rows import RowRun
from receipt_cli.lazy_dataclass import NamedTuple, dataclass
from receipt_cli.numeric.array_types import Floats
from receipt_cli.numeric.statistics import exact_sum, finite

if TYPE_CHECKING:
    from receipt_cli.analysis.goodput.legs import Legs
    from receipt_cli.numeric.statistics import Values

    Tries: TypeAlias = "Try | Legs"

LONGEST = 1e9
"""Seconds beyond which nothing of a job lasts: thirty years. A larger figure is no time."""


def is_time(value: object) -> TypeGuard[float]:
    """Say whether a printed figure can be a time in seconds."""
    return isinstance(value, float) and 0 <= value <= LONGEST


class Weighed(NamedTuple):
    """A figure of one step summed over all steps: ``total`` over ``covered`` steps; ``missing`` steps have no figure."""

    total: float
    covered: int
    missing: int


@dataclass(frozen=True, slots=True)
class Try:
    """One attempt: its records in log order, of which the first ``standing`` stand; behind some stands a run (see ``Event``)."""

    events: Sequence[Event]
    standing: int
    count: ClassVar[int] = 1

    @property
    def overtaken(self) -> int:
        """1 where it has records that were overtaken, else 0."""
        return int(self.standing < len(self.events))

    @property
    def first(self) -> Event:
        """The first record."""
        return self.events[0]

    @property
    def records(self) -> int:
        """How many records it has."""
        return sum(event.records for event in self.events)

    @property
    def stride(self) -> int | None:
        """Steps from the first record to the second; None where there is no second, or they have none."""
        first = self.events[0]
        if first.run is not None and len(first.run):
            second = first.run.values(0)[0]
        else:
            second = self.events[1].step if len(self.events) > 1 else None
        return None if first.step is None or second is None else second - first.step

    @property
    def lead(self) -> int:
        """How many steps the first record is of: those since the start, or since the record before it would have stood."""
        step, stride = self.events[0].step, self.stride
        if step is None or stride is None or step <= 1 or stride <= 1:
            return 1
        return min(stride, step + 1 if (step + 1) % stride == 0 else step)

    @property
    def part(self) -> tuple[Sequence[Event], Sequence[Event]]:
        """The records that stand, and those that were overtaken."""
        return self.events[: self.standing], self.events[self.standing :]


def attempts_of(phase: Phase) -> list[Tries]:
    """Return the attempts of a phase in log order, those too of which nothing stands; those of a relay are ``Legs``."""
    if not phase.superseded:
        return standing_of(phase)
    relays = {id(relay.event): relay for relay in phase.relays}
    parts = {id(part) for relay in phase.relays for part in (relay.retained, relay.overtaken)}
    stands = {id(event) for event in phase.steps}
    events = [event for event in (*phase.steps, *phase.superseded) if id(event) not in parts]
    groups: list[list[Event]] = []
    last: int | None = None
    for event in sorted([*events, *(relay.event for relay in phase.relays)], key=lambda event: event.at):
        if not groups or (event.step is not None and last is not None and event.step <= last):
            groups.append([])
        groups[-1].append(event)
        last = last if event.last_step is None else event.last_step
    found: list[Tries] = []
    for group in groups:
        relay = relays.get(id(group[0]))
        found += [Try(group, sum(id(event) in stands for event in group))] if relay is None else _legs(relay)
    return found


def standing_of(phase: Phase) -> list[Tries]:
    """Return the attempts of a phase of which something stands, without what was overtaken."""
    found: list[Tries] = []
    for attempt in filter(None, phase.attempts):
        found += _legs(as_retained(attempt[0])) if is_relay(attempt[0]) else [Try(attempt, len(attempt))]
    return found


def _legs(relay: Relay) -> list[Legs]:
    from receipt_cli.analysis.goodput.legs import legs_of

    return legs_of(relay)


def last_clock(event: Event) -> float:
    """Return the stamp of the last record that an event stands for, in seconds; NaN where it has none."""
    return event.clock if event.run is None else event.run.record(len(event.run) - 1)[2]


def covered(before: Event | None, event: Event, lead: int) -> int:
    """Return how many steps a record is of, after the record that ``before`` ends with; ``lead`` where there is none."""
    if before is None:
        return lead
    last = before.last_step
    return 1 if event.step is None or last is None else max(0, event.step - last)


def steps_in(events: Sequence[Event], before: Event | None, lead: int) -> int:
    """Return how many steps some records are of, that follow ``before``."""
    if not events:
        return 0
    ends = before.last_step if before is not None else None
    last = events[-1].last_step
    if events[0].step is None or last is None or (before is not None and ends is None):
        return sum(event.records for event in events)
    return last - ends if ends is not None else last - events[0].step + lead


def weigh(events: Sequence[Event], before: Event | None, lead: int, name: str) -> Weighed | None:
    """Return the sum of a figure of one step over all steps that some records are of; None where none has it.

    The figure of a record counts for every step since the record before it.
    """
    values: list[float] = []
    weights: list[int] = []
    runs: list[tuple[Floats, Floats]] = []
    count = steps_in(events, before, lead)
    for event in events:
        value = event.metrics.get(name)
        if is_time(value):
            values.append(value)
            weights.append(covered(before, event, lead))
        if event.run is not None:
            runs += _of_run(event, name)
        before = event
    if not runs:
        total = exact_sum([value * weight for value, weight in zip(values, weights, strict=True)])
        return Weighed(total, sum(weights), count - sum(weights)) if values else None
    import numpy as np

    figures = np.concatenate([np.array(values), *(run[0] for run in runs)])
    figures *= np.concatenate([np.array(weights, np.float64), *(run[1] for run in runs)])
    known = sum(weights) + sum(int(run[1].sum()) for run in runs)
    return Weighed(exact_sum(figures), known, count - known) if len(figures) else None


def _of_run(event: Event, name: str) -> Iterator[tuple[Floats, Floats]]:
    """Yield the times of a figure in the run behind ``event``, and of how many steps each is (float64 [n] each)."""

    run = event.run
    assert run is not None
    found = run.metric(name)
    if found is None:
        return
    weights = strides(event, len(run))
    known = (found[0] >= 0) & (found[0] <= LONGEST)
    if found[1] is not None:
        known &= found[1]
    yield (found[0], weights) if known.all() else (found[0][known], weights[known])


def paces(tries: Sequence[Tries], apart: Collection[int]) -> tuple[Values, Values]:
    """Return the seconds between neighbouring records by their stamps, and the seconds of a step between them.

    What stands between a record among ``apart``, by its identity, and the one before it does not count.
    """
    spans: list[float] = []
    each: list[float] = []
    runs: list[tuple[Floats, Floats]] = []
    for one in tries:
        if not isinstance(one, Try):
            runs.append(one.paces())
            continue
        before: Event | None = None
        for event in one.events:
            cover = covered(before, event, 1)
            if before is not None and id(event) not in apart and cover:
                spans.append(event.clock - last_clock(before))
                each.append(spans[-1] / cover)
            if event.run is not None:
                runs.append(_run_paces(event, event.run))
            before = event
    lengths, times = (finite(_joined(v, [run[i] for run in runs])) for i, v in enumerate((spans, each)))
    return lengths, times


def _joined(values: list[float], arrays: Sequence[Floats]) -> Values:
    if not arrays:
        return values
    import numpy as np

    joined: Floats = np.concatenate([np.array(values, np.float64), *arrays])
    return joined


def _run_paces(event: Event, run: RowRun) -> tuple[Floats, Floats]:
    """Return the seconds between the records of the run behind ``event`` by their stamps, and those per step (float64 [n])."""
    import numpy as np

    spans = np.diff(run.clock, prepend=event.clock)
    return spans, spans / strides(event, len(run))


def strides(event: Event, count: int) -> Floats:
    """Return of how many steps each of the ``count`` records in the run behind ``event`` is (float64 [n])."""
    import numpy as np

    steps = event.run.steps if event.run is not None else None
    if steps is None or not len(steps) or event.step is None:
        return np.ones(count)
    return np.diff(steps, prepend=event.step).astype(np.float64)
