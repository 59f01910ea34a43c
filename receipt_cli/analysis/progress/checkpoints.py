"""The checkpoints of a phase: saved steps, their durations, and the unsaved rest."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from receipt_cli.analysis.goodput.records import is_time
from receipt_cli.analysis.progress.realised import CLOCK_DIGITS
from receipt_cli.events.model import Event, numbers_of
from receipt_cli.events.phases import Phase
from receipt_cli.events.table import positions
from receipt_cli.patterns import compile_later
from receipt_cli.problems import Problem, pointer

LISTED = 20
"""Most checkpoints in a receipt: the last ones."""
DURATION = "checkpoint_duration_s"


_SAVING = compile_later(
    rb"(?i)\b(?:sav|writ|stor|dump)\w{1,4}\b[^\r\n]{0,80}?(?:checkpoint|ckpt|snapshot|state|weights|model)"
    rb"|(?:checkpoint|ckpt|snapshot)s?\b[^\r\n]{0,40}?\b(?:sav|writ|beg[iu]n|start)"
)
"""A line about writing a checkpoint."""


class Saved(NamedTuple):
    """One checkpoint: its step, its line, and its duration [s]; None: unknown.

    ``step``: printed, else that of the record, evaluation or checkpoint before it. ``duration_s``: printed, else the time
    between the timestamps around it without its steps.
    """

    step: int | None
    line_number: int
    duration_s: float | None


@dataclass(slots=True)
class Checkpoints:
    """The saved steps. ``unsaved_*``: from the last checkpoint to the last step record, which a restart would repeat."""

    count: int
    last_step: int | None
    last_line: int
    duration_s: float | None
    unsaved_step_count: int | None
    unsaved_time_s: float | None
    latest: Sequence[Saved]


def checkpoint_begun(found: Checkpoints, index: int, lines: Mapping[int, bytes], last: int) -> list[Problem]:
    """Return a problem if another checkpoint began after line ``last``, that of the last step record of phase ``index``.

    ``lines`` are the first and the last ones of the run. Whether it was saved, and so what is unsaved, is unknown then.
    """
    begun = [number for number, line in lines.items() if number > last and _SAVING.search(line)][:1]
    detail = "a checkpoint begins after the last step; whether it was saved is unknown"
    names = ("unsaved_step_count", "unsaved_time_s")
    fields = tuple(pointer("phases", index, "summary", "checkpoints", name) for name in names)
    return [Problem("checkpoint_begun", number, detail, "", (number,), (), fields) for number in begun]


def find_checkpoints(phase: Phase, median_step_s: float | None, grain: float | None) -> Checkpoints | None:
    """Return the checkpoints of a phase; None if it reports none.

    ``median_step_s`` [s] and ``grain`` (timestamp resolution [s]) come from the step times; None if unknown. Lines about one
    step with no step record between them belong to one checkpoint.
    """
    lines = sorted((e for e in phase.standalone_events if e.rule.event == "checkpoint"), key=lambda e: e.at)
    if not lines:
        return None
    steps = sorted([*phase.steps, *phase.superseded], key=lambda e: e.at)
    records = _Records(steps)
    evals = _placed_steps([event for event in phase.evals if event.step is not None])
    others = positions(e for e in (*phase.evals, *phase.standalone_events) if e.rule.event != "checkpoint")
    saved: list[Saved] = []
    before: tuple[int, int | None] | None = None
    named: Event | None = None  # a line without a step belongs to the checkpoint before it if no record lies between
    for event in lines:
        last = records.before(event.at)
        named = event if event.step is not None else named
        since = named is not None and (last is None or named.at > last.at)
        step, previous = _step(named if named is not None and since else event, last, evals), before
        before = -1 if last is None else last.at, step
        seconds = event.metrics.get(DURATION)
        one = Saved(step, event.line, seconds if is_time(seconds) else None)
        if saved and previous == before:
            saved[-1] = saved[-1]._replace(duration_s=saved[-1].duration_s if one.duration_s is None else one.duration_s)
            continue
        if one.duration_s is None and median_step_s is not None and grain is not None and last is not None:
            one = one._replace(duration_s=_inferred(last, records.after(event.at), others, median_step_s, grain))
        saved.append(one)
    return _ledger(saved, lines[-1], steps)


class _Record(NamedTuple):
    """One step record: its position, step and timestamp [s]."""

    at: int
    step: int | None
    clock: float


class _Records:
    """The step records of a phase by position, rows of runs included."""

    def __init__(self, steps: Sequence[Event]) -> None:
        self.steps = steps
        self.places = [event.at for event in steps]
        self.runs: dict[int, tuple[Sequence[int], Sequence[int], Sequence[float]]] = {}

    def before(self, at: int) -> _Record | None:
        """Return the last record before a position; among records that a restart repeats, that of the last event."""
        number = bisect_left(self.places, at) - 1
        if number < 0:
            return None
        return self._inside(number, at, -1) or self._of(self.steps[number])

    def after(self, at: int) -> _Record | None:
        """Return the first record at or after a position; None if there is none, or if it belongs to a restart."""
        number = bisect_left(self.places, at)
        following = self._of(self.steps[number]) if number < len(self.steps) else None
        inside = self._inside(number - 1, at, 0) if number else None
        if inside is None or following is None or inside.at < following.at:
            return inside or following
        return None

    def _of(self, event: Event) -> _Record:
        return _Record(event.at, event.step, event.clock)

    def _inside(self, number: int, at: int, offset: int) -> _Record | None:
        """Return the first record of an event's run at or after ``at``, or with ``offset`` -1 the one before it."""
        run = self.steps[number].run
        if run is None:
            return None
        if number not in self.runs:
            self.runs[number] = run.at.data, run.steps.data, run.clock.data
        places, steps, clocks = self.runs[number]
        index = bisect_left(places, at) + offset
        return _Record(places[index], steps[index] if len(steps) else None, clocks[index]) if 0 <= index < len(places) else None


def _placed_steps(evals: Sequence[Event]) -> tuple[Sequence[int], Sequence[int]]:
    """Return the positions of evaluations with a step, ascending, and their steps."""
    if all(event.run is None for event in evals):
        pairs = sorted((event.at, event.step or 0) for event in evals)
        return [at for at, _ in pairs], [step for _, step in pairs]
    places = numbers_of(evals, lambda event: event.at, lambda run: run.at)
    order = places.argsort(kind="stable")
    return places[order].data, numbers_of(evals, lambda event: event.step or 0, lambda run: run.steps)[order].data


def _step(event: Event, before: _Record | None, evals: tuple[Sequence[int], Sequence[int]]) -> int | None:
    """Return the step of a checkpoint: printed, else that of the record or evaluation before its line."""
    if event.step is not None:
        return event.step
    at, step = (0, None) if before is None else before[:2]
    places, steps = evals
    last = bisect_left(places, event.at) - 1
    return steps[last] if last >= 0 and places[last] > at else step


def _inferred(before: _Record, after: _Record | None, others: Sequence[int], median_step_s: float, grain: float) -> float | None:
    """Return the time between the records around a checkpoint minus that of their steps [s].

    None if another event, at one of the positions ``others``, lies between, or if the timestamps are too coarse.
    """
    if after is None or before.step is None or after.step is None or after.step <= before.step:
        return None
    if bisect_right(others, before.at) < bisect_left(others, after.at):
        return None
    seconds = after.clock - before.clock - median_step_s * (after.step - before.step)
    return None if math.isnan(seconds) or seconds < 2 * grain else round(seconds, CLOCK_DIGITS)


def _ledger(saved: Sequence[Saved], last: Event, steps: Sequence[Event]) -> Checkpoints:
    known = [one.duration_s for one in saved if one.duration_s is not None]
    whole = math.fsum(known) if len(known) == len(saved) else None
    at_end = steps[-1] if steps else None
    steps_since = time_since = None
    if at_end is not None and at_end.last_step is not None and saved[-1].step is not None:
        steps_since = max(0, at_end.last_step - saved[-1].step)
    if at_end is not None and not math.isnan(at_end.last_clock) and not math.isnan(last.clock):
        time_since = max(0.0, round(at_end.last_clock - last.clock, CLOCK_DIGITS))
    return Checkpoints(len(saved), saved[-1].step, last.line, whole, steps_since, time_since, saved[-LISTED:])
