"""Compute for one phase the time of the steps that stand, and the time that each class of lost time took."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from receipt_cli.analysis.goodput.model import Stall, Tally, is_doubtful
from receipt_cli.analysis.goodput.steps import (
    LONG,
    Mark,
    Silence,
    find_pace,
    find_silences,
    is_credible,
    marks_of,
    ordinary,
    place,
    printed_times,
    settle,
)
from receipt_cli.analysis.records import DATA, DISPATCH, TIME, Records, is_time
from receipt_cli.analysis.summary import TRAINING_ONLY, Summary
from receipt_cli.events.phases import Phase
from receipt_cli.events.table import NO_STEP, Row
from receipt_cli.numeric.array_types import Floats, Integers, Mask
from receipt_cli.numeric.spill import picked
from receipt_cli.scan.arrivals import Samples

TIMED = ("step_times", "trainer_total")
"""Evidence of step times without the wait for samples from inference: trainers print that wait beside the step."""
RATIOS = ("dispatch_wait_ratio", "data_time_ratio", "generation_time_ratio")
TOLD = 0.9
"""Share of the printed step times that a total beside them must reach: some totals leave out the first ten steps."""
UNDER = 0.1
"""Greatest share of their usual time by which the steps after evaluations may be quicker."""
DOWN = 3600.0
"""Seconds between two attempts beyond which the job was down, unless a line says when it began: starts take minutes."""


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
    stalls: Sequence[Stall] | None = None
    gaps: int = 0
    quiet: Quiet | None = None

    @classmethod
    def known(cls, seconds: float, evidence: str = "") -> Work:
        """Return work with its seconds as both bounds."""
        return cls(seconds, evidence, seconds, seconds)

    def less(self, seconds: float, *, doubtful: bool = False) -> Work:
        """Return the work without some seconds; if they are ``doubtful``, they stay in the upper bound.
        A lower bound with another evidence than the seconds is kept."""
        least = self.least if self.least is None or self.least < self.seconds else self.least - seconds
        return self._replace(seconds=self.seconds - seconds, least=least, most=self.most - (0.0 if doubtful else seconds))


class Begin(NamedTuple):
    """The beginning of a phase: its events count from position ``start`` in the log on; ``clock`` is a stamp, NaN if unknown.
    ``led``: a line before the first record has this stamp; ``bound``: the wall time begins with it. It ends at ``last_line``.
    ``loop``: the stamp of the line with which the training loop begins, NaN if unknown. ``worked``: unread lines show other work
    between the last step and the last mark."""

    start: int
    clock: float = math.nan
    led: bool = False
    bound: bool = False
    last_line: int | None = None
    loop: float = math.nan
    worked: bool = False


class PhaseTime:
    """Divides the time of one phase: ``work`` returns that of the steps, and adds the lost time to the tally."""

    def __init__(self, phase: Phase, summary: Summary, begin: Begin, grain: float, tally: Tally) -> None:
        """``grain``: seconds by which stamps may be off, NaN if they prove nothing."""
        self.phase, self.summary, self.begin, self.grain, self.tally = phase, summary, begin, grain, tally
        self.records = records = Records(phase.every, phase.begins, phase.begins + np.diff(phase.bounds))
        self.marks = marks_of(phase, begin.start)
        self.placed = place(self.marks, records)
        self.stalls: list[Silence] | None = None
        self.late: list[Silence] = []
        self.wasted_rooms: list[float | None] = []
        """The time beyond the steps of each gap from a record that stands to one that was superseded."""
        statistic, stamped = summary.metrics.get(TIME), not math.isnan(grain)
        waiting = summary.metrics[DATA].median if DATA in summary.metrics else None
        self.times = printed_times(records, statistic, waiting, self.placed)
        if self.times is not None and statistic is not None and stamped:
            credible = is_credible(records, grain, statistic.definition, self.times.median)
            self.times = self.times if credible else None
        self.pace = find_pace(records, self.placed, grain) if self.times is None and stamped else None
        self.each = self.times.median if self.times is not None else self.pace or 0.0
        self.usual = ordinary(records, self.each, self.times)
        self.stamped = stamped and (self.times is not None or self.pace is not None)

    def work(self, samples: Samples | None) -> Work | None:
        """Return the time of the steps, 0 seconds for a phase without steps; None if its steps have no time.
        ``samples`` are of its GPUs, by the clock of its stamps."""
        records = self.records
        if not records.count:
            self._after_last(None, self.marks, 0.0)
            return self._loop() if self.phase.fact("training_time_s") is not None else Work.known(0.0)
        self.stalls = self._stalls() if self.stamped else None
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
        found = self._without_waiting(work)
        quiet = None if samples is None else self._quiet(samples, work, work.seconds - found.seconds)
        lines = records.line
        stalls = None if self.stalls is None else [Stall(int(lines[s.at - 1]), int(lines[s.at]), s.seconds) for s in self.stalls]
        return found._replace(stalls=stalls, gaps=records.gaps, quiet=quiet)

    def _quiet(self, samples: Samples, work: Work, waited: float) -> Quiet | None:
        """Return the steps in which no GPU did anything; None if the time of the steps is not that between the records.

        Only gaps with nothing but steps count: evaluations, checkpoints, stalls and warm-ups have classes of their own. So have
        the ``waited`` seconds of waiting for data.
        """
        records, clock = self.records, self.records.clock
        if work.evidence not in ("step_times", "log_timestamps") or math.isnan(self.grain):
            return None
        held = [one.at for one in (*(self.stalls or ()), *self.late)]
        extra = () if self.times is None else self.times.at
        at = np.setdiff1d(np.arange(1, records.count), [*records.starts, *self.placed.at, *extra, *held])
        at = at[records.stands(at) & ~np.isnan(clock[at] - clock[at - 1])]
        if not len(at):
            return None
        spans = clock[at] - clock[at - 1]
        beside = np.maximum(0.0, spans - self.usual[at]) if self.times is not None else np.zeros(len(at))
        sampled, idle = samples.within(clock[at - 1], clock[at])
        lost = np.maximum(0.0, idle - beside)
        seconds = max(0.0, math.fsum(lost.tolist()) - waited)
        whole, known = math.fsum(spans.tolist()), math.fsum(sampled.tolist())
        return Quiet(seconds, int(np.count_nonzero(lost)), known, whole, float(clock[at[0] - 1]), float(clock[at[-1]]))

    # --- between the records ---------------------------------------------------------------------------------------

    def _stalls(self) -> list[Silence]:
        """Return the stalls between the records.

        If an evaluation or a checkpoint is reported after the next record, a stall before that record is its time, printed late.
        """
        kept: list[Silence] = []
        printed = self.times is not None and not self.times.averaged
        for found in find_silences(self.records, self.placed, self.grain, self.usual, printed=printed):
            names = self._reported(found.at + 1)
            if len(names) == 1:
                self.tally.add(names.pop(), found.seconds, measured=False, count=0)
                self.late.append(found)
            else:
                kept.append(found)
        return kept

    def _reported(self, record: int) -> set[str]:
        """Return the classes of the marks before a record if only steps fit between it and the one before it, and no mark there
        prints a duration."""
        marks = self.placed.before.get(record, ())
        if not marks or record in self.records.starts or any(mark.seconds is not None for mark in marks):
            return set()
        clock, working = self.records.clock, float(self.usual[record])
        prompt = clock[record] - clock[record - 1] - working <= max(2 * self.grain, working)
        return {mark.name for mark in marks} if prompt else set()

    def _gaps(self) -> list[float | None]:
        """Assign the time of gaps to their marks; return the time beyond the steps of each gap between standing records."""
        rooms: list[float | None] = []
        clock = self.records.clock
        attempts = (np.searchsorted(self.records.starts, self.placed.at, "right") - 1).tolist()
        for record, attempt in zip(self.placed.at.tolist(), attempts, strict=True):
            marks = self.placed.before[record]
            if record == self.records.starts[attempt]:
                if record:
                    self._after_last(record - 1, marks, self._unprinted(attempt - 1, marks))
            elif self.pace is None or record <= self.records.standing[attempt]:  # superseded records are wasted as a whole
                start, working = float(clock[record - 1]) if self.stamped else math.nan, float(self.usual[record])
                held = self._held(record, marks)
                end, stalled = float(clock[record]), 0.0
                if self._evals_end and marks[-1].name == "eval" and marks[-1].seconds is None:
                    rest = end - marks[-1].event.clock - working
                    end, working = marks[-1].event.clock, 0.0
                    stalled = rest if rest > (LONG - 1) * float(self.usual[record]) + 2 * self.grain else 0.0
                room = None if held else settle(marks, start, end, working, self.tally, self.grain)
                room = None if room is None else room + stalled
                (rooms if record < self.records.standing[attempt] else self.wasted_rooms).append(room)
        self._after_last(self.records.count - 1, self.placed.after, self._unprinted(-1, self.placed.after))
        return rooms

    @cached_property
    def _evals_end(self) -> bool:
        """Whether the stamps show that evaluations end with their lines, and that steps follow them."""
        records, before = self.records, self.placed.before
        at = [n for n in np.setdiff1d(self.placed.at, records.starts).tolist() if before[n][-1].name == "eval"]
        ends = np.array([before[n][-1].event.clock for n in at])
        took, rest = ends - records.clock[np.array(at, np.int64) - 1], records.clock[at] - ends - self.usual[at]
        return math.fsum(took) > math.fsum(rest) > -UNDER * math.fsum(self.usual[at])

    def _held(self, record: int, marks: Sequence[Mark]) -> bool:
        """If a record has no stamp, add the excess of its printed time to the class of its ``marks``; return whether it did."""
        if self.times is None or not math.isnan(self.records.clock[record]):
            return False
        extra = self.times.extra[(self.times.at == record) & self.times.of_mark].tolist()
        names = {mark.name for mark in marks}
        if not extra or len(names) > 1 or any(mark.seconds is not None for mark in marks):
            return False
        self.tally.add(names.pop(), *extra, measured=False)
        return True

    def _unprinted(self, attempt: int, marks: Sequence[Mark]) -> float:
        """Return the seconds of unprinted steps after an attempt that the first of the ``marks`` after it may include."""
        if not marks:
            return 0.0
        last, stride = int(self.records.step[self.records.stops[attempt] - 1]), int(self.records.strides[attempt])
        if last == NO_STEP or stride <= 1 or (self._evals_end and marks[0].name == "eval"):
            return 0.0
        until = marks[0].event.step if marks[0].event.step is not None else self.phase.planned
        return self.each * (until - last if until is not None and 0 <= until - last < stride else stride - 1)

    def _after_last(self, last: int | None, marks: Sequence[Mark], working: float) -> None:
        until = self.begin.last_line
        marks = [mark for mark in marks if until is None or mark.event.line <= until]
        unread = self.begin.worked and not self.phase.grammar.trainer and not self.phase.evals  # no grammar knows its lines
        if marks and unread and last == self.records.count - 1 and marks[0].seconds is None:
            self.tally.miss(marks[0].name)  # the time before its line may be that of the other work
        elif marks:
            start = math.nan if last is None or math.isnan(self.grain) else float(self.records.clock[last])
            first = marks[0].event.clock - start
            possible = working if math.isnan(first) else max(0.0, min(working, first))
            settle(marks, start, math.inf, possible, self.tally, self.grain)

    # --- before the first record of an attempt ----------------------------------------------------------------------

    @cached_property
    def _begins(self) -> tuple[Floats, Mask]:
        """When each attempt began (float64 [k]; NaN if unknown), and whether a line says so (bool [k]).
        An attempt began with its own first line, else when the attempt before printed its last."""
        records = self.records
        begins = np.append(self.begin.clock, picked(records.clock, records.stops[:-1] - 1))
        said = np.zeros(len(begins), np.bool_)
        lines = self.phase.standalone_events.where(~np.isnan(self.phase.standalone_events.clock))
        told = [(row.at, row.clock, row.rule.event) for row in lines]
        told = sorted([*told, *((at, clock, "header") for at, clock in self.phase.started)])
        places = [at for at, _, _ in told]
        low = np.searchsorted(places, picked(records.at, records.stops[:-1] - 1), "right")
        high = np.searchsorted(places, picked(records.at, records.starts[1:]))
        for number in np.flatnonzero(low < high).tolist():
            between = told[low[number] : high[number]]
            anew = [clock for _, clock, kind in between if kind in ("header", "compile", "phase")]
            ends = [clock for _, clock, kind in between if kind in ("checkpoint", "failure", "end")]
            begins[number + 1] = anew[0] if anew else max([float(begins[number + 1]), *ends])
            said[number + 1] = bool(anew)
        return begins, said

    @cached_property
    def _looped(self) -> float:
        """The seconds from the first line of the training loop to the first record; NaN if unknown or too many for it."""
        seconds, own = float(self.records.clock[0]) - self.begin.loop, float(self.usual[0])
        once = self.times is None and len(self.records.starts) == 1  # a restart prints its banner again
        return seconds if once and own < seconds <= LONG * own + 2 * self.grain else math.nan

    def _initialization(self) -> None:
        begins, said = self._begins
        records, bare = self.records, self.begin.bound and not self.begin.led  # the wall then begins with the first record
        lead, extra = self._leads
        lead = lead + extra
        for mark in self.placed.before.get(0, ()):
            lead[0] += mark.seconds or 0.0
            if mark.seconds is not None and not bare:
                self.tally.add(mark.name, mark.seconds, measured=True)
        seconds = records.clock[records.starts] - begins - lead
        down = ~said & (seconds > DOWN)  # no line says when the job came back
        down[0] = not self.begin.led
        seconds[down] = math.nan
        seconds[0] = seconds[0] if math.isnan(self._looped) else self.begin.loop - begins[0]
        seconds = seconds[1:] if bare else seconds
        if not len(seconds):
            return
        if math.isnan(self.grain) or np.isnan(seconds).any():
            self.tally.miss("initialization")
        else:
            self.tally.add("initialization", *np.maximum(0.0, seconds).tolist(), measured=False, count=len(seconds))

    @cached_property
    def _leads(self) -> tuple[Floats, Floats]:
        """The seconds of the steps of each attempt's first record, and the excess of its printed time over them (float64 [k]),
        without the part of the very first record that lies before the wall time."""
        starts = self.records.starts
        working, extra = self.usual[starts], self._extra(starts)
        if self.begin.bound and not math.isnan(self.records.clock[0]):
            room = max(0.0, float(self.records.clock[0]) - self.begin.clock)
            working[0] = min(float(working[0]), room)
            extra[0] = min(float(extra[0]), room - float(working[0]))
        return working, extra

    def _extra(self, records: Integers) -> Floats:
        """Return the seconds by which the printed time of each of some ``records`` (ascending) exceeds that of its steps."""
        found = np.zeros(len(records))
        if self.times is not None:
            here = np.isin(self.times.at, records)
            found[np.searchsorted(records, self.times.at[here])] = self.times.extra[here]
        return found

    # --- the steps ----------------------------------------------------------------------------------------------------

    def _compilation(self) -> None:
        times = self.times
        if times is None or times.averaged:
            return
        if np.isin(self.records.starts, times.at[times.of_mark]).any():
            self.tally.miss("compilation")  # the first record waited for an evaluation too
        else:
            early = times.extra[~times.of_mark].tolist()
            before = float(self._extra(self.records.starts[:1])[0]) - float(self._leads[1][0])  # the wall time
            self.tally.add("compilation", max(0.0, math.fsum(early) - before), measured=False, count=len(early))

    def _steps(self, rooms: Sequence[float | None]) -> tuple[Work | None, float | None]:
        """Return the seconds in steps that stand, and the seconds in steps that a later attempt repeated; None if unknown."""
        total = self._total()
        by_clock = self._by_clock(rooms)
        wasted = by_clock[1] if by_clock is not None else None if self.times is None else self.times.wasted
        if total is not None:
            return Work.known(total, "trainer_total"), wasted
        if self.times is not None:
            before = float(self.usual[0]) - float(self._leads[0][0])  # the wall time
            return Work.known(max(0.0, self.times.standing - before), "step_times"), wasted
        if by_clock is None:
            return self._loop(), wasted
        work = Work.known(by_clock[0], "log_timestamps")
        found = [one.seconds for one in self.stalls or () if self._stands(one)]
        if is_doubtful(len(found), self.records.gaps):  # slow steps may be among them
            work = work._replace(most=work.most + math.fsum(found))
        return work, wasted

    def _stands(self, silence: Silence) -> bool:
        """Return whether the record after a silence stands."""
        return bool(self.records.stands(np.array([silence.at]))[0])

    def _by_clock(self, rooms: Sequence[float | None]) -> tuple[float, float] | None:
        """Return the seconds between the records that stand, and between the superseded ones, without the time of the marks."""
        if self.pace is None or None in rooms or None in self.wasted_rooms:
            return None
        records, clock = self.records, self.records.clock
        standing = [-room for room in rooms if room is not None]
        wasted = [-room for room in self.wasted_rooms if room is not None]
        for found in (*(self.stalls or ()), *self.late):
            (standing if self._stands(found) else wasted).append(-found.seconds)
        own = self.pace * records.leads
        first, last = picked(clock, records.starts), picked(clock, records.stops - 1)
        since = first - self._begins[0]
        lead = np.maximum(0.0, np.minimum(own, np.where(np.isnan(since), own, since)))
        lead[0] = lead[0] if self.begin.led else 0.0
        lead[0] = lead[0] if math.isnan(self._looped) else self._looped
        stands, over = records.standing > records.starts, records.standing < records.stops
        until = np.where(stands, picked(clock, np.maximum(records.standing - 1, 0)), first)
        standing += [*lead[stands].tolist(), *(until - first)[stands].tolist()]
        wasted += [*lead[~stands].tolist(), *(last - until)[over].tolist()]
        return max(0.0, math.fsum(standing)), max(0.0, math.fsum(wasted))

    @cached_property
    def _said(self) -> Row | None:
        """The line with the trainer's total of its steps, if there is one attempt: else the attempt of the total is unknown."""
        lines = self.phase.standalone_events.of_sources(lambda source: source.speaks) if len(self.records.starts) <= 1 else ()
        return next((row for row in lines if is_time(row.facts.get("training_time_s"))), None)

    def _total(self) -> float | None:
        """Return the total time of all steps [s] as the trainer printed it, at the end or in the last record, else None."""
        if (said := self._said) is not None:
            specs = (spec for spec in said.rule.fields.values() if spec.target == ("fact", "training_time_s"))
            training = next((spec.definition for spec in specs), None) == TRAINING_ONLY
            return float(said.facts["training_time_s"]) if training else None
        elapsed, first = self.summary.metrics.get("elapsed_time_s"), self.records[0].step
        begins = first is not None and first <= max(1, int(self.records.strides[0]))
        if elapsed is None or elapsed.definition != TRAINING_ONLY or not begins or len(self.records.starts) > 1:
            return None
        least = TOLD * self.times.standing if self.times is not None else math.ulp(0.0)
        return elapsed.last if is_time(elapsed.last) and elapsed.last >= least else None

    def _loop(self) -> Work | None:
        """Return the printed time of the training loop without other work in it; None if that is unknown."""
        if (said := self._said) is None:
            return None
        inside = [mark.seconds for mark in self.marks if mark.event.at < said.at]
        if None in inside:
            return None
        most = max(0.0, float(said.facts["training_time_s"]) - math.fsum(seconds or 0.0 for seconds in inside))
        statistic = self.summary.metrics.get(TIME)
        median = statistic.median if statistic is not None else None
        steps = int(self.records.steps_in(self.records.starts, self.records.stops).sum())
        return Work(most, "trainer_loop", min(most, median * steps) if is_time(median) else None, most)

    # --- the wait for data --------------------------------------------------------------------------------------------

    def _without_waiting(self, work: Work) -> Work:
        """Return the work without the wait for data, which is added to the tally.

        A printed step time does not hold the wait for samples from inference: that is lost beside it.
        """
        inside, sampled = self._waited(DATA)
        beside, estimated = self._waited(DISPATCH)
        if beside is not None and work.evidence in TIMED:
            self.tally.add("data_loading", beside, measured=not estimated, count=self.records.count)
            beside = None
        held = [seconds for seconds in (inside, beside) if seconds is not None]
        share = None if held else _share(self.summary)
        if share is not None:
            self.tally.add("data_loading", work.seconds * share, measured=False)
            return work.less(work.seconds * share, doubtful=True)
        if not held:
            return work
        seconds = max(0.0, math.fsum(held) - self._waited_outside())
        if seconds > work.seconds:
            self.tally.miss("data_loading")
            return work._replace(least=None)
        self.tally.add("data_loading", seconds, measured=not (sampled or estimated), count=self.records.count)
        known = work.less(seconds)
        if work.evidence == "trainer_loop" and work.least is not None:  # printed step times hold the wait for data alone
            known = known._replace(least=max(0.0, min(work.least - (inside or 0.0), known.seconds)))
        return known

    def _waited(self, name: str) -> tuple[float | None, bool]:
        """Return the seconds that the standing steps waited, None if unknown, and whether they are an estimate.
        For records without the figure the median counts."""
        statistic, records = self.summary.metrics.get(name), self.records
        if statistic is None or not is_time(statistic.median) or not records.numbered:
            return None, statistic is not None
        stand = records.standing > records.starts
        steps = records.steps_in(records.starts[stand], records.standing[stand]).tolist()
        totals = records.totals(records.starts, records.standing, name, statistic.definition, statistic.median)
        sampled = bool((records.strides > 1).any()) and statistic.definition is None
        seconds = [statistic.median * n if total is None else total for total, n in zip(totals, steps, strict=True)]
        return math.fsum(seconds), sampled or None in totals

    def _waited_outside(self) -> float:
        """Return the seconds that the first record waited for data before the wall time began."""
        whole, waited = float(self.usual[0]), self.records[0].metrics.get(DATA)
        if self.times is None or not is_time(waited) or not whole:
            return 0.0
        return waited * int(self.records.leads[0]) * (whole - float(self._leads[0][0])) / whole


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
