"""Compute for one phase the time of the steps that stand, and the time that each class of lost time took."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from receipt_cli.analysis.goodput.model import Tally
from receipt_cli.analysis.goodput.records import CUMULATIVE, DATA, DISPATCH, TIME, Records, is_time, records_of
from receipt_cli.analysis.goodput.steps import (
    Found,
    Gap,
    Mark,
    Ordinary,
    find_pace,
    find_stalls,
    is_credible,
    is_doubtful,
    marks_of,
    place,
    printed_times,
    settle,
)
from receipt_cli.analysis.summary import TRAINING_ONLY, Summary
from receipt_cli.events.phases import Phase
from receipt_cli.events.table import NO_STEP
from receipt_cli.numeric.array_types import Floats, Mask
from receipt_cli.numeric.statistics import Statistic
from receipt_cli.scan.samples import Samples

TIMED = ("step_times", "trainer_total")
"""Evidence of step times without the wait for samples from inference: trainers print that wait beside the step."""
RATIOS = ("dispatch_wait_ratio", "data_time_ratio", "generation_time_ratio")


class Quiet(NamedTuple):
    """Steps in which no GPU did anything: their seconds, and the number of gaps between records that hold some.
    ``sampled`` of ``whole`` seconds between records were sampled, from ``begin`` to ``end``."""

    seconds: float
    gap_count: int
    sampled: float
    whole: float
    begin: float
    end: float


class Work(NamedTuple):
    """The ``seconds`` in steps that stand, at ``least`` and at ``most``, with their evidence; and the ``stalls`` in the ``gaps``
    (pairs of neighbouring records).

    ``least`` is None without a lower bound, ``stalls`` if the records have no stamps, ``quiet`` if nobody knows when the steps
    ran.
    """

    seconds: float
    evidence: str
    least: float | None = None
    most: float = 0.0
    stalls: Sequence[Found] | None = None
    gaps: int = 0
    quiet: Quiet | None = None

    def known(self) -> Work:
        """Return the work with its seconds as both bounds."""
        return self._replace(least=self.seconds, most=self.seconds)

    def less(self, seconds: float, *, doubtful: bool = False) -> Work:
        """Return the work without some seconds; if they are ``doubtful``, they stay in the upper bound.
        A lower bound with another evidence than the seconds is kept."""
        least = self.least if self.least is None or self.least < self.seconds else self.least - seconds
        return self._replace(seconds=self.seconds - seconds, least=least, most=self.most - (0.0 if doubtful else seconds))


def wait_for_data(work: Work, table: Records, summary: Summary, outside: Callable[[], float], tally: Tally) -> Work:
    """Return the time of the steps without their wait for data, which is added to ``tally``.

    A printed step time does not hold the wait for samples from inference: that is lost beside it. ``outside`` returns the seconds
    of waiting before the wall time.
    """
    inside, sampled = _waited(table, summary, DATA)
    beside, estimated = _waited(table, summary, DISPATCH)
    if beside is not None and work.evidence in TIMED:
        tally.add("data_loading", beside, measured=not estimated, count=table.count)
    held = [s for s in (inside, None if work.evidence in TIMED else beside) if s is not None]
    share = _share(summary) if not held else None
    if share is not None:
        tally.add("data_loading", work.seconds * share, measured=False)
        return work.less(work.seconds * share, doubtful=True)
    if not held:
        return work
    seconds = max(0.0, math.fsum(held) - outside())
    if seconds > work.seconds:
        tally.miss("data_loading")
        return work._replace(least=None)
    tally.add("data_loading", seconds, measured=not (sampled or estimated), count=table.count)
    known = work.less(seconds)
    if work.evidence == "trainer_loop" and work.least is not None:  # from printed step times: they hold the wait for data alone
        known = known._replace(least=max(0.0, min(work.least - (inside or 0.0), known.seconds)))
    return known


def _waited(table: Records, summary: Summary, name: str) -> tuple[float | None, bool]:
    """Return the seconds that the standing steps waited, None if unknown, and whether they are an estimate.
    For records without the figure the median counts."""
    statistic = summary.metrics.get(name)
    if statistic is None:
        return None, False
    if not is_time(statistic.median) or not table.numbered:
        return None, True
    stand = table.standing > table.starts
    steps = table.steps_in(table.starts[stand], table.standing[stand]).tolist()
    totals = table.totals(table.starts, table.standing, name, statistic.definition, statistic.median)
    sampled = bool((table.strides > 1).any()) and statistic.definition is None
    seconds = [statistic.median * n if total is None else total for total, n in zip(totals, steps, strict=True)]
    return math.fsum(seconds), sampled or None in totals


def _share(summary: Summary) -> float | None:
    """Return the share of a step that waits for data or samples, by the medians of the steady state; None if unknown."""
    found = summary.bottleneck
    if found is None or found.verdict not in ("inference", "data"):
        return None
    known = next((found.medians[name] for name in RATIOS if name in found.medians), None)
    if known is not None:
        return min(1.0, known)
    ratio = found.medians.get("infer_over_train_ratio")
    return 1.0 - ratio if ratio is not None and ratio < 1 else None


TOLD = 0.9
"""Share of the printed step times that a total beside them must reach: some totals leave out the first ten steps."""
DOWN = 3600.0
"""Seconds between two attempts beyond which the job was down, unless a line says when it began: starts take minutes."""


class Begin(NamedTuple):
    """The beginning of a phase: its events count from position ``start`` in the log on; ``clock`` is a stamp, NaN if unknown.
    ``led``: a line before the first record has this stamp; ``bound``: the wall time begins with it. It ends at ``last_line``."""

    start: int
    clock: float = math.nan
    led: bool = False
    bound: bool = False
    last_line: int | None = None


class PhaseTime:
    """Divides the time of one phase: ``work`` returns that of the steps, and adds the lost time to the tally."""

    def __init__(self, phase: Phase, summary: Summary, begin: Begin, grain: float, tally: Tally) -> None:
        """``grain``: seconds by which stamps may be off, NaN if they prove nothing."""
        self.phase, self.begin, self.grain, self.tally = phase, begin, grain, tally
        self.statistic: Statistic | None = summary.metrics.get(TIME)
        self.summary = summary
        self.records = records_of(phase)
        self.marks = marks_of(phase, begin.start)
        self.placed = place(self.marks, self.records)
        waiting = summary.metrics[DATA].median if DATA in summary.metrics else None
        self.stalls: list[Found] | None = None
        self.late: list[Found] = []
        self.rooms_superseded: list[float | None] = []
        """The time beyond the steps of each gap from a record that stands to one that was superseded."""
        self.times = printed_times(self.records, self.statistic, waiting, self.placed)
        if self.times is not None and self.statistic is not None and not math.isnan(grain):
            credible = is_credible(self.records, grain, self.statistic.definition, self.times.median)
            self.times = self.times if credible else None
        self.pace = find_pace(self.records, self.placed, grain) if self.times is None and not math.isnan(grain) else None

    def work(self, samples: Samples | None) -> Work | None:
        """Return the time of the steps, 0 seconds for a phase without steps; None if its steps have no time.
        ``samples`` are of its GPUs, by the clock of its stamps."""
        records = self.records
        if not records.count:
            self._after_last(None, self.marks, 0.0)
            return self._loop() if self.phase.fact("training_time_s") is not None else Work(0.0, "").known()
        self.stalls = self._stalls()
        rooms = self._gaps()
        self._initialization()
        self._compilation()
        work, wasted = self._steps(rooms)
        if records.superseded and wasted is not None:
            self.tally.add("wasted_progress", wasted, measured=self.pace is None, count=records.superseded)
        elif not records.superseded and records.numbered:
            self.tally.add("wasted_progress", 0.0, measured=True, count=0)
        else:
            self.tally.miss("wasted_progress")
        if work is None:
            return None
        found = wait_for_data(work, records, self.summary, self._waited_outside, self.tally)
        quiet = None if samples is None else self._quiet(samples, work, work.seconds - found.seconds)
        return found._replace(stalls=self.stalls, gaps=records.gaps, quiet=quiet)

    def _quiet(self, samples: Samples, work: Work, waited: float) -> Quiet | None:
        """Return the steps in which no GPU did anything; None if the time of the steps is not that between the records.

        Only gaps with nothing but steps count: evaluations, checkpoints, stalls and warm-ups have classes of their own. So have
        the ``waited`` seconds of waiting for data.
        """
        records, clock = self.records, self.records.clock
        if work.evidence not in ("step_times", "log_timestamps") or math.isnan(self.grain):
            return None
        held = [one.stall.line_number for one in (*(self.stalls or ()), *self.late)]
        at = np.setdiff1d(np.arange(1, records.count), [*records.starts, *self.placed.at, *self._ordinary.extras.at])
        at = at[records.stands(at) & ~np.isin(records.line[at], held) & ~np.isnan(clock[at] - clock[at - 1])]
        if not len(at):
            return None
        spans = clock[at] - clock[at - 1]
        beside = np.maximum(0.0, spans - self._ordinary.of(records, at)) if self.times is not None else np.zeros(len(at))
        sampled, idle = samples.within(clock[at - 1], clock[at])
        lost = np.maximum(0.0, idle - beside)
        seconds = max(0.0, math.fsum(lost.tolist()) - waited)
        whole, known = math.fsum(spans.tolist()), math.fsum(sampled.tolist())
        return Quiet(seconds, int(np.count_nonzero(lost)), known, whole, float(clock[at[0] - 1]), float(clock[at[-1]]))

    # --- between the records ---------------------------------------------------------------------------------------

    @cached_property
    def _ordinary(self) -> Ordinary:
        """The seconds of the steps that a record covers, without the excess of its printed time."""
        if self.times is None:
            return Ordinary(self.pace or 0.0)
        cumulative = self.statistic is not None and self.statistic.definition in CUMULATIVE
        return Ordinary(self.times.median, not cumulative, self.times.extras)

    def _stalls(self) -> list[Found] | None:
        """Return the stalls between the records, None if these have no stamps.

        If an evaluation or a checkpoint is reported after the next record, a stall before that record is its time, printed late.
        """
        if math.isnan(self.grain) or (self.times is None and self.pace is None):
            return None
        kept: list[Found] = []
        for found in find_stalls(self.records, self.placed, self.grain, self._ordinary):
            names = {mark.name for mark in self.placed.before[found.marked]} if found.marked is not None else set()
            if found.marked is not None and len(names) == 1 and self._prompt(found.marked):
                self.tally.add(names.pop(), found.stall.duration_s, measured=False, count=0)
                self.late.append(found)
            else:
                kept.append(found)
        return kept

    def _prompt(self, record: int) -> bool:
        """Return whether only steps fit between a record and the one before it, and the marks there print no duration."""
        if any(mark.seconds is not None for mark in self.placed.before[record]):
            return False
        clock, working = self.records.clock, self._ordinary.of_one(self.records, record)
        return bool(clock[record] - clock[record - 1] - working <= max(2 * self.grain, working))

    def _gaps(self) -> list[float | None]:
        """Assign the time of gaps to their marks; return the time beyond the steps of each gap between standing records."""
        rooms: list[float | None] = []
        stamped = (self.times is not None or self.pace is not None) and not math.isnan(self.grain)
        clock = self.records.clock
        attempts = (np.searchsorted(self.records.starts, self.placed.at, "right") - 1).tolist()
        for record, attempt in zip(self.placed.at.tolist(), attempts, strict=True):
            marks = self.placed.before[record]
            if record == self.records.starts[attempt]:
                if record:
                    self._after_last(record - 1, marks, self._unprinted(attempt - 1, marks))
            elif self.pace is None or record <= self.records.standing[attempt]:  # superseded records are wasted as a whole
                start = float(clock[record - 1]) if stamped else math.nan
                gap = Gap(marks, start, float(clock[record]), self._ordinary.of_one(self.records, record))
                room = settle(gap, self.tally, self.grain) if not self._held(record, marks) else None
                (rooms if record < self.records.standing[attempt] else self.rooms_superseded).append(room)
        self._after_last(self.records.count - 1, self.placed.after, self._unprinted(-1, self.placed.after))
        return rooms

    def _held(self, record: int, marks: Sequence[Mark]) -> bool:
        """If a record has no stamp, add the excess of its printed time to the class of its ``marks``; return whether it did."""
        if self.times is None or record not in self.times.after_marks.at or not math.isnan(self.records.clock[record]):
            return False
        names = {mark.name for mark in marks}
        if len(names) > 1 or any(mark.seconds is not None for mark in marks):
            return False
        self.tally.add(names.pop(), self.times.after_marks.beyond(record), measured=False)
        return True

    def _unprinted(self, attempt: int, marks: Sequence[Mark]) -> float:
        """Return the seconds of unprinted steps after an attempt that the first of the ``marks`` after it may include."""
        if not marks:
            return 0.0
        last, stride = int(self.records.step[self.records.stops[attempt] - 1]), int(self.records.strides[attempt])
        if last == NO_STEP or stride <= 1:
            return 0.0
        until = marks[0].event.step if marks[0].event.step is not None else self.phase.planned
        return self._ordinary.each * (until - last if until is not None and 0 <= until - last < stride else stride - 1)

    def _after_last(self, last: int | None, marks: Sequence[Mark], working: float) -> None:
        until = self.begin.last_line
        marks = [mark for mark in marks if until is None or mark.event.line <= until]
        if marks:
            start = math.nan if last is None or math.isnan(self.grain) else float(self.records.clock[last])
            first = marks[0].event.clock - start
            possible = working if math.isnan(first) else max(0.0, min(working, first))
            settle(Gap(marks, start, None, possible), self.tally, self.grain)

    # --- before the first record of an attempt ----------------------------------------------------------------------

    @cached_property
    def _begins(self) -> tuple[Floats, Mask]:
        """When each attempt began (float64 [k]; NaN if unknown), and whether a line says so (bool [k]).
        An attempt began with its own first line, else when the attempt before printed its last."""
        records = self.records
        begins = np.append(self.begin.clock, records.clock[records.stops[:-1] - 1])
        said = np.zeros(len(begins), np.bool_)
        lines = self.phase.standalone_events.where(~np.isnan(self.phase.standalone_events.clock))
        told = [(row.at, row.clock, row.rule.event) for row in lines]
        told = sorted([*told, *((at, clock, "header") for at, clock in self.phase.started)])
        places = [at for at, _, _ in told]
        low = np.searchsorted(places, records.at[records.stops[:-1] - 1], "right")
        high = np.searchsorted(places, records.at[records.starts[1:]])
        for number in np.flatnonzero(low < high).tolist():
            between = told[low[number] : high[number]]
            anew = [clock for _, clock, kind in between if kind in ("header", "compile", "phase")]
            ends = [clock for _, clock, kind in between if kind in ("checkpoint", "failure", "end")]
            begins[number + 1] = anew[0] if anew else max([float(begins[number + 1]), *ends])
            said[number + 1] = bool(anew)
        return begins, said

    def _initialization(self) -> None:
        begins, said = self._begins
        working, more, _ = self._leads
        lead = working + more
        for mark in self.placed.before.get(0, ()):
            lead[0] += mark.seconds or 0.0
            if mark.seconds is not None and not (self.begin.bound and not self.begin.led):
                self.tally.add(mark.name, mark.seconds, measured=True)
        seconds = self.records.clock[self.records.starts] - begins - lead
        seconds[0] = seconds[0] if self.begin.led else math.nan
        down = ~said & (seconds > DOWN)  # no line says when the job came back
        down[0] = False
        seconds[down] = math.nan
        seconds = seconds[1:] if self.begin.bound and not self.begin.led else seconds  # the wall begins with the first record
        if not len(seconds):
            return
        if math.isnan(self.grain) or np.isnan(seconds).any():
            self.tally.miss("initialization")
        else:
            self.tally.add("initialization", *np.maximum(0.0, seconds).tolist(), measured=False, count=len(seconds))

    @cached_property
    def _leads(self) -> tuple[Floats, Floats, tuple[float, float]]:
        """The seconds of the steps of each attempt's first record, and the excess of its printed time over them (float64 [k]):
        without the part of the very first record that lies before the wall time, and of that record both as a whole."""
        extras, starts = self._ordinary.extras, self.records.starts
        working, more = self._ordinary.of(self.records, starts), np.zeros(len(starts))
        here = np.isin(extras.at, starts)
        more[np.searchsorted(starts, extras.at[here])] = extras.seconds[here]
        whole = float(working[0]), float(more[0])
        if self.begin.bound and not math.isnan(self.records.clock[0]):
            room = max(0.0, float(self.records.clock[0]) - self.begin.clock)
            working[0] = min(whole[0], room)
            more[0] = min(whole[1], room - float(working[0]))
        return working, more, whole

    def _outside(self, which: int) -> float:
        """Return the seconds that the first record accounts for, but that lie before the measured wall time begins.

        ``which``: 0 for the seconds of its steps, 1 for their excess over later steps.
        """
        return self._leads[2][which] - float(self._leads[which][0])

    # --- the steps ----------------------------------------------------------------------------------------------------

    def _compilation(self) -> None:
        if self.times is None or (self.statistic is not None and self.statistic.definition in CUMULATIVE):
            return
        if np.isin(self.records.starts, self.times.after_marks.at).any():
            self.tally.miss("compilation")  # the first record waited for an evaluation too
        else:
            early = self.times.warmup.seconds
            seconds = max(0.0, math.fsum(early.tolist()) - self._outside(1))
            self.tally.add("compilation", seconds, measured=False, count=len(early))

    def _steps(self, rooms: Sequence[float | None]) -> tuple[Work | None, float | None]:
        """Return the seconds in steps that stand, and the seconds in steps that a later attempt repeated; None if unknown."""
        total = self._total()
        by_clock = self._by_clock(rooms)
        wasted = by_clock[1] if by_clock is not None else None if self.times is None else self.times.wasted
        if total is not None:
            return Work(total, "trainer_total").known(), wasted
        if self.times is not None:
            return Work(max(0.0, self.times.standing - self._outside(0)), "step_times").known(), wasted
        if by_clock is not None:
            return self._doubted(Work(by_clock[0], "log_timestamps").known()), wasted
        return self._loop(), wasted

    def _doubted(self, work: Work) -> Work:
        """Return the work, its stalls added to the upper bound if so many gaps are long that slow steps may be among them."""
        found = [one for one in self.stalls or () if not one.superseded]
        if not is_doubtful(len(found), self.records.gaps):
            return work
        return work._replace(most=work.most + math.fsum(one.stall.duration_s for one in found))

    def _by_clock(self, rooms: Sequence[float | None]) -> tuple[float, float] | None:
        """Return the seconds between the records that stand, and between the superseded ones, without the time of the marks."""
        if self.pace is None or None in rooms or None in self.rooms_superseded:
            return None
        records, clock = self.records, self.records.clock
        standing = [-room for room in rooms if room is not None]
        wasted = [-room for room in self.rooms_superseded if room is not None]
        for found in (*(self.stalls or ()), *self.late):
            (wasted if found.superseded else standing).append(-found.stall.duration_s)
        own = self.pace * records.leads
        first, last = clock[records.starts], clock[records.stops - 1]
        since = first - self._begins[0]
        lead = np.maximum(0.0, np.minimum(own, np.where(np.isnan(since), own, since)))
        lead[0] = lead[0] if self.begin.led else 0.0
        stands, over = records.standing > records.starts, records.standing < records.stops
        until = np.where(stands, clock[np.maximum(records.standing - 1, 0)], first)
        standing += [*lead[stands].tolist(), *(until - first)[stands].tolist()]
        wasted += [*lead[~stands].tolist(), *(last - until)[over].tolist()]
        return max(0.0, math.fsum(standing)), max(0.0, math.fsum(wasted))

    def _total(self) -> float | None:
        """Return the trainer's own total of its steps, printed at the end or in the last record; None if there is none."""
        if len(self.records.starts) > 1:
            return None  # the attempt of the total is unknown
        for event in self.phase.standalone_events:
            value = event.facts.get("training_time_s")
            if is_time(value):
                specs = (spec for spec in event.rule.fields.values() if spec.target == ("fact", "training_time_s"))
                return value if next((spec.definition for spec in specs), None) == TRAINING_ONLY else None
        elapsed, first = self.summary.metrics.get("elapsed_time_s"), self.records[0].step
        begins = first is not None and first <= max(1, int(self.records.strides[0]))
        if elapsed is None or elapsed.definition != TRAINING_ONLY or not begins:
            return None
        least = TOLD * self.times.standing if self.times is not None else math.ulp(0.0)
        return elapsed.last if is_time(elapsed.last) and elapsed.last >= least else None

    def _loop(self) -> Work | None:
        """Return the printed time of the training loop without other work in it; None if that is unknown."""
        value, records = self.phase.fact("training_time_s"), self.records
        if len(records.starts) > 1 or not is_time(value):
            return None
        end = next(event for event in self.phase.standalone_events if "training_time_s" in event.facts)
        inside = [mark for mark in self.marks if mark.event.at < end.at]
        if any(mark.seconds is None for mark in inside):
            return None
        most = max(0.0, value - math.fsum(mark.seconds or 0.0 for mark in inside))
        median = self.statistic.median if self.statistic is not None else None
        steps = int(records.steps_in(records.starts, records.stops).sum())
        least = min(most, median * steps) if is_time(median) else None
        return Work(most, "trainer_loop", least, most)

    def _waited_outside(self) -> float:
        """Return the seconds that the first record waited for data before the wall time began."""
        whole, waited = self._leads[2][0], self.records[0].metrics.get(DATA)
        if self.times is None or not is_time(waited) or not whole:
            return 0.0
        return waited * int(self.records.leads[0]) * self._outside(0) / whole
