"""One phase → the time of its steps that stand, and what each class of lost time took of it."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from receipt_cli.analysis.goodput.attempts import CUMULATIVE, DATA, TIME, Try, covered, is_time, last_clock, steps_in
from receipt_cli.analysis.goodput.legs import Tries
from receipt_cli.analysis.goodput.marked import place
from receipt_cli.analysis.goodput.pace import find_pace
from receipt_cli.analysis.goodput.pauses import Gap, Mark, marks_of, settle
from receipt_cli.analysis.goodput.stalls import Found, Ordinary, count_gaps, find_stalls, is_doubtful
from receipt_cli.analysis.goodput.steptime import Extra, is_credible, printed_times
from receipt_cli.analysis.goodput.totals import Tally
from receipt_cli.analysis.goodput.tries import attempts_of
from receipt_cli.analysis.goodput.waits import Work, wait_for_data
from receipt_cli.analysis.summary import TRAINING_ONLY, Summary
from receipt_cli.events.model import Event
from receipt_cli.events.phases import Phase
from receipt_cli.numeric.statistics import Statistic

TOLD = 0.9
"""Share of the printed step times that a total beside them has to reach: some leave out the first ten steps."""
DOWN = 3600.0
"""Seconds between two attempts from which on the job was down, unless a line says when it began: starts take minutes."""


class Begin(NamedTuple):
    """Where a phase begins: ``start`` is the position from which on its events count, ``clock`` a stamp, NaN where nobody
    knows. ``led`` where a line before its first record has that stamp; ``bound`` where no wall time lies before it.
    Lines behind ``last_line`` are of no wall.
    """

    start: int
    clock: float = math.nan
    led: bool = False
    bound: bool = False
    last_line: int | None = None


def work_of(phase: Phase, summary: Summary, begin: Begin, grain: float, stamped: bool, tally: Tally) -> Work | None:
    """Return the time of the steps of a phase and add what it lost to ``tally``; None where its steps have no time.

    A phase that has no steps has none to time: ``Work`` of 0 seconds. Without ``stamped`` the stamps prove nothing.
    """
    return _Phase(phase, summary, begin, grain if stamped else math.nan, tally).work()


class _Phase:
    def __init__(self, phase: Phase, summary: Summary, begin: Begin, grain: float, tally: Tally) -> None:
        self.phase, self.begin, self.grain, self.tally = phase, begin, grain, tally
        self.statistic: Statistic | None = summary.metrics.get(TIME)
        self.summary = summary
        self.tries = attempts_of(phase)
        self.marks = marks_of(phase, begin.start)
        self.placed = place(self.marks, [event for one in self.tries for event in one.events])
        waiting = summary.metrics[DATA].median if DATA in summary.metrics else None
        self.times = printed_times(self.tries, self.statistic, waiting, self.placed)
        self.extras: dict[int, Extra] = {}
        self.stalls: list[Found] | None = None
        self.late: list[Found] = []
        if self.times is not None and self.statistic is not None:
            if not math.isnan(grain) and not is_credible(self.tries, grain, self.statistic.definition, self.times.median):
                self.times = None
            else:
                self.extras = {id(e.event): e for e in (*self.times.warmup, *self.times.behind)}

    @property
    def _first(self) -> Try:
        """The first attempt, which is in no relay."""
        one = self.tries[0]
        assert isinstance(one, Try)
        return one

    def work(self) -> Work | None:
        """Return the time of the steps; see ``work_of``."""
        if not self.tries:
            self._behind_last(None, self.marks, 0.0)
            return self._loop() if self.phase.fact("training_time_s") is not None else Work(0.0, "").known()
        pace = find_pace(self.tries, self.placed, self.grain) if self.times is None and not math.isnan(self.grain) else None
        self.stalls = self._stalls(pace)
        rooms = self._gaps(pace)
        self._initialization(pace)
        self._compilation()
        work, wasted = self._steps(pace, rooms)
        overtaken = sum(one.overtaken for one in self.tries)
        if overtaken:
            if wasted is None:
                self.tally.miss("wasted_progress")
            else:
                self.tally.add("wasted_progress", wasted, measured=pace is None, count=overtaken)
        elif all(event.step is not None for one in self.tries for event in one.events):
            self.tally.add("wasted_progress", 0.0, measured=True, count=0)
        else:
            self.tally.miss("wasted_progress")
        return (
            None
            if work is None
            else wait_for_data(work, self.tries, self.summary, self._waited_outside, self.tally)._replace(
                stalls=self.stalls, gaps=count_gaps(self.tries)
            )
        )

    # --- between the records ---------------------------------------------------------------------------------------

    def _ordinary(self, pace: float | None) -> Ordinary:
        if self.times is None:
            return Ordinary(pace or 0.0)
        cumulative = self.statistic is not None and self.statistic.definition in CUMULATIVE
        return Ordinary(self.times.median, not cumulative, self.extras, self.times.legs)

    def _working(self, event: Event, cover: int, pace: float | None) -> float:
        """Return the seconds of the steps that a record is of, what its printed time holds beyond them left out."""
        return self._ordinary(pace).of(event, cover)

    def _stalls(self, pace: float | None) -> list[Found] | None:
        """Return the stalls between the records, None where these have no stamps.

        A stall right before a record behind which an evaluation or a checkpoint is reported is that one's time, printed late.
        """
        if math.isnan(self.grain) or (self.times is None and pace is None):
            return None
        kept: list[Found] = []
        for found in find_stalls(self.tries, self.placed, self.grain, self._ordinary(pace)):
            names = {mark.name for mark in self.placed.before[id(found.marked)]} if found.marked is not None else set()
            if found.marked is not None and len(names) == 1 and self._prompt(found.marked, pace):
                self.tally.add(names.pop(), found.stall.duration_s, measured=False, count=0)
                self.late.append(found)
            else:
                kept.append(found)
        return kept

    def _prompt(self, event: Event, pace: float | None) -> bool:
        """True where nothing but steps fits between a record and the one before it, whose marks say no duration."""
        since, cover = self._since[id(event)]
        if any(mark.seconds is not None for mark in self.placed.before[id(event)]):
            return False
        working = self._working(event, cover, pace)
        return event.clock - since - working <= max(2 * self.grain, working)

    @cached_property
    def _since(self) -> dict[int, tuple[float, int]]:
        """By the identity of a record behind a mark: the stamp of the record before it, and of how many steps it is."""
        found = {id(row.event): (row.before, row.cover) for rows in self.placed.rows.values() for row in rows}
        pairs = (pair for one in self.tries for pair in pairwise(one.events) if id(pair[1]) in self.placed.before)
        return found | {id(b): (last_clock(a), covered(a, b, 1)) for a, b in pairs}

    def _gaps(self, pace: float | None) -> list[float | None]:
        """Settle the marks between and behind the records; return the time beyond the steps of each gap between."""
        rooms: list[float | None] = []
        known = self.times is not None or pace is not None
        for one, following in zip(self.tries, [*self.tries[1:], None], strict=True):
            if not isinstance(one, Try):
                continue  # no mark stands in a relay, or behind it
            for number, event in enumerate(one.events):
                if number >= one.standing and pace is not None:  # what was overtaken is wasted as a whole
                    break
                for b in (event, *(row.event for row in self.placed.rows_of(event))):
                    marks = self.placed.before.get(id(b), ())
                    if not marks or id(b) not in self._since:
                        continue
                    since, cover = self._since[id(b)]
                    start = since if known and not math.isnan(self.grain) else math.nan
                    gap = Gap(marks, start, b.clock, self._working(b, cover, pace))
                    room = settle(gap, self.tally, self.grain) if not self._held(b, marks) else None
                    rooms.append(room)
            last = one.events[-1]
            marks = self.placed.behind if following is None else self.placed.before.get(id(following.first), [])
            self._behind_last(last, marks, self._unprinted(one, marks, pace))
        return rooms

    def _held(self, event: Event, marks: Sequence[Mark]) -> bool:
        """Give what a record's printed time holds beyond its steps to the marks before it, where no stamp tells more."""
        extra = self.extras.get(id(event))
        if extra is None or self.times is None or extra not in self.times.behind or not math.isnan(event.clock):
            return False
        names = {mark.name for mark in marks}
        if len(names) > 1 or any(mark.seconds is not None for mark in marks):
            return False
        self.tally.add(names.pop(), extra.seconds, measured=False)
        return True

    def _unprinted(self, one: Try, marks: Sequence[Mark], pace: float | None) -> float:
        """Return the seconds of the steps behind the last record that the first of the marks may have waited for."""
        last, stride = one.events[-1].last_step, one.stride
        each = self.times.median if self.times is not None else pace or 0.0
        if not marks or last is None or stride is None or stride <= 1:
            return 0.0
        until = marks[0].event.step if marks[0].event.step is not None else self.phase.planned
        steps = until - last if until is not None and 0 <= until - last < stride else stride - 1
        return each * steps

    def _behind_last(self, last: Event | None, marks: Sequence[Mark], working: float) -> None:
        until = self.begin.last_line
        marks = [mark for mark in marks if until is None or mark.event.line <= until]
        if marks:
            start = math.nan if last is None or math.isnan(self.grain) else last_clock(last)
            first = marks[0].event.clock - start
            possible = working if math.isnan(first) else max(0.0, min(working, first))
            settle(Gap(marks, start, None, possible), self.tally, self.grain)

    # --- before the first record of an attempt ----------------------------------------------------------------------

    def _initialization(self, pace: float | None) -> None:
        for number, one in enumerate(self.tries):
            if not number and self.begin.bound and not self.begin.led:
                continue  # the wall begins with the first record
            begin = self.begin.clock if not number else self._again(self.tries[number - 1], one)
            if not isinstance(one, Try):
                beyond = None if self.times is None else self.times.legs.get(id(one))
                for seconds in one.before(begin, self._ordinary(pace).of_legs(one), beyond):
                    self._initialized(math.nan if seconds > DOWN else seconds)
                continue
            lead = math.fsum(self._lead(one, pace))
            for mark in self.placed.before.get(id(one.first), ()) if not number else ():
                if mark.seconds is not None:
                    self.tally.add(mark.name, mark.seconds, measured=True)
                    lead += mark.seconds
            seconds = one.first.clock - begin - lead if number or self.begin.led else math.nan
            down = number and seconds > DOWN and not self._began(self.tries[number - 1], one)
            self._initialized(math.nan if down else seconds)  # no line says when the job came back

    def _initialized(self, seconds: float) -> None:
        """Add the seconds before the first record of an attempt; NaN where they are unknown."""
        if math.isnan(self.grain) or math.isnan(seconds):
            self.tally.miss("initialization")
        else:
            self.tally.add("initialization", max(0.0, seconds), measured=False)

    def _lead(self, one: Try, pace: float | None) -> tuple[float, float]:
        """Return the seconds of the steps of an attempt's first record, and what its printed time holds beyond them.

        What the first record of a wall says of the time before it is of no wall.
        """
        extra = self.extras.get(id(one.first))
        working, more = self._working(one.first, one.lead, pace), extra.seconds if extra is not None else 0.0
        if one is self._first and self.begin.bound and not math.isnan(one.first.clock):
            room = max(0.0, one.first.clock - self.begin.clock)
            working = min(working, room)
            more = min(more, room - working)
        return working, more

    def _outside(self) -> tuple[float, float]:
        """Return how much of the steps of the first record, and of what it holds beyond them, lies before the wall."""
        if self.times is None:
            return 0.0, 0.0
        one = self._first
        extra = self.extras.get(id(one.first))
        working, more = self._lead(one, None)
        whole = self._working(one.first, one.lead, None)
        return whole - working, (extra.seconds if extra is not None else 0.0) - more

    def _again(self, dead: Tries, one: Tries) -> float:
        """Return when an attempt began: with its first line of its own, else when the one before printed its last."""
        last = dead.events[-1]
        anew = self._began(dead, one)
        clocks = [e.clock for e in self._between(dead, one) if e.rule.event in ("checkpoint", "failure", "end")]
        return anew[0] if anew else max([last_clock(last), *clocks])

    def _began(self, dead: Tries, one: Tries) -> list[float]:
        """Return the stamps of the lines that begin an attempt, in order."""
        return [e.clock for e in self._between(dead, one) if e.rule.event in ("header", "compile", "phase")]

    def _between(self, dead: Tries, one: Tries) -> list[Event]:
        """Return the stamped events between two attempts that are no step records, in order."""
        places, found = self._stamped
        return found[bisect_right(places, dead.events[-1].last_at) : bisect_left(places, one.first.at)]

    @cached_property
    def _stamped(self) -> tuple[list[int], list[Event]]:
        """The stamped events of the phase that are no step records, in order, and their positions before."""
        found = sorted((e for e in self.phase.standalone_events if not math.isnan(e.clock)), key=lambda e: e.at)
        return [event.at for event in found], found

    # --- the steps ----------------------------------------------------------------------------------------------------

    def _compilation(self) -> None:
        if self.times is None or (self.statistic is not None and self.statistic.definition in CUMULATIVE):
            return
        held = {id(e.event) for e in self.times.behind}
        if any(id(one.first) in held for one in self.tries):
            self.tally.miss("compilation")  # the first record waited for an evaluation too
        else:
            early = self.times.of_warmup
            seconds = max(0.0, math.fsum(early) - self._outside()[1])
            self.tally.add("compilation", seconds, measured=False, count=len(early))

    def _steps(self, pace: float | None, rooms: Sequence[float | None]) -> tuple[Work | None, float | None]:
        """Return the time of the steps that stand, and of those that were overtaken."""
        total = self._total()
        wasted = None if self.times is None else self.times.wasted
        by_clock = self._by_clock(pace, rooms) if pace is not None else None
        if by_clock is not None:
            wasted = by_clock[1]
        if total is not None:
            return Work(total, "trainer_total").known(), wasted
        if self.times is not None:
            return Work(max(0.0, self.times.standing - self._outside()[0]), "step_times").known(), wasted
        if by_clock is not None:
            return self._doubted(Work(by_clock[0], "log_timestamps").known()), wasted
        return self._loop(), wasted

    def _doubted(self, work: Work) -> Work:
        """Count the stalls as steps in the most that these are, where so many gaps are long that slow steps may be among them."""
        found = [one for one in self.stalls or () if not one.overtaken]
        if not is_doubtful(len(found), count_gaps(self.tries)):
            return work
        return work._replace(most=work.most + math.fsum(one.stall.duration_s for one in found))

    def _by_clock(self, pace: float | None, rooms: Sequence[float | None]) -> tuple[float, float] | None:
        """Return the seconds between the records that stand and those that were overtaken, the time of the marks left out."""
        if pace is None or any(room is None for room in rooms):
            return None
        standing = [-room for room in rooms if room is not None]
        wasted: list[float] = []
        for found in (*(self.stalls or ()), *self.late):
            (wasted if found.overtaken else standing).append(-found.stall.duration_s)
        for number, one in enumerate(self.tries):
            begin = self.begin.clock if not number else self._again(self.tries[number - 1], one)
            if not isinstance(one, Try):
                one.by_clock(pace, begin, standing, wasted)
                continue
            room = pace * one.lead if math.isnan(begin) else one.first.clock - begin
            lead = 0.0 if not number and not self.begin.led else max(0.0, min(pace * one.lead, room))
            stand, over = one.part
            (standing if stand else wasted).append(lead)
            if stand:
                standing.append(last_clock(stand[-1]) - one.first.clock)
            if over:
                wasted.append(last_clock(over[-1]) - (last_clock(stand[-1]) if stand else one.first.clock))
        return max(0.0, math.fsum(standing)), max(0.0, math.fsum(wasted))

    def _total(self) -> float | None:
        """Return the trainer's own total of its steps, printed at the end or beside the last record; None without one."""
        if len(self.tries) > 1:
            return None  # of which attempt it is, nobody knows
        for event in self.phase.standalone_events:
            value = event.facts.get("training_time_s")
            if is_time(value):
                return value if _definition(event, "training_time_s") == TRAINING_ONLY else None
        elapsed, one = self.summary.metrics.get("elapsed_time_s"), self._first
        begins = one.first.step is not None and one.first.step <= max(1, one.stride or 1)
        if elapsed is None or elapsed.definition != TRAINING_ONLY or not begins:
            return None
        least = TOLD * self.times.standing if self.times is not None else math.ulp(0.0)
        return elapsed.last if is_time(elapsed.last) and elapsed.last >= least else None

    def _loop(self) -> Work | None:
        """Return the printed time of the training loop less what else went on in it; None where that is not known."""
        value = self.phase.fact("training_time_s")
        if len(self.tries) > 1 or not is_time(value):
            return None
        end = next(event for event in self.phase.standalone_events if "training_time_s" in event.facts)
        inside = [mark for mark in self.marks if mark.event.at < end.at]
        if any(mark.seconds is None for mark in inside):
            return None
        most = max(0.0, value - math.fsum(mark.seconds or 0.0 for mark in inside))
        median = self.statistic.median if self.statistic is not None else None
        steps = sum(steps_in(one.events, None, one.lead) for one in self.tries if isinstance(one, Try))
        least = min(most, median * steps) if is_time(median) else None
        return Work(most, "trainer_loop", least, most)

    def _waited_outside(self) -> float:
        """Return how long the first record waited for data before the wall began."""
        one = self._first
        first, whole = one.first, self._working(one.first, one.lead, None)
        waited = first.metrics.get(DATA)
        return waited * one.lead * self._outside()[0] / whole if is_time(waited) and whole else 0.0


def _definition(event: Event, fact: str) -> str | None:
    return next((spec.definition for spec in event.rule.fields.values() if spec.target == ("fact", fact)), None)
