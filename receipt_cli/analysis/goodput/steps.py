"""The seconds of a step: printed step times, what warm-ups and marks add to them, the pace of the stamps, and the stalls.

A stall is a silence between neighbouring step records that neither their steps nor a known event explain. Known
events are marks: evaluations and checkpoints between step records, where they stand, and how long each class of them took.
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
"""Share of the time of the steps that is no more than how much they differ."""
_DURATIONS = {"eval": "eval_duration_s", "checkpoint": "checkpoint_duration_s"}


class Mark(NamedTuple):
    """A line about an evaluation or a checkpoint: its class, and how long it took in seconds if it says so."""

    event: Row
    name: str
    seconds: float | None


class Placed(NamedTuple):
    """The marks ``before`` a record, by its number, and those ``behind`` all records; ``at`` are these numbers (int64 [m])."""

    before: Mapping[int, list[Mark]]
    behind: Sequence[Mark]
    at: Integers


class Gap(NamedTuple):
    """The marks between two step records, or behind the last one, and the stamps of both ends.

    A stamp is NaN if there is none; ``end`` is None behind the last record. ``working`` are the seconds of the steps.
    """

    marks: Sequence[Mark]
    start: float
    end: float | None
    working: float


def marks_of(phase: Phase, start: int) -> list[Mark]:
    """Return the marks of a phase from position ``start`` on, in log order."""
    lines = phase.evals.with_(phase.standalone_events).of_sources(lambda source: source.rule.event in _DURATIONS)
    timed = ((row, row.metrics.get(_DURATIONS[row.rule.event])) for row in lines.between(start, END))
    return [Mark(row, row.rule.event, seconds if is_time(seconds) else None) for row, seconds in timed]


def place(marks: Sequence[Mark], records: Records) -> Placed:
    """Return where ``marks``, in log order, stand among step records."""
    before: dict[int, list[Mark]] = {}
    behind: list[Mark] = []
    for mark, number in zip(marks, np.searchsorted(records.at, [mark.event.at for mark in marks]).tolist(), strict=True):
        (before.setdefault(number, []) if number < records.count else behind).append(mark)
    return Placed(before, behind, np.array(sorted(before), np.int64))


def settle(gap: Gap, tally: Tally, grain: float) -> float | None:
    """Give the time of a gap beyond its steps to the classes of its marks; return that time, None where nobody knows it.

    It may be negative, by what stamps and printed times are off: over many gaps that adds up to nothing.
    A printed duration counts as far as the gap has room for it, give or take the ``grain`` of its stamps: what is beyond
    ran beside the steps. Of classes without durations one takes what is left; several share it as their lines part it.
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
    """Share ``free`` seconds among the classes as their lines part the gap: the time up to a line is of its class, and what
    follows the last line too. The steps are in the first stretch or in the last, whichever they fit best, else in both.

    A class whose lines have no time before them is unknown: a line that says what begins hides it in the next one's.
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
"""Share by which the printed times may exceed the time of the clock: printed digits, and timers that begin earlier."""
INCLUDES = 1.5
"""Factor of the median from which on the step time of a record after an evaluation or a checkpoint includes its time."""
ROUNDS = 8
"""Rounds in which stalls are found by a mean that they are left out of: each finds shorter ones, and few are of any size."""
FINE = 10
"""Factor of the grain of stamps: if records are further apart, their median counts, else their mean."""
LONG = 3.0
"""Ordinary steps from which on a silence is no slow step: step times rarely vary that much beside their neighbours."""
DOUBTFUL = 0.05
"""From this share of the gaps on, long ones are no exception: slow steps may be among them."""
FEW = 1
"""Long gaps that are an exception in a log of any length."""
LISTED = 10
"""Most stalls that are listed."""


class Extras(NamedTuple):
    """Records whose printed time is more than that of their steps: their numbers, ascending (int64 [m]), the ``seconds`` beyond,
    and those of the steps (float64 [m] each)."""

    at: Integers
    seconds: Floats
    working: Floats

    def only(self, chosen: Mask | Integers) -> Extras:
        """Return some of them."""
        return Extras(self.at[chosen], self.seconds[chosen], self.working[chosen])

    def joined(self, other: Extras) -> Extras:
        """Return these and ``other`` records."""
        at, seconds, working = (np.concatenate(pair) for pair in zip(self, other, strict=True))
        return Extras(at, seconds, working).only(np.argsort(at, kind="stable"))

    def beyond(self, record: int) -> float:
        """Return the seconds that one record holds beyond its steps; 0 for any other record."""
        return math.fsum(self.seconds[self.at == record].tolist())


NO_EXTRAS = Extras(np.empty(0, np.int64), np.empty(0), np.empty(0))


class Times(NamedTuple):
    """The printed times of a phase in seconds: of the steps that stand, and of those that were overtaken.

    ``warmup`` and ``behind`` are the records of warm-ups, and those behind a mark, that hold more than their steps.
    """

    standing: float
    wasted: float
    warmup: Extras
    behind: Extras
    median: float

    @property
    def extras(self) -> Extras:
        """The records of both kinds."""
        return self.warmup.joined(self.behind)


def printed_times(records: Records, statistic: Statistic | None, waiting: float | None, marks: Placed) -> Times | None:
    """Return what the printed step times add up to, or None if they do not tell.

    ``statistic`` is that of the step times, ``waiting`` the median of what is printed of the waiting for data in them;
    ``marks`` are the evaluations and checkpoints between the records.
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
    """Return the records of warm-ups, and those behind a mark, whose time is more than that of their steps.

    If most records behind a mark are far above the median, the timer runs on through evaluations: what a record of a warm-up
    behind a mark holds is of that mark then.
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
    early, behind = is_warm & (more > 0), marked & ~is_warm
    late = behind & (more > (INCLUDES - 1) * median)
    quiet = behind & ~late & ~np.isnan(values)
    if not np.count_nonzero(late) > np.count_nonzero(quiet):
        return every.only(early), NO_EXTRAS
    return every.only(early & ~marked), every.only(late | (early & marked))


def is_credible(records: Records, grain: float, definition: str | None, median: float) -> bool:
    """Return whether the stamps leave room for the printed times.

    What follows the first record of an attempt fits between it and the last. True if there are no stamps.
    """
    first = records.times(TIME)[records.starts]
    first = np.where(np.isnan(first), median, first) * records.leads
    room = ((records.clock[records.stops - 1] - records.clock[records.starts]) * (1 + SLACK) + 2 * grain).tolist()
    totals = records.totals(records.starts, records.stops, TIME, definition, median)
    every = zip(totals, first.tolist(), room, strict=True)
    return not any(seconds is not None and seconds - lead > most for seconds, lead, most in every)


class Ordinary(NamedTuple):
    """Seconds of a step: ``each``, or what a record prints itself if ``printed``; ``extras`` are records that print more."""

    each: float
    printed: bool = False
    extras: Extras = NO_EXTRAS

    def of(self, records: Records, rows: slice | Integers) -> Floats:
        """Return the seconds of the steps that some records are of (float64 [m])."""
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
        """Return the same of one record."""
        return float(self.of(records, slice(record, record + 1))[0])


def find_pace(records: Records, marks: Placed, grain: float) -> float | None:
    """Return the seconds of a step by the stamps; None if the records have none.

    Only stretches without one of the ``marks`` count. ``grain`` is how many seconds the stamps may be off.
    """
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
    """Return the mean seconds of a step, stalls left out: each round finds those that the mean of the one before hid."""
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
    """Return the seconds between neighbouring records by their stamps, and the seconds of a step between them.

    What stands between a record behind one of the ``marks`` and the record before it does not count.
    """
    lengths = gathered(np.float64, records.count, (_spans(records, marks, part) for part in slices(records.count)))
    with np.errstate(invalid="ignore", divide="ignore"):
        each = gathered(np.float64, records.count, (lengths[part] / records.covers[part] for part in slices(records.count)))
    return finite(lengths), finite(each)


def _spans(records: Records, marks: Placed, part: slice) -> Floats:
    """Return the seconds since the record before, NaN also for a record behind a mark, or of the step before it."""
    spans = records.spans(part)
    spans[records.covers[part] == 0] = math.nan
    low, high = np.searchsorted(marks.at, [part.start, part.stop])
    spans[marks.at[low:high] - part.start] = math.nan
    return spans


class Found(NamedTuple):
    """One stall: whether its record was ``overtaken``; ``marked`` is the record behind it if a mark stands between the two."""

    stall: Stall
    span: float
    cover: float
    overtaken: bool
    marked: int | None


def find_stalls(records: Records, marks: Placed, grain: float, ordinary: Ordinary) -> list[Found]:
    """Return the stalls between the records of each attempt; none between records without stamps.

    ``marks`` are the known events between them; ``grain`` is how many seconds the stamps may be off.
    If steps print no time of their own, a gap is long beside its neighbours, too: steps may slow down for good.
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
    """Return the shorter of the seconds per step in the gaps before and behind one; 0 if there is no other."""
    near = slice(at - 1, min(at + 2, records.count))
    each = _spans(records, marks, near) / np.maximum(records.covers[near], 1)
    each[1] = math.nan
    return min((pace for pace in each.tolist() if not math.isnan(pace)), default=0.0)


def is_doubtful(stalls: int, gaps: int) -> bool:
    """Return whether long gaps are frequent, so that slow steps may be among them."""
    return stalls > max(FEW, DOUBTFUL * gaps)


def listed(found: Sequence[Found], doubtful: bool) -> Stalls:
    """Return the stalls for the account: how many, their seconds, and the longest in order."""
    stalls = [one.stall for one in found]
    longest = heapq.nsmallest(LISTED, stalls, key=lambda stall: (-stall.duration_s, stall.line_number))
    return Stalls(len(stalls), math.fsum(stall.duration_s for stall in stalls), doubtful, longest)
