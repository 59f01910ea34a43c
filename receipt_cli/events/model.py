"""The events of a log, and the records without an event of their own."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple, overload

import numpy as np

from receipt_cli.events.rows import TAIL, Found, ProgressBars, RowRun, indices_of
from receipt_cli.grammar.model import Grammar, Rule
from receipt_cli.numeric.array_types import Floats, Integers
from receipt_cli.numeric.spill import gathered
from receipt_cli.problems import Problem
from receipt_cli.scan.columns import RuleColumns

FIRST, PIECE = 1 << 5, 1 << 12
"""Records of a run that become events together: at first, since often no more are asked for, and at most."""

Meaning = tuple[str | None, str | None]
"""Scope and definition of a metric, as its grammar declares them."""

NOTHING: Mapping[str, Any] = MappingProxyType({})
"""What most events have of most kinds: one for all, for there may be millions of them."""


@dataclass(slots=True)
class Event:
    """One thing that a trainer printed.

    ``metrics`` and ``unregistered`` hold numbers in base units; ``facts`` numbers or texts; ``texts`` what has no number;
    ``counters`` what a trainer that counts by epoch printed (see ``grammar.COUNTERS``). ``run`` are the step records
    that follow this one so regularly that none has an event of its own; they are of its rule and rank, and share its plan.
    """

    at: int
    line: int
    rank: int
    clock: float
    grammar: Grammar
    rule: Rule
    step: int | None = None
    planned: int | None = None
    counters: dict[str, int] | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    unregistered: Mapping[str, float] = field(default_factory=lambda: NOTHING)
    facts: Mapping[str, float | str] = field(default_factory=lambda: NOTHING)
    texts: Mapping[str, str] = field(default_factory=lambda: NOTHING)
    rules: tuple[str, ...] = ()
    meanings: Mapping[str, Meaning] = field(default_factory=lambda: NOTHING)
    run: RowRun | None = None
    elsewhere: dict[str, int] | None = None
    """The lines of values that another line prints, by the name of the metric."""

    def line_of(self, name: str) -> int:
        """Return the line that prints a metric of its own record."""
        return self.line if self.elsewhere is None else self.elsewhere.get(name, self.line)

    @property
    def is_step(self) -> bool:
        """True for a step record; a companion only adds to one."""
        return self.rule.event == "step" and not self.rule.companion

    @property
    def records(self) -> int:
        """How many records it represents: itself, and those of its run."""
        return 1 if self.run is None else 1 + len(self.run)

    @property
    def drawn(self) -> int:
        """How many rows it represents: records of a bar are drawn over."""
        return 1 if self.run is None else 1 + self.run.drawn

    @property
    def last_step(self) -> int | None:
        """The step of the last record that it represents."""
        return self.step if self.run is None else self.run.last

    @property
    def metric_names(self) -> Iterable[str]:
        """The metrics that it prints, or that records of its run print."""
        return self.metrics if self.run is None else dict.fromkeys((*self.metrics, *self.run.printed(self.run.metrics)))

    @property
    def unregistered_names(self) -> Iterable[str]:
        """The same of metrics outside the registry."""
        return (
            self.unregistered
            if self.run is None
            else dict.fromkeys((*self.unregistered, *self.run.printed(self.run.unregistered)))
        )

    def prints(self, name: str) -> bool:
        """True when it prints a metric, or a record of its run does."""
        return name in self.metrics or (self.run is not None and self.run.metric(name) is not None)

    @property
    def last_at(self) -> int:
        """The position of the last record that it represents."""
        return self.at if self.run is None else self.run.record(len(self.run) - 1)[0]

    @property
    def last_clock(self) -> float:
        """The stamp of the last record that it represents."""
        return self.clock if self.run is None else self.run.record(len(self.run) - 1)[2]

    @property
    def last_line(self) -> int:
        """The line of the last record that it represents."""
        return self.line if self.run is None else max(self.line, self.run.record(len(self.run) - 1)[1])

    @property
    def position(self) -> float | None:
        """How far training is at a step record: its step, or where none is printed its epoch."""
        return float(self.step) if self.step is not None else self.metrics.get("epoch")

    def precedes(self, evaluation: Event) -> bool:
        """True where ``evaluation`` is one of a later step than this record's, so of the run before it."""
        if evaluation.rule.event != "eval":
            return False
        if evaluation.step is not None and self.step is not None:
            return evaluation.step > self.step
        return evaluation.metrics.get("epoch", 0.0) > self.metrics.get("epoch", math.inf)

    def add_unregistered(self, name: str, value: float) -> None:
        """Set the value of a metric outside the registry."""
        if isinstance(self.unregistered, dict):
            self.unregistered[name] = value
        else:
            self.unregistered = {name: value}

    def join(self, other: Event) -> None:
        """Add what another line about the same step prints; values of this one are kept."""
        self.rules = (*self.rules, other.rule.name)
        self.fill(other)

    def fill(self, other: Event) -> None:
        """Add the values that ``other`` has and this event has not."""
        own = {*self.metrics, *self.unregistered}
        new = [name for name in (*other.metrics, *other.unregistered) if name not in own]
        if new:
            self.elsewhere = {**(self.elsewhere or {}), **{name: other.line_of(name) for name in new}}
        self.metrics = {**other.metrics, **self.metrics}
        if other.unregistered:
            self.unregistered = {**other.unregistered, **self.unregistered}
        self.meanings = {**other.meanings, **self.meanings}

    def same_values(self, other: Event) -> bool:
        """True when both print the same numbers (NaN equals NaN)."""
        return _equal(self.metrics, other.metrics) and _equal(self.unregistered, other.unregistered) and self.facts == other.facts


def _equal(left: Mapping[str, float], right: Mapping[str, float]) -> bool:
    if left.keys() != right.keys():
        return False
    return all(value == right[name] or (math.isnan(value) and math.isnan(right[name])) for name, value in left.items())


@dataclass(slots=True)
class Ledger:
    """The numeric cells of the records that rules read: by key, how many are ``read`` into fields, kept under their label as
    ``other`` metrics, and ``dropped``."""

    read: Counter[str] = field(default_factory=Counter)
    other: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)

    def take(self, columns: Iterable[RuleColumns]) -> None:
        """Add the cells of the columns of rules. What only a header or an opening line names is added by who names it."""
        for one in columns:
            for name, numbers in one.numbers.items():
                self.read[name] += len(numbers.values)
            for name, numbers in one.unregistered.items():
                self.other[name] += len(numbers.values)
            self.dropped += one.dropped


class ReadEvents(NamedTuple):
    """Events in log order, problems of naming them (table rows without a header), and records without an event:
    those of ranks other than the leading one (by rank), and progress bars. ``ledger`` counts all numeric cells. ``ranks`` are
    those that records without an event name, of several perhaps not all."""

    events: list[Event]
    problems: list[Problem]
    copies: Mapping[int, list[RowRun]]
    bars: list[ProgressBars]
    ledger: Ledger
    ranks: Set[int] = frozenset()


def rule_of(event: Event) -> tuple[str, str]:
    """Return which rule of which grammar read a line."""
    return event.grammar.id, event.rule.name


def expand(event: Event) -> Iterable[Event]:
    """Yield the event and those of its run, each as one of its own; those of a long run are made piece by piece."""
    yield event if event.run is None else replace(event, run=None)
    begin, piece = 0, FIRST
    while event.run is not None and begin < len(event.run):
        yield from _records(event, event.run.part(begin, min(begin + piece, len(event.run))))
        begin, piece = begin + piece, min(2 * piece, PIECE)


def in_order(events: Iterable[Event]) -> list[Event]:
    """Return the events in log order: each record of a run that others stand between is an event of its own."""
    parted = [expand(event) if event.run is not None and event.run.passed else (event,) for event in events]
    found = [one for several in parted for one in several]
    return sorted(found, key=lambda event: event.at) if len(found) > len(parted) else found


def singles(events: Iterable[Event]) -> Iterator[Event]:
    """Yield all records in log order, each as an event of its own."""
    return chain.from_iterable(map(expand, in_order(events)))


def cut(event: Event, step: float) -> list[Event]:
    """Return the records of an event with steps, cut before ``step``: no run reaches over it, or up to it.

    The last records before it are events of their own, and so is the first from it on.
    """
    run = event.run
    if run is None or event.step is None or event.step >= step or (count := bisect_left(run.steps, step)) == len(run):
        return [event]
    near = max(0, count - TAIL)
    return [part_of(event, 0, near + 1), *_records(event, run.part(near, count)), part_of(event, count + 1, len(run) + 1)]


def part_of(event: Event, begin: int, end: int) -> Event:
    """Return the records that an event represents from ``begin`` to ``end`` (exclusive), counted from 0 for itself."""
    one = record_of(event, begin)
    one.run = event.run.part(begin, end - 1) if event.run is not None and end - begin > 1 else None
    return one


def record_of(event: Event, index: int) -> Event:
    """Return one of the records that an event represents, counted from 0 for itself."""
    if not index or event.run is None:
        return replace(event, run=None)
    [record] = _records(event, event.run.part(index - 1, index))
    return record


@overload
def numbers_of(events: Sequence[Event], own: Callable[[Event], int], behind: Callable[[RowRun], Integers]) -> Integers: ...
@overload
def numbers_of(
    events: Sequence[Event], own: Callable[[Event], float], behind: Callable[[RowRun], Floats], kind: type[np.float64]
) -> Floats: ...
def numbers_of(events: Sequence[Event], own: Callable[..., Any], behind: Callable[..., Any], kind: Any = np.int64) -> Any:
    """Return a number of each record ([n] of a ``kind``): an event's ``own``, then those of the run ``behind`` it."""

    def parts() -> Iterator[Any]:
        singles: list[Any] = []
        for event in events:
            singles.append(own(event))
            if event.run is not None:
                yield np.array(singles, kind)
                singles.clear()
                yield from map(behind, event.run.in_pieces())
        yield np.array(singles, kind)

    return gathered(kind, sum(event.records for event in events), parts())


def _records(event: Event, run: RowRun) -> list[Event]:
    """Return an event for each record of ``run``, which follows ``event``."""
    steps = run.steps.tolist() or [None] * len(run)
    own, printed = (event.rule.name,), event.counters
    events = [
        Event(
            at, line, event.rank, clock, event.grammar, event.rule, step, event.planned, event.counters, rules=own,
            meanings=event.meanings,
        )
        for at, line, clock, step in zip(run.at.tolist(), run.line.tolist(), run.clock.tolist(), steps, strict=True)
    ]  # fmt: skip
    for name, counts in (("epoch_step", run.counts), ("epoch_number", run.epoch_numbers)) if printed is not None else ():
        for made, count in zip(events, () if counts is None else counts.tolist(), strict=counts is not None):
            made.counters = {**(made.counters or {}), name: count}
    for companion, joined in indices_of(run.attached, run.rows):
        for index in joined:
            events[index].rules = (*events[index].rules, companion)
    for name in run.metric_names:
        for index, value in _known(run.metric(name)):
            events[index].metrics[name] = value
    for name in run.unregistered:
        for index, value in _known(run.unregistered_metric(name)):
            events[index].add_unregistered(name, value)
    for name in run.printed_elsewhere:
        for made, line in zip(events, run.lines_of(name).tolist(), strict=True):
            if name in made.metrics or name in made.unregistered:
                made.elsewhere = {**(made.elsewhere or {}), name: line}
    return events


def _known(found: Found | None) -> Iterable[tuple[int, float]]:
    """Yield the index and the value of each record that has one."""
    if found is None:
        return ()
    values = found[0].tolist()
    return enumerate(values) if found[1] is None else ((index, values[index]) for index in found[1].nonzero()[0].tolist())


NEVER = 1 << 62
"""A step that no record reaches."""


class Relay(NamedTuple):
    """Attempts in one run: ``event`` is the first record, behind which all others stand.

    ``starts`` is the first record of each attempt, counted from 0, and ``stands`` how many of its records stand (int64 [n]).
    ``retained`` are the records that stand, ``overtaken`` the others: one event each, and a run; None where there is none.
    """

    event: Event
    starts: Integers
    stands: Integers
    retained: Event | None = None
    overtaken: Event | None = None

    @property
    def empty(self) -> int:
        """How many attempts have no record that stands."""
        return int((self.stands == 0).sum())


def is_relay(event: Event) -> bool:
    """True for an event whose run reaches over attempts."""
    return event.run is not None and event.run.begins is not None


def starts_of(event: Event) -> Integers:
    """Return the first record of each attempt of a relay, counted from 0 for the event itself (int64 [n])."""
    assert event.run is not None and event.run.begins is not None
    return np.concatenate([[0], event.run.begins + 1])


def lengths_of(event: Event) -> Integers:
    """Return how many records each attempt of a relay has (int64 [n])."""
    return np.diff(starts_of(event), append=event.records)


def as_retained(event: Event) -> Relay:
    """Return the relay of records all of which stand."""
    return Relay(event, starts_of(event), lengths_of(event))


def first_records(event: Event) -> list[tuple[int, int]]:
    """Return position and step of the first record of each attempt of a relay."""
    run = event.run
    assert run is not None and run.begins is not None
    return [(event.at, event.step or 0), *zip(run.at[run.begins].tolist(), run.steps[run.begins].tolist(), strict=True)]


def resolve(event: Event, limit: float) -> tuple[Relay, int]:
    """Return a relay with what stands of it, and its lowest step; what follows it begins again at the step ``limit``."""
    run, starts = event.run, starts_of(event)
    assert run is not None
    steps = np.concatenate([[event.step or 0], run.steps])
    firsts = np.append(steps[starts], np.int64(min(limit, NEVER)))
    limits = np.minimum.accumulate(firsts[:0:-1])[::-1]  # what is run again later
    stand = steps < np.repeat(limits, np.diff(starts, append=len(steps)))
    stands = np.add.reduceat(stand, starts, dtype=np.int64)
    begins = (np.cumsum(stands) - stands)[stands > 0][1:]
    retained = _part(event, np.flatnonzero(stand), begins)
    return Relay(event, starts, stands, retained, _part(event, np.flatnonzero(~stand), None)), int(firsts.min())


def _part(event: Event, records: Integers, begins: Integers | None) -> Event | None:
    """Return some records of a relay; ``begins``: those that begin another attempt, counted among them, if they are one."""
    run = event.run
    assert run is not None
    if not len(records):
        return None
    one = record_of(event, int(records[0]))
    if len(records) > 1:
        one.run = run.chosen(records[1:] - 1, None if begins is None else begins - 1)
    return one
