"""Where the step records of a log begin anew, whether they are those of the start before, and with which configuration.

Records are compared by kind: one rule of a grammar, in one stage, of one rank.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice, pairwise

from receipt_cli.events.model import Event, expand
from receipt_cli.grammar.model import Rule
from receipt_cli.patterns import compile_later

FOLDS = 3
"""So many starts from the beginning, none of them after a sign of trouble, are a loop and no restarts."""
FEWEST = 3
"""Records that show that a launch is another one: fewer may be a summary, or differ by a seed."""
MOSTLY = 0.75
"""The share of the common steps that two launches print with other losses: a first one may be equal by chance."""
COMPARED = 20
"""Records of two starts that are compared to see whether the same trajectory is printed again."""
BACK = 1
"""Seconds by which no process prints its records back in time."""
SAVING = 3000, 3600
"""Seconds that local time may go back between two records in autumn: an hour, less the time between them."""
MODEL = frozenset({"parameter_count", "model_name"})
STRONG = MODEL | {"sequence_length", "samples_per_step", "tokens_per_step", "planned_steps"}
CONFIGURATION = STRONG | {
    "seed", "world_size", "micro_batch_size", "gradient_accumulation_steps", "data_parallel", "tensor_parallel",
    "pipeline_parallel", "context_parallel", "expert_parallel", "accelerator_name", "accelerator_count", "precision", "optimizer",
}  # fmt: skip
"""Facts that belong to a run as it was started: where two launches print others, they are two runs."""
_RUNS = r"(?:fold|seed|trial)"
_RUN = compile_later(rf"(?<![^\W_]){_RUNS}[ _#:=-]{{0,3}}\d+", re.IGNORECASE)
_RUN_NAME = compile_later(rf"{_RUNS}(?:_?(?:id|idx|index|number|no))?$", re.IGNORECASE)
Key = tuple[str, str | None, str, int]


class Known(dict[str, set[float | str]]):
    """The configuration that a run printed: the values of each fact."""

    def learn(self, event: Event) -> None:
        """Add what a line prints."""
        for name in CONFIGURATION & event.facts.keys():
            self.setdefault(name, set()).add(event.facts[name])
        if event.planned is not None:
            self.setdefault("planned_steps", set()).add(float(event.planned))

    def join(self, other: Known) -> None:
        """Add another configuration."""
        for name, values in other.items():
            self.setdefault(name, set()).update(values)

    def differs(self, other: Known, names: frozenset[str]) -> bool:
        """Return whether both have one of the facts and no value of it in common."""
        return any(self[name].isdisjoint(other[name]) for name in names & self.keys() & other.keys())


@dataclass(slots=True)
class Track:
    """One kind of step record of one launch: where it began, and where it is."""

    first: float
    last: float
    event: Event
    values: dict[float, Event] = field(default_factory=dict)
    records: int = 0

    @property
    def reached_plan(self) -> bool:
        """True where the run has come to the last step that it planned."""
        planned = self.event.planned
        return planned is not None and self.records > 1 and self.last >= planned - 1

    def add(self, clock: float, event: Event) -> None:
        """Go on to another record."""
        self.last, self.event = clock, event
        self.records += event.records
        for record in expand(event) if len(self.values) < COMPARED else ():
            if (at := clock_of(record)) is not None:
                self.values.setdefault(at, record)
            if len(self.values) == COMPARED:
                break


@dataclass(slots=True)
class Coming:
    """The step records of one kind: the index of each among all events, and where it is in training."""

    indices: array[int] = field(default_factory=lambda: array("q"))
    clocks: array[float] = field(default_factory=lambda: array("d"))


class Starts:
    """The step records of a log by kind, as positions: steps, or epochs where no step is printed."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events
        self.ahead: dict[Key, Coming] = {}
        self.unlisted: Counter[Key] = Counter()  # records of runs, which no start is among
        self.keys: list[Key] = []
        self.known_folds: dict[Key, tuple[float, bool]] = {}
        stage: str | None = None
        same: dict[Key, Key] = {}  # there may be millions of events
        for index, event in enumerate(events):
            if event.rule.event == "phase":
                stage = event.rule.phase or event.texts.get("phase")
            key = (event.grammar.id, event.rule.phase or stage, event.rule.name, event.rank)
            self.keys.append(same.setdefault(key, key))
            clock = clock_of(event)
            if clock is not None:
                coming = self.ahead.get(key) or self.ahead.setdefault(key, Coming())
                coming.indices.append(index)
                coming.clocks.append(clock)
                self.unlisted[key] += event.drawn - 1

    def are_fresh(self, index: int, clock: float) -> bool:
        """True when this record is the first of a run that began at its beginning: not beyond its own stride."""
        after = next((later for _, later in islice(self._from(index), 1, None)), clock)
        if after <= clock:
            return clock <= 1
        return clock <= (after - clock) * 1.5 or (clock <= 1 and after - clock >= 1)

    def are_repeated(self, index: int, track: Track) -> bool:
        """True when the records that both starts have print the same losses: the same run once more."""
        losses = [(one.metrics.get("loss"), other.metrics.get("loss")) for one, other in self.records_of_both(index, track)]
        return bool(losses) and all(mine is not None and mine == theirs for mine, theirs in losses)

    def are_others(self, index: int, track: Track) -> bool:
        """True where three or more records begin anew in another stride, with other columns, or with other values.

        Of the steps in common all but a few must have other values.
        """
        coming = list(self._from(index))
        ends = (at for at, (one, other) in enumerate(pairwise(coming), 1) if other[1] <= one[1])
        begun = coming[: next(ends, len(coming))]
        mine, theirs = [clock for _, clock in begun], sorted(track.values)
        if min(len(mine), len(theirs)) < FEWEST:
            return False
        if mine[0] != track.first:
            return _stride(mine) not in (None, _stride(theirs))
        if _columns(record for record, _ in begun[:FEWEST]) != _columns(track.values[clock] for clock in theirs[:FEWEST]):
            return _stride(mine) is not None
        both = ((_score(one), _score(other)) for one, other in self.records_of_both(index, track))
        compared = [one != another for one, another in both if one]
        common = min(len(compared), len(theirs))
        return mine[:common] == theirs[:common] and sum(compared) >= max(FEWEST, MOSTLY * len(compared))

    def are_earlier(self, index: int, track: Track, *, introduced: bool) -> bool:
        """True where the times of all records from here on, until they begin anew, precede those of the start before.

        Behind a banner it is enough that the time goes back; but not as a change to winter time sets it back.
        """
        back = track.event.clock - self.events[index].clock
        earlier = back > BACK and not SAVING[0] <= back <= SAVING[1]
        return earlier and (introduced or self._last(index).clock < track.values[track.first].clock)

    def are_beside(self, index: int, track: Track) -> bool:
        """True where the times from here on, until the records begin anew, overlap those of the start before: other ranks'.

        Where they begin nearer to its end the clocks of two hosts, one behind the other, may differ.
        """
        begin, now, end = track.values[track.first].clock, self.events[index].clock, track.event.clock
        return now < end - BACK and now - begin < end - now and self._last(index).clock >= begin

    def _last(self, index: int) -> Event:
        """Return the last record before the next one that is not beyond the one before it."""
        coming, at = self.ahead[self.keys[index]], self.place(index)
        while at + 1 < len(coming.clocks) and coming.clocks[at + 1] > coming.clocks[at]:
            at += 1
        return self.events[coming.indices[at]]

    def _from(self, index: int) -> Iterator[tuple[Event, float]]:
        """Yield the first records of the kind of event ``index`` from it on, and where in training they are."""
        at = self.place(index)
        events = (self.events[other] for other in self.ahead[self.keys[index]].indices[at : at + COMPARED])
        records = (record for event in events for record in expand(event))
        places = ((record, clock) for record in records if (clock := clock_of(record)) is not None)
        return islice(places, COMPARED)

    def place(self, index: int, key: Key | None = None) -> int:
        """Return how many records of a kind precede event ``index``: of its own kind if ``key`` is None."""
        return bisect_left(self.ahead[self.keys[index] if key is None else key].indices, index)

    def records_of_both(self, index: int, track: Track) -> Iterator[tuple[Event, Event]]:
        """Yield the records of the steps that the start at ``index`` and the one before have in common, in order."""
        last = -1.0
        for record, clock in self._from(index):
            if clock <= last or clock not in track.values:
                break
            last = clock
            yield record, track.values[clock]

    def is_first_evaluation(self, begin: int, index: int, *, ended: bool) -> bool:
        """True for an evaluation behind a configuration, or behind an end with values that the model there has not.

        The launch before begins at event ``begin``, and has ``ended``.
        """
        event, behind = self.events[index], False
        scores = {name: value for name, value in event.metrics.items() if name.startswith("val_")}
        for other in reversed(self.events[begin:index]):
            kind = other.rule.event
            if kind == "step":
                return False
            if kind == "header" and introduces(other) and not ended:
                return True
            if kind == "eval" and behind:
                return bool(scores) and all(
                    scores.items().isdisjoint(earlier.metrics.items()) and scores.keys() <= earlier.metrics.keys()
                    for earlier in self.events[begin:index]
                    if earlier.rule is event.rule
                )
            behind = behind or kind == "end"
        return False

    def folds(self, key: Key) -> tuple[float, bool]:
        """Return where the first run of a kind starts, and whether there are many, each long enough to be one."""
        if key not in self.known_folds:
            clocks = self.ahead[key].clocks
            starts = 1 + sum(b < a and b == clocks[0] for a, b in pairwise(clocks))  # a record printed twice is no start
            records = len(clocks) + self.unlisted[key]
            self.known_folds[key] = clocks[0], starts >= FOLDS and records >= FOLDS * starts
        return self.known_folds[key]


def clock_of(event: Event) -> float | None:
    """Return how far the run is at a step record: its step, or where none is printed its epoch."""
    return event.position if event.is_step else None


def runs_named(events: Sequence[Event]) -> set[int]:
    """Return the indices of the step records from which on another fold, seed or trial is named: in their rule, or as a figure.

    None where one is named again behind another: then several go on side by side.
    """
    named = [(index, name) for index, event in enumerate(events) if event.is_step and (name := _run_of(event)) is not None]
    changes = [(after[0], after[1]) for before, after in pairwise(named) if before[1] != after[1]]
    return {index for index, _ in changes} if len({name for _, name in named}) == len(changes) + 1 else set()


def _run_of(event: Event) -> str | None:
    if (named := _run_in(event.rule.literals)) is not None:
        return named
    return next((f"{name} {value}" for name, value in event.unregistered.items() if _RUN_NAME.match(name)), None)


@lru_cache(maxsize=256)
def _run_in(literals: tuple[bytes, ...]) -> str | None:
    found = (_RUN.search(literal.decode("utf-8", "replace")) for literal in literals)
    return next((one[0].lower() for one in found if one is not None), None)


def introduces(event: Event) -> bool:
    """True for a line with a part of the configuration."""
    return event.planned is not None or not CONFIGURATION.isdisjoint(event.facts)


def configures(rule: Rule) -> bool:
    """True for a rule of headers that have a part of the configuration, and no metric."""
    targets = [field.target for field in rule.fields.values()] if rule.event == "header" else []
    return any(name in CONFIGURATION for _, name in targets) and all(kind in ("fact", "structural") for kind, _ in targets)


def _score(event: Event) -> str:
    """Return what shows of which trajectory a record is: its loss, else its figures outside the registry, if it has any."""
    if "loss" in event.metrics:
        return repr(event.metrics["loss"])
    return ", ".join(repr(item) for item in sorted(event.unregistered.items()) if item[0] not in joined_names(event))


def _columns(events: Iterable[Event]) -> set[str]:
    return {name for event in events for name in {*event.metrics, *event.unregistered} - joined_names(event)}


def joined_names(event: Event) -> set[str]:
    """Return the figures that companions give a record: whether they are joined already depends on how it is kept."""
    joined = event.rules[1:]
    rules = [rule for rule in event.grammar.rules if rule.name in joined] if joined else []
    return {field.target[1] for rule in rules for field in rule.fields.values()}


def _stride(clocks: Sequence[float]) -> float | None:
    """Return the rise of the first clocks, None where it is not the same or where fewer are there."""
    first, *others = [round(other - one, 6) for one, other in pairwise(clocks[: FEWEST + 1])] or [0.0]
    return first if others and all(abs(other - first) <= first / 10 for other in others) else None
