"""Printed step times of a phase → the time of its steps, apart from what warm-up and evaluations put into them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from receipt_cli.analysis.goodput.attempts import (
    CUMULATIVE,
    DATA,
    MISSING,
    SLACK,
    TIME,
    Try,
    covered,
    is_time,
    last_clock,
    steps_in,
    weigh,
)
from receipt_cli.analysis.goodput.legs import Beyond, Tries
from receipt_cli.analysis.goodput.marked import Placed
from receipt_cli.analysis.steady import warmup
from receipt_cli.events.model import Event
from receipt_cli.numeric.statistics import Statistic

INCLUDES = 1.5
"""A record behind an evaluation or a checkpoint whose step time is so many times the median has waited for it."""


class Extra(NamedTuple):
    """What one record's printed time holds beyond the steps: seconds per record, and the seconds it has as a step."""

    event: Event
    seconds: float
    working: float


class Times(NamedTuple):
    """The printed times of a phase, in seconds: of the steps that stand and of those that were overtaken, and what the
    records of the warm-up, and those behind a mark, hold beyond them.

    ``waits`` is True where the timer runs on through evaluations: what a first record holds beyond is nobody's then.
    """

    standing: float
    wasted: float
    warmup: list[Extra]
    behind: list[Extra]
    waits: bool
    median: float
    legs: Mapping[int, Beyond]
    """What the records of warm-ups in relays hold beyond their steps, by the identity of the ``Legs``."""

    @property
    def of_warmup(self) -> list[float]:
        """The seconds beyond its steps of each record of the warm-up."""
        inside = (seconds for beyond in self.legs.values() for seconds in beyond.seconds.tolist())
        return [*(extra.seconds for extra in self.warmup), *inside]


def printed_times(tries: Sequence[Tries], statistic: Statistic | None, waiting: float | None, marks: Placed) -> Times | None:
    """Return what the printed step times add up to, or None where they do not tell.

    ``statistic`` is that of the step times, ``waiting`` the median of what is printed of the waiting for data in them;
    ``marks`` are the evaluations and checkpoints between the records.
    """
    if statistic is None or not is_time(statistic.median) or any(event.step is None for one in tries for event in one.events):
        return None
    median, definition = statistic.median, statistic.definition
    extras = _Extras(median, definition, marks, waiting)
    standing: list[float] = []
    wasted: list[float] = []
    for one in tries:
        if not isinstance(one, Try):
            for begins, ends, sums in ((one.starts, one.standing, standing), (one.standing, one.stops, wasted)):
                totals = one.totals(begins, ends, TIME, definition, median)
                if None in totals:
                    return None
                sums += [total for total in totals if total is not None]
            extras.legs[id(one)] = one.beyond(median, definition, waiting)
            continue
        before: Event | None = None
        for events, sums in zip(one.part, (standing, wasted), strict=True):
            if events:
                seconds = figure_total(events, before, one.lead, TIME, definition, median)
                if seconds is None:
                    return None
                sums.append(seconds)
                before = events[-1]
        extras.take(one)
    early, late = extras.found()
    if definition in CUMULATIVE:
        early, late = [], []
        extras.legs.clear()
    over = {id(e.event): e for e in (*early, *late)}
    stand = {id(event) for one in tries if isinstance(one, Try) for event in one.part[0]}
    taken = {True: [], False: []}  # type: dict[bool, list[float]]
    for one in tries:
        if not isinstance(one, Try):
            if (beyond := extras.legs.get(id(one))) is not None:
                over_steps, inside = (one.times(TIME) * one.covers)[beyond.at] - beyond.working, one.stands[beyond.at]
                for stands, found in taken.items():
                    found += over_steps[inside == stands].tolist()
            continue
        for event, cover, owner in _covers(one, marks):
            if id(event) in over:
                taken[id(owner) in stand].append(event.metrics[TIME] * cover - over[id(event)].working)
    return Times(
        math.fsum(standing) - math.fsum(taken[True]), math.fsum(wasted) - math.fsum(taken[False]),
        early, late, extras.waits, median, extras.legs,
    )  # fmt: skip


def figure_total(
    events: Sequence[Event], before: Event | None, lead: int, name: str, definition: str | None, median: float
) -> float | None:
    """Return a figure of one step summed over all steps of some records; None where too many lack it."""
    if definition in CUMULATIVE:
        last = next((value for event in reversed(events) if (value := _last(event, name)) is not None), None)
        return None if last is None else last * steps_in(events, before, lead)
    weighed = weigh(events, before, lead, name)
    if weighed is None or weighed.missing > MISSING * (weighed.covered + weighed.missing):
        return None
    return weighed.total + max(0, weighed.missing) * median


def _last(event: Event, name: str) -> float | None:
    if event.run is not None and is_time(found := event.run.values(len(event.run) - 1)[1].get(name)):
        return found
    value = event.metrics.get(name)
    return value if is_time(value) else None


def _covers(one: Try, marks: Placed) -> Iterator[tuple[Event, int, Event]]:
    """Yield each record that is an event or follows a mark, of how many steps it is, and the event that stands for it."""
    before: Event | None = None
    lead = one.lead
    for event in one.events:
        yield event, covered(before, event, lead), event
        yield from ((row.event, row.cover, event) for row in marks.rows_of(event))
        before = event


class _Extras:
    """Finds the records whose time is more than that of their steps."""

    def __init__(self, median: float, definition: str | None, marks: Placed, waiting: float | None) -> None:
        self.median, self.definition, self.marks, self.waiting = median, definition, marks, waiting
        self.early: list[Extra] = []
        self.late: list[Extra] = []
        self.quiet = 0
        self.legs: dict[int, Beyond] = {}

    @property
    def waits(self) -> bool:
        """True where most records behind a mark are far above the median."""
        return len(self.late) > self.quiet

    def take(self, one: Try) -> None:
        warm = warmup(one.records)
        for index, (event, cover, _) in enumerate(_covers(one, self.marks)):
            value = event.metrics.get(TIME)
            if not is_time(value):
                continue
            averaged = self.definition is not None or cover <= 1
            waited = self._waited(event, value)
            beyond = value - waited - self.median
            extra = Extra(event, beyond * (cover if averaged else 1), (self.median + waited) * cover)
            if index < warm:
                if beyond > 0:
                    self.early.append(extra)
            elif id(event) in self.marks.before:
                if beyond > (INCLUDES - 1) * self.median:
                    self.late.append(extra)
                else:
                    self.quiet += 1

    def _waited(self, event: Event, value: float) -> float:
        """Return how much longer than others a record waited for data: that is no warm-up and no evaluation."""
        data = event.metrics.get(DATA)
        if not is_time(data) or self.waiting is None or not self.waiting < data <= value:
            return 0.0
        return data - self.waiting

    def found(self) -> tuple[list[Extra], list[Extra]]:
        """Return what the records of the warm-up and those behind a mark hold beyond their steps."""
        if not self.waits:
            return self.early, []
        return [e for e in self.early if id(e.event) not in self.marks.before], [
            *self.late, *(e for e in self.early if id(e.event) in self.marks.before)
        ]  # fmt: skip


def is_credible(tries: Iterable[Tries], grain: float, definition: str | None, median: float) -> bool:
    """Say whether the stamps leave room for the printed times: what follows the first record of an attempt fits between it
    and the last. True where there are no stamps."""
    for one in tries:
        if not isinstance(one, Try):
            if not one.are_credible(grain, definition, median):
                return False
            continue
        span = last_clock(one.events[-1]) - one.first.clock
        if math.isnan(span) or one.records < 2:
            continue
        seconds = figure_total(one.events, None, one.lead, TIME, definition, median)
        printed = one.first.metrics.get(TIME)
        first = (printed if is_time(printed) else median) * one.lead
        if seconds is not None and seconds - first > span * (1 + SLACK) + 2 * grain:
            return False
    return True
