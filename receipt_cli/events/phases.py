"""Split events in log order into phases, and each phase into the attempts that restarts make.

A phase ends where the trainer prints its end, where another trainer or another stage begins, or where the step counter
starts again with another plan. A step counter that goes back inside a phase starts a new attempt; the later attempt's
records are retained.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, chain, pairwise

from receipt_cli.events.counters import (
    JUMP,
    PASTED,
    Contest,
    add_unnumbered,
    attempts_by_epoch,
    contests_of,
    contradict,
    ends_twice,
    is_skipped,
)
from receipt_cli.events.model import Event, Relay, cut, first_records, in_order, is_relay, resolve
from receipt_cli.grammar.model import Grammar
from receipt_cli.scan.segment import count_between

LATE_RECORDS = 4
"""How many records back a second line about a step still belongs to it."""
LOOKED_BACK = 64
"""Records at the end whose strides show whether the last counter is one of them."""


@dataclass(slots=True)
class Phase:
    """One stage of training, in log order.

    ``steps`` are the retained records; ``attempts`` those that each attempt contributes, or all attempts of one of the
    ``relays`` together; ``superseded`` the records that a later attempt repeats.
    """

    grammar: Grammar
    name: str | None = None
    named: bool = False
    ended: bool = False
    failed_end: bool = False
    first_at: int = 0
    step_events: list[Event] = field(default_factory=list)
    evals: list[Event] = field(default_factory=list)
    standalone_events: list[Event] = field(default_factory=list)
    attempts: list[list[Event]] = field(default_factory=list)
    superseded: list[Event] = field(default_factory=list)
    relays: list[Relay] = field(default_factory=list)
    aside: list[Event] = field(default_factory=list)
    """Records whose counter goes back for a while, or far ahead (see ``counters.set_aside``)."""
    contests: list[Contest] = field(default_factory=list)
    introductions: Sequence[int] | None = None
    """Where the trainer introduces itself, ascending; found where it is needed."""
    followed: Counter[int | None] | None = None
    """How many records of each step are followed by another one; found where it is needed."""
    again: Counter[int | None] = field(default_factory=Counter)
    """How many of these by one of the same step."""

    @property
    def steps(self) -> list[Event]:
        """The retained step records, in log order; some have a run behind them (see ``Event``)."""
        return [event for attempt in self.attempts for event in attempt]

    @property
    def restarts(self) -> int:
        """How often the step counter went back."""
        inside = sum(len(relay.starts) - relay.empty - 1 for relay in self.relays if relay.retained is not None)
        return max(0, len(self.attempts) - 1) + inside

    @property
    def planned(self) -> int | None:
        """The planned number of steps, as last printed."""
        events = chain(reversed(self.step_events), reversed(self.standalone_events))
        return next((event.planned for event in events if event.planned is not None), None)

    def fact(self, name: str) -> float | str | None:
        """Return what the phase first printed for a fact, or None."""
        return next((event.facts[name] for event in self.standalone_events if name in event.facts), None)


def split_phases(events: Iterable[Event], copied: Sequence[int] = ()) -> list[Phase]:
    """Return the phases of a log, each with its attempts resolved; lines that are ``copied`` are not between others."""
    sweep = _Sweep()
    for event in events:
        sweep.add(event)
    phases = _merge_nameless(sweep.phases)
    for phase in phases:
        _resolve(phase, copied)
    return phases


def first_facts(phases: Sequence[Phase]) -> dict[str, tuple[float | str, int]]:
    """Return what phases first printed for each fact, with the line."""
    facts: dict[str, tuple[float | str, int]] = {}
    if phases:
        lines = [e.line for e in (*phases[0].step_events, *phases[0].evals, *phases[0].standalone_events)]
        if phases[0].grammar.trainer:
            facts["trainer"] = (phases[0].grammar.trainer, min(lines))
    events = sorted((e for p in phases for e in p.standalone_events), key=lambda e: e.at)
    for event in events:
        for name, value in event.facts.items():
            facts.setdefault(name, (value, event.line))
    if "trainer_name" in facts:
        facts["trainer"] = facts["trainer_name"]
    return facts


def last_steps(phase: Phase) -> tuple[list[int], Event | None]:
    """Return the steps of the last records of the last attempt that have one, and the last of these records."""
    numbered = [event for event in phase.attempts[-1] if event.step is not None] if phase.attempts else []
    steps: list[int] = []
    for event in numbered[: -LOOKED_BACK - 1 : -1]:
        steps = [event.step or 0, *(event.run.steps[-LOOKED_BACK:].tolist() if event.run is not None else ()), *steps]
    last = numbered[-1] if numbered else None
    return steps[-LOOKED_BACK:], None if last is None or is_relay(last) else last


class _Sweep:
    def __init__(self) -> None:
        self.phases: list[Phase] = []
        self.apart = False  # the last record is set aside, and so are its companions

    def open(self, event: Event) -> Phase:
        phase = Phase(event.grammar, first_at=event.at)
        self.phases.append(phase)
        return phase

    def add(self, event: Event) -> None:
        kind = event.rule.event
        if kind in (PASTED, JUMP):
            self.apart = True
            if (phase := self.running(event)) is not None:
                phase.aside.append(event)
        elif kind == "step" and event.rule.companion:
            self.companion(event)
        elif kind == "step":
            self.step(event)
        elif kind == "phase":
            self.phase(event)
        elif kind == "end":
            phase = self.running(event) or self.open(event)
            phase.standalone_events.append(event)
            status = event.texts.get("status", "aborted" if phase.failed_end else "success").lower()
            phase.failed_end = status not in ("success", "ok")
            phase.ended = not phase.failed_end
        elif kind == "eval":
            self.single(event).evals.append(event)
        elif kind in ("header", "checkpoint", "compile", "failure"):
            self.single(event).standalone_events.append(event)

    def running(self, event: Event) -> Phase | None:
        """Return the last phase, if it is of the event's trainer."""
        return self.phases[-1] if self.phases and self.phases[-1].grammar.id == event.grammar.id else None

    def single(self, event: Event) -> Phase:
        """Return the phase that a single event belongs to: the running one, or the one that it begins."""
        phase = self.running(event)
        tag = event.rule.phase
        if phase is None or phase.ended or (phase.step_events and None not in (tag, phase.name) and tag != phase.name):
            phase = self.open(event)
        elif event.rule.event == "header" and phase.step_events and _other_model(phase, event):
            return self.open(event)
        if tag is not None and phase.name is None:
            phase.name, phase.named = tag, True
        return phase

    def phase(self, event: Event) -> None:
        name = event.rule.phase or event.texts.get("phase")
        phase = self.running(event)
        if phase is None or phase.ended or phase.step_events or (phase.named and phase.name != name):
            phase = self.open(event)
        phase.name, phase.named = name, True
        phase.standalone_events.append(event)

    def companion(self, event: Event) -> None:
        """Add the values of a line without a step to the record before it; before any record it stays an event of its own."""
        phase = self.running(event)
        last = phase.step_events[-1] if phase is not None and phase.step_events and not phase.ended else None
        if last is None:
            self.single(event).standalone_events.append(event)
        elif self.apart:
            return
        elif event.rule.name not in last.rules:
            last.join(event)

    def step(self, event: Event) -> None:
        phase = self.running(event)
        tag = event.rule.phase
        self.apart = False
        if phase is None or phase.ended:
            phase = self.open(event)
        elif None not in (tag, phase.name) and tag != phase.name:
            phase = self.open(event) if phase.step_events or phase.named else phase
            phase.name = tag
        elif phase.step_events and _starts_over(phase.step_events[-1], event):
            phase = self.open(event)
        else:
            phase.failed_end = False  # that was the end of an attempt
        if tag is not None and phase.name is None:
            phase.name = tag
        phase.step_events.append(event)


def _starts_over(last: Event, event: Event) -> bool:
    """True for a record of another plan that begins again."""
    replanned = event.planned is not None and last.planned is not None and event.planned != last.planned
    return replanned and event.step is not None and last.last_step is not None and event.step < last.last_step


def _other_model(phase: Phase, event: Event) -> bool:
    count = event.facts.get("parameter_count")
    known = phase.fact("parameter_count") if count is not None else None
    return known is not None and count != known


def _merge_nameless(phases: list[Phase]) -> list[Phase]:
    """Fold nameless phases without steps into their neighbour of the same grammar: the one before, else the next."""
    kept: list[Phase] = []
    for number, phase in enumerate(phases):
        if phase.step_events or phase.named:
            kept.append(phase)
            continue
        into = kept[-1] if kept and kept[-1].grammar.id == phase.grammar.id else None
        later = phases[number + 1] if number + 1 < len(phases) else None
        if into is not None:
            into.standalone_events += phase.standalone_events
            into.evals += phase.evals
        elif later is not None and later.grammar.id == phase.grammar.id:
            into = later
            into.standalone_events[:0] = phase.standalone_events
            into.evals[:0] = phase.evals
            into.first_at = phase.first_at
        else:
            kept.append(phase)
            continue
        into.ended, into.failed_end = into.ended or phase.ended, into.failed_end or phase.failed_end
    return kept


def _resolve(phase: Phase, copied: Sequence[int]) -> None:
    """Collapse redraws and duplicates, join companion lines of one step, split attempts, drop superseded records."""
    if all(event.step is None for event in phase.step_events):
        phase.attempts, phase.superseded, contests = attempts_by_epoch(phase.step_events)
        phase.contests = contests_of(phase.steps, contests, phase.aside)
        phase.evals = _current_evals(phase, phase.attempts)
        return
    attempts: list[list[Event]] = []
    numbered: Event | None = None  # the last record of the running attempt that has a step
    behind = False
    for event in phase.step_events:
        relay, behind = behind, is_relay(event)
        if not attempts or relay or behind:
            attempts.append([event])  # a relay begins and ends where steps go back
        elif event.step is None or numbered is None or numbered.step is None:
            add_unnumbered(attempts[-1], event)
        elif event.step == numbered.step:
            _same_step(phase, attempts, numbered, event, copied)
        elif event.step > numbered.step:
            attempts[-1].append(event)
        elif late := [e for e in attempts[-1][-LATE_RECORDS:] if e.step == event.step and event.rule.name not in e.rules]:
            late[0].join(event)  # another kind of line describes it after the next step began
        else:
            attempts.append([event])
        if attempts[-1][-1].step is not None:
            numbered = attempts[-1][-1]
    limit: float = math.inf
    resolved: list[list[Event]] = []
    for attempt in reversed(attempts):
        if is_relay(attempt[0]):
            parted, lowest = resolve(attempt[0], limit)
            phase.relays.append(parted)
            resolved += [[]] * parted.empty + [[one] for one in (parted.retained,) if one is not None]
            phase.superseded += [one for one in (parted.overtaken,) if one is not None]
            limit = min(limit, lowest)
            continue
        retained, superseded = _split_superseded(attempt, limit)
        resolved.append(retained)
        phase.superseded.extend(superseded)
        limit = min([limit, *(e.step for e in attempt if e.step is not None)])
    phase.attempts = resolved[::-1]
    phase.contests = contests_of(phase.steps, phase.contests, phase.aside)
    phase.evals = _current_evals(phase, attempts)


def _split_superseded(attempt: list[Event], limit: float) -> tuple[list[Event], list[Event]]:
    """Return the retained records of an attempt, and those from ``limit`` on, which a later attempt superseded."""
    parts = [part for event in attempt for part in cut(event, limit)] if limit < math.inf else attempt
    retained = [e for e in parts if e.step is None or e.step < limit]
    return retained, [e for e in parts if e.step is not None and e.step >= limit]


def _same_step(phase: Phase, attempts: list[list[Event]], last: Event, event: Event, copied: Sequence[int]) -> None:
    if event.rule.name not in last.rules:  # another line about the same step
        last.join(event)
    elif event.rule.redraw and not ends_twice(last, event):
        last.metrics, last.unregistered = {**last.metrics, **event.metrics}, {**last.unregistered, **event.unregistered}
        last.at, last.line, last.counters, last.run = event.at, event.line, event.counters, event.run
    elif event.same_values(last) or event.rank != last.rank or (_complete(last, event) and not _began_anew(phase, last, event)):
        last.fill(event)  # a companion line follows the last copy
    elif (
        len(last.rules) == 1
        and not is_skipped(last, event)
        and (_began_anew(phase, last, event) or _starts_again(phase, attempts[-1], last, event, copied))
    ):
        attempts.append([event])
    elif event.rule.redraw or contradict(last, event):
        phase.contests.append(Contest(last, event))
    else:
        last.fill(event)


def _complete(last: Event, event: Event) -> bool:
    """True where two records of one step print no figure in common: a second line goes on about the step."""
    printed = [{*one.metrics, *one.unregistered} - {"epoch"} for one in (last, event)]
    return all(printed) and printed[0].isdisjoint(printed[1])


def _began_anew(phase: Phase, last: Event, event: Event) -> bool:
    """True when the trainer introduced itself again between two records of one step: a restart, not another rank."""
    if phase.introductions is None:
        phase.introductions = sorted(each.at for each in phase.standalone_events if each.rule.event in ("header", "compile"))
    return bisect_right(phase.introductions, last.at) < bisect_left(phase.introductions, event.at)


def _starts_again(phase: Phase, attempt: list[Event], last: Event, event: Event, copied: Sequence[int]) -> bool:
    """True when only the first step of an attempt is printed once more, with other values and behind other lines.

    Where the other steps too are printed several times in a row, several processes print them.
    """
    line = phase.contests[-1].other.line if phase.contests and phase.contests[-1].stands is last else last.line
    between = event.line - line - count_between(copied, line, event.line)
    if len(attempt) > 1 or last.run is not None or between < 2:
        return False
    if phase.followed is None:
        runs = [event.run for event in phase.step_events if event.run is not None]
        phase.followed = Counter(event.step for event in phase.step_events)
        phase.followed.update(step for run in runs for step in (*run.steps[:-1].tolist(), run.last))
        phase.followed[phase.step_events[-1].last_step] -= 1
        phase.again = Counter(a.last_step for a, b in pairwise(phase.step_events) if a.last_step == b.step)
    others = phase.followed.total() - phase.followed[last.step]
    return not others or 2 * (phase.again.total() - phase.again[last.step]) < others


def _current_evals(phase: Phase, attempts: list[list[Event]]) -> list[Event]:
    """Leave out evaluations printed twice, and those of steps that a later attempt superseded."""
    begun = [a[0] for a in attempts[1:] if a and a[0].step is not None] if phase.evals else []
    starts = [start for one in begun for start in (first_records(one) if is_relay(one) else [(one.at, one.step or 0)])]
    starts.sort()
    places = [at for at, _ in starts]
    lowest = [*accumulate((step for _, step in reversed(starts)), min)][::-1]
    current: list[Event] = []
    for event in phase.evals:  # up to the lowest step from which an attempt behind them began, if there is one
        index = bisect_right(places, event.at)
        if event.step is None or index == len(lowest):
            current.append(event)
        else:
            current += [part for part in cut(event, lowest[index] + 1) if (part.step or 0) <= lowest[index]]
    kept: list[Event] = []
    seen: dict[tuple[str, int | None], Event] = {}
    for event in in_order(current) if _go_back(current) else current:
        twin = seen.get((event.rule.name, event.step))
        if twin is not None and twin.same_values(event) and (event.step is not None or event.rank != twin.rank):
            continue
        seen[event.rule.name, event.step] = event
        kept.append(event)
    return kept


def _go_back(evals: Sequence[Event]) -> bool:
    """True where evaluations with a run are not all of later steps than those of their rule before: some may be printed twice."""
    last: dict[str, int] = {}
    numbered = [event for event in evals if event.step is not None]
    if all(event.run is None for event in numbered):
        return False
    for event in numbered:
        if event.step is not None and event.step <= last.get(event.rule.name, event.step - 1):
            return True
        last[event.rule.name] = event.last_step or 0
    return False
