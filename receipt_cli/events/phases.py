"""Split the events of a launch into phases, and each phase into attempts.

A phase ends if the trainer prints its end, if another trainer or another stage begins, or if the steps start again with another
plan. If the steps go back inside a phase, another attempt begins (see ``attempts``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from receipt_cli.events.attempts import Additions, Attempts, BySteps, attempts_by_epoch
from receipt_cli.events.counters import JUMP, PASTED, Contest, contests_of
from receipt_cli.events.table import (
    EventTable,
    Row,
    Rows,
    at_rows,
    before_in,
    chosen,
    distinct,
    last_finite,
    mask_of,
    not_nan,
    numbers_in,
    size_of,
    where,
)
from receipt_cli.grammar.model import Grammar
from receipt_cli.numeric.array_types import Floats, Integers, Mask
from receipt_cli.numeric.arrays import distinct_values

_SINGLE = ("eval", "header", "checkpoint", "compile", "failure")
"""Events that belong to the running phase, or begin one."""
LOOKED_BACK = 64
"""Records at the end whose strides show whether the last step is a jump."""


@dataclass(slots=True)
class Phase:
    """One stage of training, in log order.

    ``step_events`` are all its step lines, ``evals`` the evaluations that stand, ``standalone_events`` its other lines. ``every``
    are its step records, without lines that only add to the record before. ``stands`` is the mask of those that no later attempt
    superseded, ``begins`` the index of the first record of each attempt.
    """

    grammar: Grammar
    name: str | None
    ended: bool
    failed_end: bool
    first_at: int
    step_events: EventTable
    evals: EventTable
    standalone_events: EventTable
    every: EventTable
    begins: Integers
    stands: Mask
    steps: EventTable = field(init=False)
    """The records that stand."""
    facts: dict[str, tuple[float | str, int]] = field(init=False)
    """The first value that the phase printed for each fact, with its line."""
    aside: EventTable
    """Displaced records: their counter goes back for a while, or far ahead (see ``counters.set_aside``)."""
    contests: list[Contest] = field(default_factory=list)
    started: list[tuple[int, float]] = field(default_factory=list)
    """Position in the log and time at which the program was started again, if arrival times show that, not its lines."""

    def __post_init__(self) -> None:
        self.steps = self.every.where(self.stands)
        self.facts = {}
        for row in self.standalone_events.of_sources(lambda source: source.speaks):
            for name, value in row.facts.items():
                self.facts.setdefault(name, (value, row.line))

    @property
    def superseded(self) -> EventTable:
        """The records that a later attempt superseded."""
        return self.every.where(~self.stands)

    @property
    def bounds(self) -> Integers:
        """The index in ``steps`` of the first record of each attempt, and at the end the number of records (int64 [k + 1])."""
        return np.append(before_in(where(self.stands), self.begins), len(self.steps))

    @property
    def last_attempt(self) -> EventTable:
        """The standing records of the last attempt; none if the phase has no attempt."""
        return self.steps[int(self.bounds[-2:][0]) :]

    @property
    def starts(self) -> Integers:
        """The index in ``steps`` of the first record of each attempt that has any (int64)."""
        return distinct_values(self.bounds[:-1][np.diff(self.bounds) > 0])

    @property
    def begun(self) -> EventTable:
        """The first standing record of each attempt except the first."""
        bounds = self.bounds
        return self.steps.chosen(bounds[1:-1][np.diff(bounds)[1:] > 0])

    @property
    def restarts(self) -> int:
        """The number of restarts."""
        return max(0, len(self.begins) - 1)

    @property
    def planned(self) -> int | None:
        """The planned number of steps, as last printed; None if never."""
        for events in (self.step_events, self.standalone_events):
            planned = events.column("planned")
            last = last_finite(planned)
            if last is not None:
                return int(planned[last])
        return None

    def fact(self, name: str) -> float | str | None:
        """Return the first value that the phase printed for a fact, or None."""
        return self.facts[name][0] if name in self.facts else None


def split_phases(events: EventTable, copied: Sequence[int] = (), banners: Sequence[int] = ()) -> list[Phase]:
    """Return the phases of a launch with their attempts.

    ``copied``: the numbers (ascending) of lines that are left out when the lines between two records are counted. ``banners``:
    positions in the log (ascending) of steps after a banner that no rule reads.
    """
    sweep = _Sweep(events)
    drafts = _merge_nameless(sweep.drafts(), events)
    if sweep.owners:
        events = events.joining(np.concatenate(sweep.owners), np.concatenate(sweep.members), noted=True)
    return [_resolve(draft, events, copied, banners) for draft in drafts]


def first_facts(phases: Sequence[Phase]) -> dict[str, tuple[float | str, int]]:
    """Return the first value that phases printed for each fact, with its line."""
    facts: dict[str, tuple[float | str, int]] = {}
    if phases:
        first = phases[0]
        lines = [part.line_span[0] for part in (first.step_events, first.evals, first.standalone_events) if len(part)]
        if first.grammar.trainer:
            facts["trainer"] = (first.grammar.trainer, min(lines))
        for phase in phases:
            facts |= {name: fact for name, fact in phase.facts.items() if name not in facts}
    if "trainer_name" in facts:
        facts["trainer"] = facts["trainer_name"]
    return facts


def last_steps(phase: Phase) -> tuple[list[int], Row | None]:
    """Return the last steps of the last attempt, at most ``LOOKED_BACK``, and the record of the last one (None if none)."""
    attempt = phase.last_attempt
    numbered = where(not_nan(attempt.steps))
    last = numbers_in(chosen(numbered, slice(max(0, size_of(numbered) - LOOKED_BACK), size_of(numbered))))
    return [int(step) for step in attempt.steps[last]], attempt[int(last[-1])] if len(last) else None


@dataclass(slots=True)
class _Draft:
    """A phase while its records are being found, as rows of the table."""

    grammar: Grammar
    first_at: int
    name: str | None = None
    named: bool = False
    ended: bool = False
    failed_end: bool = False
    steps: Rows = field(default_factory=lambda: slice(0, 0))
    evals: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    others: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    aside: list[int] = field(default_factory=list)
    last: int | None = None
    """The row of the last step record so far."""
    resumed: bool = False
    """Whether the steps go on after an end; then a printed training time covers only a part of them."""


class _Sweep:
    """Finds where phases begin, in one pass over the events.
    A record changes nothing if it is like the one before it (a step, an evaluation, or a companion): it is of the same phase."""

    def __init__(self, events: EventTable) -> None:
        self.events = events
        self.found: list[_Draft] = []
        self.apart = False  # the last record is set aside, and so are its companions
        self.alone: list[int] = []  # companions of no step record
        self.owners: list[Integers] = []
        self.members: list[Integers] = []
        """Rows of the log: step records (``owners``), and lines that add to them (``members``)."""
        self.is_step = events.by_source(lambda source: source.is_step)
        self.companion = events.by_source(lambda source: source.rule.event == "step" and source.rule.companion)
        self.steps = where(self.is_step)

    def drafts(self) -> list[_Draft]:
        """Return the phases with the rows of their records."""
        events = self.events
        begins: list[int] = []
        """The row at which each phase begins; it ends where the next one begins."""
        for index in self._changing().tolist():
            self._add(index)
            begins += [index] * (len(self.found) - len(begins))
        evaluation = events.by_source(lambda source: source.rule.event == "eval")
        single = np.array(events.by_source(lambda source: source.rule.event in ("phase", "end", *_SINGLE))) & ~evaluation
        single[self.alone] = True
        for draft, (begin, end) in zip(self.found, pairwise([*begins, len(events)]), strict=True):
            own = slice(begin, end)
            draft.steps = chosen(own, where(self.is_step[own]))
            draft.evals, draft.others = (begin + np.flatnonzero(mask[own]) for mask in (evaluation, single))
        return self.found

    def _changing(self) -> Integers:
        """Return the rows (ascending) that may begin or end a phase; companions give their figures to the step records."""
        events = self.events
        if not len(events):
            return np.empty(0, np.int64)
        plain = self.is_step | events.by_source(lambda source: source.rule.event == "eval")
        asked = ~plain & ~self.companion
        asked[0] = True
        names = [*dict.fromkeys((source.grammar.id, source.rule.phase) for source in events.log.sources)]
        if len(names) > 1:
            owner = events.by_source(lambda source: names.index((source.grammar.id, source.rule.phase)))
            main = np.flatnonzero(plain)
            asked[main[1:]] |= owner[main[1:]] != owner[main[:-1]]
        steps, changes = self.steps, np.flatnonzero(asked & ~self.is_step)
        for rows in (steps, where(plain)):  # the first after each change
            first = before_in(rows, np.append(0, changes))
            asked[chosen(rows, first[first < size_of(rows)])] = True
        planned, places = (at_rows(events.column(name), steps) for name in ("planned", "step"))
        if planned.strides != (0,):

            def anew(part: slice) -> Mask:
                plans, now = (column[part.start : part.stop + 1] for column in (planned, places))
                found: Mask = (np.diff(plans) != 0) & (np.diff(now) < 0) & ~np.isnan(np.diff(plans))
                return found

            asked[chosen(steps, np.flatnonzero(mask_of(max(0, len(places) - 1), anew)) + 1)] = True
        lines = np.flatnonzero(self.companion)
        if len(lines):
            before = before_in(steps, lines) - 1
            own = numbers_in(chosen(steps, np.maximum(before, 0))) if size_of(steps) else np.zeros(len(lines), np.int64)
            ids = [*dict.fromkeys(source.grammar.id for source in events.log.sources)]
            grammar = events.by_source(lambda source: ids.index(source.grammar.id))
            plainly = (before >= 0) & (np.searchsorted(changes, own) == np.searchsorted(changes, lines))
            plainly &= grammar[own] == grammar[lines]
            asked[lines[~plainly]] = True
            self._join(own[plainly], lines[plainly])
        return np.flatnonzero(asked)

    def _join(self, owners: Integers, members: Integers) -> None:
        """Let the first line of each rule among ``members`` add to its step record in ``owners``."""
        codes = self.events.column("source")
        pair = owners * len(self.events.log.sources) + codes[members]
        _, first = np.unique(pair, return_index=True)
        first = np.sort(first)
        rows = numbers_in(self.events.rows)
        self.owners.append(rows[owners[first]])
        self.members.append(rows[members[first]])

    def _open(self, row: Row) -> _Draft:
        self.found.append(_Draft(row.grammar, row.at))
        return self.found[-1]

    def _running(self, row: Row) -> _Draft | None:
        """Return the last phase if it is of the trainer of ``row``, else None."""
        return self.found[-1] if self.found and self.found[-1].grammar.id == row.grammar.id else None

    def _last_step(self, draft: _Draft, index: int) -> int | None:
        """Return the row of the last step record of a phase before ``index``, or None."""
        place = int(before_in(self.steps, np.array([index]))[0])
        return int(numbers_in(chosen(self.steps, slice(place - 1, place)))[0]) if place and draft.last is not None else None

    def _add(self, index: int) -> None:
        """Add a record to the running phase or to one that it begins."""
        row = self.events[index]
        kind = row.rule.event
        if kind in (PASTED, JUMP):
            self.apart = True
            if (phase := self._running(row)) is not None:
                phase.aside.append(index)
        elif self.companion[index]:
            self._companion(index, row)
        elif kind == "step":
            self._step(index, row)
        elif kind == "phase":
            self._phase(row)
        elif kind == "end":
            phase = self._running(row) or self._open(row)
            status = row.texts.get("status", "aborted" if phase.failed_end else "success").lower()
            phase.failed_end = status not in ("success", "ok")
            phase.ended = not phase.failed_end
        elif kind in _SINGLE:
            self._single(row)

    def _single(self, row: Row) -> None:
        """Begin another phase with a single event, or name the running one, to which it then belongs."""
        phase = self._running(row)
        tag = row.rule.phase
        if phase is None or phase.ended or (phase.last is not None and None not in (tag, phase.name) and tag != phase.name):
            phase = self._open(row)
        if tag is not None and phase.name is None:
            phase.name, phase.named = tag, True

    def _phase(self, row: Row) -> None:
        name = row.rule.phase or row.texts.get("phase")
        phase = self._running(row)
        if phase is None or phase.ended or phase.last is not None or (phase.named and phase.name != name):
            phase = self._open(row)
        phase.name, phase.named = name, True

    def _companion(self, index: int, row: Row) -> None:
        """Join a companion to the step record before it; if there is none, it is an event of its own."""
        phase = self._running(row)
        last = None if phase is None or phase.ended else self._last_step(phase, index)
        if last is None:
            self._single(row)
            self.alone.append(index)
        elif not self.apart:
            self._join(np.array([last]), np.array([index]))

    def _step(self, index: int, row: Row) -> None:
        phase = self._running(row)
        tag = row.rule.phase
        self.apart = False
        if phase is None or phase.ended:
            phase = self._open(row)
        elif None not in (tag, phase.name) and tag != phase.name:
            phase = self._open(row) if phase.last is not None or phase.named else phase
            phase.name = tag
        elif (last := self._last_step(phase, index)) is not None and _starts_over(self.events[last], row):
            phase = self._open(row)
        else:
            phase.failed_end = False  # that was the end of an attempt
        if tag is not None and phase.name is None:
            phase.name = tag
        phase.last = index


def _starts_over(last: Row, row: Row) -> bool:
    """Return whether the step goes back and the planned steps change."""
    replanned = row.planned is not None and last.planned is not None and row.planned != last.planned
    return replanned and row.step is not None and last.step is not None and row.step < last.step


def _merge_nameless(phases: list[_Draft], events: EventTable) -> list[_Draft]:
    """Merge nameless phases without steps into a neighbour of the same grammar: the phase before, else the next.

    A phase before takes steps that go on from its own to the plan that it did not reach, too: a program resumed it. It also takes
    a single last record that goes on: it was printed after the end.
    """
    steps, planned = events.steps, events.column("planned")
    kept: list[_Draft] = []
    for number, phase in enumerate(phases):
        if not phase.named and kept and kept[-1].grammar.id == phase.grammar.id:
            before, late = numbers_in(kept[-1].steps), numbers_in(phase.steps)
            goes_on = len(before) > 0 < len(late) and steps[late[0]] > steps[before[-1]]
            every = (planned[np.append(numbers_in(one.steps), one.others)] for one in (kept[-1], phase))
            plan, other = (np.fmax.reduce(plans, initial=0) for plans in every)
            resumed = goes_on and steps[before[-1]] < plan - 1 and plan == other
            if resumed or (goes_on and len(late) == 1 and number == len(phases) - 1):
                kept[-1].steps, kept[-1].resumed = np.append(before, late), bool(resumed)
                phase.steps = slice(0, 0)
        if size_of(phase.steps) or phase.named:
            kept.append(phase)
            continue
        into = kept[-1] if kept and kept[-1].grammar.id == phase.grammar.id else None
        later = phases[number + 1] if number + 1 < len(phases) else None
        if into is None and later is not None and later.grammar.id == phase.grammar.id:
            into = later
            into.first_at = phase.first_at
        if into is None:
            kept.append(phase)
            continue
        into.others = np.sort(np.append(into.others, phase.others))
        into.evals = np.sort(np.append(into.evals, phase.evals))
        into.ended, into.failed_end = into.ended or phase.ended, into.failed_end or phase.failed_end
    return kept


def _resolve(draft: _Draft, events: EventTable, copied: Sequence[int], banners: Sequence[int]) -> Phase:
    """Return the phase of a draft, with its attempts."""
    steps = events.chosen(draft.steps)
    evals, others, aside = (events.chosen(np.array(rows, np.int64)) for rows in (draft.evals, draft.others, draft.aside))
    lines = others.of_sources(lambda source: source.rule.event in ("header", "compile"))
    if not len(steps):
        found = Attempts(steps, np.empty(0, np.int64), np.empty(0, np.bool_), [])
    elif not not_nan(steps.steps).any():
        found = attempts_by_epoch(steps)
    else:
        found = BySteps(steps, np.union1d(lines.at, np.array(banners, np.int64) - 1), copied).found()
    log = found.steps.log
    phase = Phase(
        draft.grammar, draft.name, draft.ended, draft.failed_end, draft.first_at, steps.of(log), _current(evals, found).of(log),
        others.of(log), found.steps, found.begins, found.stands, aside.of(log),
    )  # fmt: skip
    phase.contests = contests_of(phase.steps, found.contests, phase.aside)
    if draft.resumed:
        phase.facts.pop("training_time_s", None)
    return phase


def _current(evals: EventTable, attempts: Attempts) -> EventTable:
    """Return the evaluations that are not superseded by a later attempt, without those printed twice."""
    if not len(evals):
        return evals
    begun = attempts.steps.chosen(attempts.begins[1:])
    epochs = np.where(np.isnan(evals.steps), evals.filled("epoch"), np.nan)
    superseded = _superseded(evals, evals.steps, begun, begun.steps, np.greater)
    superseded |= _superseded(evals, epochs, begun, begun.filled("epoch"), np.greater_equal)
    evals = evals.where(~superseded)
    left: list[int] = []
    seen: dict[tuple[str, int | None], Row] = {}
    for index in _repeated(evals):
        row = evals[index]
        twin = seen.get((row.rule.name, row.step))
        if twin is not None and Additions().same(twin, row) and (row.step is not None or row.rank != twin.rank):
            left.append(index)
        else:
            seen[row.rule.name, row.step] = row
    return evals.where(~np.isin(np.arange(len(evals)), left)) if left else evals


def _superseded(
    evals: EventTable, places: Floats, begun: EventTable, begins: Floats, beyond: Callable[[Floats, Floats], Mask]
) -> Mask:
    """Return the mask of the evaluations that are ``beyond`` the lowest position at which a later attempt begins."""
    known = ~np.isnan(begins)
    lowest = np.append(np.minimum.accumulate(begins[known][::-1])[::-1], np.inf)
    return beyond(places, lowest[np.searchsorted(begun.at[known], evals.at, "right")])


def _repeated(evals: EventTable) -> Iterator[int]:
    """Yield the indexes of the evaluations that share rule and step with another one."""
    if not len(evals):
        return
    names = [*dict.fromkeys(source.rule.name for source in evals.sources)]
    rule = evals.by_source(lambda source: names.index(source.rule.name) if source.rule.name in names else -1)
    steps, unnumbered = evals.steps, np.isnan(evals.steps)
    alone = len(distinct(evals.rank)) < 2  # then evaluations without a step are no copies
    order = np.lexsort((steps, rule))
    same = (steps[order][1:] == steps[order][:-1]) | (unnumbered[order][1:] & unnumbered[order][:-1] & (not alone))
    same &= rule[order][1:] == rule[order][:-1]
    yield from np.sort(order[np.append(same, False) | np.append(False, same)]).tolist()
