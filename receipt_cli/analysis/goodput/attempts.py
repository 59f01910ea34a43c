"""The attempts of a phase with everything that they printed: the records that stand, and those that a later one overtook."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeGuard

import numpy as np

from receipt_cli.events.model import Event
from receipt_cli.events.rows import RowRun
from receipt_cli.numeric.array_types import Floats
from receipt_cli.numeric.statistics import exact_sum

TIME, DATA, DISPATCH = FIGURES = ("step_time_s", "data_time_s", "dispatch_wait_s")
CUMULATIVE = ("mean_since_start", "mean_since_timing_began")
"""Definitions of a figure whose last value says the mean of all steps."""
MISSING = 0.1
"""Share of the steps that may lack a time: they are taken for median ones."""
SLACK = 0.02
"""So much more than the clock saw may the printed times add up to: printed digits, and timers that begin earlier."""
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


def run_paces(event: Event, run: RowRun, apart: Sequence[int] = ()) -> tuple[Floats, Floats]:
    """Return the seconds between the records of the run behind ``event`` by their stamps, and those per step (float64 [n]).

    NaN before the records ``apart``, which have these indices.
    """
    spans = np.diff(run.clock, prepend=event.clock)
    spans[[*apart]] = np.nan
    return spans, spans / strides(event, len(run))


def strides(event: Event, count: int) -> Floats:
    """Return of how many steps each of the ``count`` records in the run behind ``event`` is (float64 [n])."""
    steps = event.run.steps if event.run is not None else None
    if steps is None or not len(steps) or event.step is None:
        return np.ones(count)
    return np.diff(steps, prepend=event.step).astype(np.float64)
