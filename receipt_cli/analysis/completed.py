"""Evidence of how the last phase ended → whether the run completed: one table, of which the first row that holds decides."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from receipt_cli.events.banners import is_command
from receipt_cli.events.model import Event
from receipt_cli.events.phases import Phase
from receipt_cli.patterns import compile_later
from receipt_cli.problems import Problem
from receipt_cli.records.envelope import behind_heads, plain

FAR = 0.01
"""The share of a plan that an end line may come before it, if that is more than a logging interval."""
_WORD = compile_later(rb"[A-Za-z_\x80-\xff]{2,}")
_WARNING = compile_later(rb"\wWarning: |\bWARN(?:ING)?\b|^\s{0,20}warnings\.warn\(|^W\d{4} \d\d:")
_BREAK = compile_later(rb"[\r\n]")


class Evidence(NamedTuple):
    """What the log shows of the end of its last phase. ``closing`` is asked only if nothing else decides before."""

    failed: bool
    """A failure convicts the last launch, or its exit code was not zero."""
    reached: bool
    """The last planned step was reached."""
    ended: bool
    """The trainer's own end line is behind the last record."""
    far: bool
    """The last step is far below the plan."""
    stopped_early: bool
    """A stop before the plan is announced behind the last record."""
    short: bool
    """A plan is known, and another record would have come before it is reached."""
    spoken: bool
    """The log has an end line anywhere, or says in known words that it is over."""
    closing: Callable[[], bool]
    """Whether text that the run printed nowhere before follows the last record."""
    unread: bool = False
    """Records that look like training and were not read follow the last record."""


def is_completed(found: Evidence) -> bool | None:
    """Return whether a run completed: the first row of the table that holds decides. None: the log does not tell."""
    if found.failed:
        return False
    if found.reached:
        return True
    if found.ended and not found.far:
        return True
    if ends_before_plan(found):
        return None
    if found.stopped_early:
        return True
    if found.short and not (found.spoken or found.unread or found.closing()):
        return False
    return None


def ends_before_plan(found: Evidence) -> bool:
    """True for an end line far below the plan, as a `finally:` block prints it, without word of an early stop."""
    return found.ended and found.far and not (found.failed or found.reached or found.stopped_early)


class Distance(NamedTuple):
    """How many steps are missing between the last numbered record and the last planned one.

    ``stride`` are the steps from one record to the next. If the numbers ``begin`` with 0 the plan is one more than the last.
    """

    step: int
    planned: int
    missing: int
    stride: int
    begin: int

    @property
    def short(self) -> bool:
        """True if another record would have come before the plan is reached, whichever number the steps begin with."""
        return self.missing >= self.stride + (self.begin > 0)

    @property
    def far(self) -> bool:
        """True if more than a logging interval is missing, and more than 1 % of the plan."""
        return self.missing > max(self.stride, FAR * self.planned)

    def problem(self, line: int) -> Problem:
        """Return the problem of an end line that comes so far before the plan."""
        detail = f"an end line behind step {self.step} of {self.planned}: a run may print it without having done what it planned"
        return Problem("end_before_plan", line, detail, "", (line,), (str(self.step), str(self.planned)), ("/checks/completed",))


def distance(phase: Phase) -> Distance | None:
    """Return how far a phase is from its plan; None if it has no plan, or records without a number."""
    planned = phase.planned
    steps = [event.last_step for event in phase.steps if event.last_step is not None]
    if planned is None or not steps:
        return None if planned is None or phase.steps else Distance(0, planned, planned, 1, 0)
    begin = min(event.step for event in phase.steps if event.step is not None)
    last_at = planned - (begin == 0) + (begin >= 1 and first_epoch(phase))
    strides = [after - before for before, after in pairwise(steps[-3:]) if after > before]
    return Distance(steps[-1], planned, last_at - steps[-1], max(strides, default=1), begin)


def reached_plan(phase: Phase) -> bool:
    """True when the last record is of the last step that was planned."""
    planned, steps = phase.planned, [event for event in phase.steps if event.step is not None]
    last = steps[-1].last_step if steps else None
    if last is None or planned is None or last < planned - 1 or _within_epoch(phase, planned):
        return False
    return last >= planned or not _counts_from_one(steps)


def _counts_from_one(steps: Sequence[Event]) -> bool:
    """True if every step from 1 on has a record: the last step is then that of the plan, and not the one before."""
    last = steps[-1].last_step or 0
    return steps[0].step == 1 and steps[0].rule.counts != "epoch" and sum(event.records for event in steps) == last


def saved_plan(phase: Phase) -> bool:
    """True when a checkpoint behind the last record is of the last step that was planned, as its own line says."""
    planned, last = phase.planned, phase.steps[-1] if phase.steps else None
    if last is None or planned is None or last.rule.counts == "epoch":
        return False
    saved = (e for e in phase.standalone_events if e.rule.event == "checkpoint" and e.at > last.last_at)
    return any(event.step == planned for event in saved)


def first_epoch(phase: Phase) -> int:
    """Return the number of the first epoch where the last record counts by epoch, else 0."""
    last = phase.steps[-1]
    by_epoch = last.rule.counts == "epoch" or (last.counters is not None and "epoch_step" not in last.counters)
    return (last.rule.epochs_from or 0) if by_epoch else 0


def _within_epoch(phase: Phase, planned: int) -> bool:
    """True when the last record counts by epoch and stands in an epoch that goes on, or before the last one."""
    last = phase.steps[-1]
    if last.rule.counts != "epoch" and (last.counters is None or "epoch_step" in last.counters):
        return False
    counters = last.counters or {}
    inside, length = counters.get("epoch_step"), counters.get("epoch_steps")
    early = last.step is not None and last.step < planned - 1 + (last.rule.epochs_from or 0)
    return early or (inside is not None and length is not None and inside < length)


def closes(lines: Mapping[int, bytes], last: int) -> bool:
    """True if a text follows line ``last`` whose words none of ``lines`` has before it, those of both ends of the log by number.

    A line that stops within words known from before is cut; what has no word is no text.
    """
    before = {words for number, line in lines.items() if number <= last for words in _words(line)}
    after = [words for number, line in lines.items() if number > last for words in _words(line)]
    if after and any(b" ".join(known).startswith(b" ".join(after[-1])) for known in before):
        after.pop()
    return any(words not in before for words in after)


def begins_program(lines: Mapping[int, bytes], last: int, until: int) -> bool:
    """True if a program begins behind line ``last`` and before ``until``: by its command, or by the log's first words.

    ``lines`` as for ``closes``. Words that the run repeats are no beginning.
    """
    between = [line for number, line in lines.items() if last < number < until]
    known = [words for number, line in lines.items() if number <= last for words in _words(line)]
    again = bool(known) and known.count(known[0]) < 2 and any(known[0] in _words(line) for line in between)
    return again or any(is_command(line) for line in between)


def _words(text: bytes) -> list[tuple[bytes, ...]]:
    """Return the words of each record of a text that has any, without its heads; a warning says nothing of an end."""
    records = (record for record in _BREAK.split(plain(text + b"\n")) if not _WARNING.search(record))
    return [words for record in records if (words := tuple(_WORD.findall(behind_heads(record))))]
