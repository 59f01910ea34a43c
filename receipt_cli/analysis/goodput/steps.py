"""Measure the seconds of a step: printed step times, additions of warm-ups and marks, the pace by the stamps, and stalls.

A mark is a line about an evaluation or a checkpoint. A stall is a silence between neighbouring step records that neither their
steps nor the marks between them explain.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from receipt_cli.analysis.goodput.model import Stall, Stalls, Tally
from receipt_cli.analysis.goodput.records import CUMULATIVE, DATA, TIME, Records, is_time
from receipt_cli.analysis.steady import warmups
from receipt_cli.events.launches import END
from receipt_cli.events.phases import Phase
from receipt_cli.events.table import Row
from receipt_cli.numeric.array_types import Floats, Integers, Mask
from receipt_cli.numeric.spill import gathered, slices
from receipt_cli.numeric.statistics import Statistic, exact_median, finite

NOISE = 0.01
"""Share of the time of the steps below which a difference is their usual variation."""
_DURATIONS = {"eval": "eval_duration_s", "checkpoint": "checkpoint_duration_s"}


class Mark(NamedTuple):
    """A line (``event``) about an evaluation or a checkpoint: its class (``name``), and its printed seconds, None without."""

    event: Row
    name: str
    seconds: float | None


class Placed(NamedTuple):
    """The marks among step records: ``before`` each record, by its index, and ``after`` all; ``at``: the indexes (int64)."""

    before: Mapping[int, list[Mark]]
    after: Sequence[Mark]
    at: Integers


class Gap(NamedTuple):
    """The marks between two step records, or after the last one, and the stamps of both ends.
    A stamp is NaN if there is none; ``end`` is None after the last record. ``working`` are the seconds of the steps."""

    marks: Sequence[Mark]
    start: float
    end: float | None
    working: float


def marks_of(phase: Phase, start: int) -> list[Mark]:
    """Return the marks of a phase from position ``start`` in the log on, in log order."""
    lines = phase.evals.with_(phase.standalone_events).of_sources(lambda source: source.rule.event in _DURATIONS)
    timed = ((row, row.metrics.get(_DURATIONS[row.rule.event])) for row in lines.between(start, END))
    return [Mark(row, row.rule.event, seconds if is_time(seconds) else None) for row, seconds in timed]


def place(marks: Sequence[Mark], records: Records) -> Placed:
    """Return before which step records the ``marks`` stand, which are in log order."""
    before: dict[int, list[Mark]] = {}
    after: list[Mark] = []
    for mark, number in zip(marks, np.searchsorted(records.at, [mark.event.at for mark in marks]).tolist(), strict=True):
        (before.setdefault(number, []) if number < records.count else after).append(mark)
    return Placed(before, after, np.array(sorted(before), np.int64))


def settle(gap: Gap, tally: Tally, grain: float) -> float | None:
    """Add the time of a gap beyond its steps to the classes of its marks; return that time, None if it is unknown.

    It may be negative by the error of stamps and printed times; over many gaps that adds up to nothing. A printed duration counts
    up to the time of the gap (and the ``grain`` of its stamps); the rest of it ran beside the steps. A class without durations
    gets what is left; several such classes share it as their lines divide the gap.
    """
    clocks = [gap.start, *(mark.event.clock for mark in gap.marks)]
    end = clocks[-1] if gap.end is None else gap.end
    room = None if math.isnan(gap.start) or math.isnan(end) else end - gap.start - gap.working
    free = room
    names = list(dict.fromkeys(mark.name for mark in gap.marks))
    for name in names:
        printed = [mark.seconds for mark in gap.marks if mark.name == name and mark.seconds is not None]
        if printed:
            whole = math.fsum(printed)
            taken = whole if free is None or gap.end is None else min(whole, max(0.0, free) + 2 * grain)
            tally.add(name, taken, measured=True, overlapped=whole - taken, count=len(printed))
            free = None if free is None else free - taken
    silent = [name for name in names if all(mark.seconds is None for mark in gap.marks if mark.name == name)]
    if free is None:
        for name in silent:
            tally.miss(name)
    elif len(silent) == 1:
        tally.add(silent[0], free, measured=False)
    elif silent:
        _share(gap, end, free, tally, grain)
    return room


def _share(gap: Gap, end: float, free: float, tally: Tally, grain: float) -> None:
    """Share ``free`` seconds among the classes as their lines divide the gap: a line ends the time of its class.

    The time after the last line is of its class, too. The steps are in the first or the last stretch, whichever fits best, else
    in both. A class without time before its lines is unknown: a line that reports a beginning leaves its time to the next line.
    """
    lengths: list[tuple[str, float]] = []
    at = gap.start
    for mark in gap.marks:
        lengths.append((mark.name, mark.event.clock - at))
        at = mark.event.clock
    lengths.append((gap.marks[-1].name, end - at))
    fitting = [i for i in (0, len(lengths) - 1) if lengths[i][1] >= gap.working - grain]
    chosen = [min(fitting, key=lambda i: lengths[i][1])] if fitting else [0, len(lengths) - 1]
    for i in chosen:
        rest = lengths[i][1] - gap.working
        lengths[i] = (lengths[i][0], rest if rest > NOISE * gap.working else 0.0)
    shares = {name: math.fsum(max(0.0, s) for n, s in lengths if n == name) for name in dict.fromkeys(n for n, _ in lengths)}
    whole = math.fsum(shares.values())
    for name, share in shares.items():
        if math.isnan(whole):
            tally.miss(name)
        else:
            tally.add(name, free * share / whole if whole else 0.0, measured=False, shared=True)


SLACK = 0.02
"""Share by which the sum of printed times may exceed the time of the clock: digits are rounded, and timers begin earlier."""
INCLUDES = 1.5
"""Factor of the median step time beyond which a record after a mark includes the time of that mark."""
ROUNDS = 8
"""Most rounds that find stalls: each uses the mean without the stalls of the round before, and finds shorter ones."""
FINE = 10
"""Factor of the grain of stamps: if records are further apart, their median pace counts, else their mean pace."""
LONG = 3.0
"""Ordinary steps beyond which a silence is no slow step: step times rarely vary that much beside their neighbours."""
DOUBTFUL = 0.05
"""Share of the gaps beyond which long ones are no exception: slow steps may be among them."""
FEW = 1
"""Long gaps that are an exception in a log of any length."""
LISTED = 10
"""Most stalls that are listed."""


class Extras(NamedTuple):
    """Records whose printed time exceeds that of their steps: indexes ``at`` (ascending, int64 [m]), and float64 [m] each:
    ``seconds`` of the excess, ``working`` seconds of the steps."""

    at: Integers
    seconds: Floats
    working: Floats

    def only(self, chosen: Mask | Integers) -> Extras:
        """Return these records at a mask or at indexes."""
        return Extras(self.at[chosen], self.seconds[chosen], self.working[chosen])

    def joined(self, other: Extras) -> Extras:
        """Return these and ``other`` records, ascending."""
        at, seconds, working = (np.concatenate(pair) for pair in zip(self, other, strict=True))
        return Extras(at, seconds, working).only(np.argsort(at, kind="stable"))

    def beyond(self, record: int) -> float:
        """Return the seconds by which the time of a record exceeds its steps; 0 for a record not listed."""
        return math.fsum(self.seconds[self.at == record].tolist())


NO_EXTRAS = Extras(np.empty(0, np.int64), np.empty(0), np.empty(0))


class Times(NamedTuple):
    """The printed times of a phase in seconds: of the steps that stand (``standing``), and of those that were superseded
    (``wasted``), without the excess of ``warmup`` (records of warm-ups that took longer than their steps) and of ``after_marks``
    (those after a mark). ``median``: that of a step."""

    standing: float
    wasted: float
    warmup: Extras
    after_marks: Extras
    median: float

    @property
    def extras(self) -> Extras:
        """The records of both kinds."""
        return self.warmup.joined(self.after_marks)


def printed_times(records: Records, statistic: Statistic | None, waiting: float | None, marks: Placed) -> Times | None:
    """Return the printed times of the steps, None if they prove nothing.

    ``statistic`` is that of the step times, ``waiting`` the median of the printed wait for data in them; ``marks`` are the
    evaluations and checkpoints between the records.
    """
    if statistic is None or not is_time(statistic.median) or not records.numbered:
        return None
    median, definition = statistic.median, statistic.definition
    standing = records.totals(records.starts, records.standing, TIME, definition, median)
    wasted = records.totals(records.standing, records.stops, TIME, definition, median)
    if None in standing or None in wasted:
        return None
    if definition in CUMULATIVE:
        early = late = NO_EXTRAS
    else:
        early, late = _extras(records, median, definition, waiting, marks)
    at, _, working = early.joined(late)
    beyond, stands = records.times(TIME)[at] * records.covers[at] - working, records.stands(at)
    known = ([total for total in totals if total is not None] for totals in (standing, wasted))
    stand, over = (
        math.fsum(sums) - math.fsum(beyond[mine].tolist()) for sums, mine in zip(known, (stands, ~stands), strict=True)
    )
    return Times(stand, over, early, late, median)


def _extras(
    records: Records, median: float, definition: str | None, waiting: float | None, marks: Placed
) -> tuple[Extras, Extras]:
    """Return the records of warm-ups, and those after a mark, whose time exceeds that of their steps.

    If most records after a mark are far above the median, the timer runs on through evaluations; the excess of a warm-up record
    after a mark then belongs to the mark.
    """
    warm = records.first(warmups(records.lengths))
    at = np.union1d(warm, marks.at)
    values, data, covers = records.times(TIME)[at], records.times(DATA)[at], records.covers[at]
    waits = (data > waiting) & (data <= values) if waiting is not None else np.zeros(len(at), np.bool_)
    waited = np.where(waits, data - (waiting or 0.0), 0.0)
    more = values - waited - median
    averaged = covers if definition is not None else np.where(covers <= 1, covers, 1)
    every = Extras(at, more * averaged, (median + waited) * covers)
    is_warm, marked = np.isin(at, warm), np.isin(at, marks.at)
    early, after = is_warm & (more > 0), marked & ~is_warm
    late = after & (more > (INCLUDES - 1) * median)
    quiet = after & ~late & ~np.isnan(values)
    if not np.count_nonzero(late) > np.count_nonzero(quiet):
        return every.only(early), NO_EXTRAS
    return every.only(early & ~marked), every.only(late | (early & marked))


def is_credible(records: Records, grain: float, definition: str | None, median: float) -> bool:
    """Return whether the printed times fit between the stamps; True if there are no stamps.
    In each attempt, the time of all records after the first must fit between the first and the last."""
    first = records.times(TIME)[records.starts]
    first = np.where(np.isnan(first), median, first) * records.leads
    room = ((records.clock[records.stops - 1] - records.clock[records.starts]) * (1 + SLACK) + 2 * grain).tolist()
    totals = records.totals(records.starts, records.stops, TIME, definition, median)
    every = zip(totals, first.tolist(), room, strict=True)
    return not any(seconds is not None and seconds - lead > most for seconds, lead, most in every)


class Ordinary(NamedTuple):
    """The usual seconds of a step: ``each``, or if ``printed`` the value of the record itself, except for ``extras``."""

    each: float
    printed: bool = False
    extras: Extras = NO_EXTRAS

    def of(self, records: Records, rows: slice | Integers) -> Floats:
        """Return the seconds of the steps that some records cover (float64 [m])."""
        covers = records.covers[rows]
        values = records.times(TIME)[rows] if self.printed else np.full(len(covers), math.nan)
        working: Floats = np.where(np.isnan(values), self.each, values) * covers
        if len(self.extras.at) and len(covers):
            asked = np.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows
            places = np.minimum(np.searchsorted(asked, self.extras.at), len(asked) - 1)
            own = asked[places] == self.extras.at
            working[places[own]] = self.extras.working[own]
        return working

    def of_one(self, records: Records, record: int) -> float:
        """Return the seconds of the steps that one record covers."""
        return float(self.of(records, slice(record, record + 1))[0])


def find_pace(records: Records, marks: Placed, grain: float) -> float | None:
    """Return the seconds of a step by the stamps; None if records have none.
    Only stretches without ``marks`` count. ``grain``: seconds by which the stamps may be off."""
    clock = records.clock
    first, last = records.starts, records.stops - 1
    inside = marks.at[~np.isin(marks.at, first)]
    seconds = [*(clock[last] - clock[first]).tolist(), *(clock[inside - 1] - clock[inside]).tolist()]
    if any(map(math.isnan, seconds)):
        return None
    steps = int((records.steps_in(first, records.stops) - records.leads).sum() - records.covers[inside].sum())
    lengths, times = paces(records, marks)
    length, middle = exact_median(lengths), exact_median(times)
    if length is not None and middle is not None and length >= FINE * grain and middle > 0:
        return middle
    return _mean_pace(records, marks, grain, math.fsum(seconds), steps)


def _mean_pace(records: Records, marks: Placed, grain: float, total: float, steps: int) -> float | None:
    """Return the mean seconds of a step without stalls: compute it, leave out the stalls found with it, and repeat."""
    pace: float | None = None
    for _ in range(ROUNDS):
        found = find_stalls(records, marks, grain, Ordinary(pace)) if pace is not None else []
        seconds, rest = math.fsum([total, *(-one.span for one in found)]), steps - sum(one.cover for one in found)
        mean = seconds / rest if rest > 0 and seconds > 0 else None
        if mean is None or mean == pace:
            break
        pace = mean
    return pace


def paces(records: Records, marks: Placed) -> tuple[Floats, Floats]:
    """Return the seconds between neighbouring records by their stamps (float64), and these seconds per step.
    Pairs of records with one of the ``marks`` between them do not count."""
    lengths = gathered(np.float64, records.count, (_spans(records, marks, part) for part in slices(records.count)))
    with np.errstate(invalid="ignore", divide="ignore"):
        each = gathered(np.float64, records.count, (lengths[part] / records.covers[part] for part in slices(records.count)))
    return finite(lengths), finite(each)


def _spans(records: Records, marks: Placed, part: slice) -> Floats:
    """Return the seconds since the record before (float64); NaN also if a mark is between, or if both have one step."""
    spans = records.rises(records.clock, part)
    spans[records.covers[part] == 0] = math.nan
    low, high = np.searchsorted(marks.at, [part.start, part.stop])
    spans[marks.at[low:high] - part.start] = math.nan
    return spans


class Found(NamedTuple):
    """A stall between two records.

    ``span``: the seconds between their stamps; ``cover``: the steps between them; ``superseded``: whether the second record is;
    ``marked``: the index of the third record if a mark is right before it, else None.
    """

    stall: Stall
    span: float
    cover: float
    superseded: bool
    marked: int | None


def find_stalls(records: Records, marks: Placed, grain: float, ordinary: Ordinary) -> list[Found]:
    """Return the stalls between the records of each attempt; none between records without stamps.

    ``marks`` are the known events between the records; ``grain``: seconds by which the stamps may be off. If steps print no time
    of their own, a stall must also be long beside its neighbours: steps may slow down for good.
    """
    found: list[Found] = []
    for part in slices(records.count):
        spans = _spans(records, marks, part)
        with np.errstate(invalid="ignore"):
            long = np.flatnonzero(spans > LONG * ordinary.of(records, part) + 2 * grain)
        for at in (long + part.start).tolist():
            span, cover = float(spans[at - part.start]), float(records.covers[at])
            own = ordinary.of_one(records, at)
            if not ordinary.printed:
                own = max(own, _beside(records, marks, at) * cover)
                if span <= LONG * own + 2 * grain:
                    continue
            stall = Stall(int(records.line[at - 1]), int(records.line[at]), span - own)
            marked = at + 1 if at + 1 in marks.before and at + 1 not in records.starts else None
            found.append(Found(stall, span, cover, not records.stands(np.array([at]))[0], marked))
    return found


def _beside(records: Records, marks: Placed, at: int) -> float:
    """Return the lower of the seconds of a step in the gaps before and after one; 0 if there is neither."""
    near = slice(at - 1, min(at + 2, records.count))
    each = _spans(records, marks, near) / np.maximum(records.covers[near], 1)
    each[1] = math.nan
    return min((pace for pace in each.tolist() if not math.isnan(pace)), default=0.0)


def is_doubtful(stalls: int, gaps: int) -> bool:
    """Return whether long gaps are so frequent that slow steps may be among them."""
    return stalls > max(FEW, DOUBTFUL * gaps)


def listed(found: Sequence[Found], doubtful: bool) -> Stalls:
    """Return the stalls for the account: their number, their seconds, and the longest in order."""
    stalls = [one.stall for one in found]
    longest = heapq.nsmallest(LISTED, stalls, key=lambda stall: (-stall.duration_s, stall.line_number))
    return Stalls(len(stalls), math.fsum(stall.duration_s for stall in stalls), doubtful, longest)
