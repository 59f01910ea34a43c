"""Measure the seconds of a step: printed step times, additions of warm-ups and marks, the pace by the stamps, and stalls.

A mark is a line about an evaluation or a checkpoint. A stall is a silence between neighbouring step records that neither their
steps nor the marks between them explain.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from receipt_cli.analysis.goodput.model import Tally
from receipt_cli.analysis.records import CUMULATIVE, DATA, TIME, Records, is_time
from receipt_cli.analysis.steady import warmups
from receipt_cli.events.launches import END
from receipt_cli.events.phases import Phase
from receipt_cli.events.table import Row
from receipt_cli.numeric.array_types import Floats, Integers, Mask
from receipt_cli.numeric.spill import gathered, picked, slices
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


def settle(marks: Sequence[Mark], start: float, end: float, working: float, tally: Tally, grain: float) -> float | None:
    """Add the time of a gap beyond its steps to the classes of its marks; return that time, None if it is unknown.

    ``start`` and ``end`` are the stamps of the records around it, NaN without one; after the last record ``end`` is infinite.
    ``working`` are the seconds of its steps. The time may be negative by the error of stamps and printed times; over many gaps
    that adds up to nothing. A printed duration counts up to the time of the gap (and the ``grain`` of its stamps); the rest of it
    ran beside the steps. A class without durations gets what is left; several such classes share it as their lines divide it.
    """
    last = marks[-1].event.clock if math.isinf(end) else end
    room = None if math.isnan(start) or math.isnan(last) else last - start - working
    free = room
    names = list(dict.fromkeys(mark.name for mark in marks))
    for name in names:
        printed = [mark.seconds for mark in marks if mark.name == name and mark.seconds is not None]
        if printed:
            whole = math.fsum(printed)
            taken = whole if free is None or math.isinf(end) else min(whole, max(0.0, free) + 2 * grain)
            tally.add(name, taken, measured=True, overlapped=whole - taken, count=len(printed))
            free = None if free is None else free - taken
    silent = [name for name in names if all(mark.seconds is None for mark in marks if mark.name == name)]
    if free is None or (len(silent) > 1 and any(math.isnan(mark.event.clock) for mark in marks)):
        for name in silent:
            tally.miss(name)
    elif len(silent) == 1:
        tally.add(silent[0], free, measured=False)
    elif silent:
        for name, seconds in _shared(free, marks, [start, *(mark.event.clock for mark in marks), last], working, grain).items():
            tally.add(name, seconds, measured=False, shared=True)
    return room


def _shared(free: float, marks: Sequence[Mark], clocks: Sequence[float], working: float, grain: float) -> dict[str, float]:
    """Divide the ``free`` seconds of a gap between two records among the classes of the lines in it; return the seconds by class.

    A line ends the time of its class; the time after the last one is of its class, too. ``clocks`` are the stamps of the records
    and lines. The steps are in the first or the last stretch, whichever fits best, else in both.
    A class without time before its lines is unknown: a line that reports a beginning leaves its time to the next line.
    """
    names = [*(mark.name for mark in marks), marks[-1].name]
    lengths = [after - before for before, after in pairwise(clocks)]
    for at in sorted((at for at in (0, -1) if lengths[at] >= working - grain), key=lengths.__getitem__)[:1] or (0, -1):
        rest = lengths[at] - working
        lengths[at] = rest if rest > NOISE * working else 0.0
    times = {name: math.fsum(max(0.0, s) for n, s in zip(names, lengths, strict=True) if n == name) for name in names}
    whole = math.fsum(times.values())
    return {name: free * seconds / whole if whole else 0.0 for name, seconds in times.items()}


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


class Times(NamedTuple):
    """The printed times of a phase in seconds: of the steps that stand (``standing``), and of those that were superseded
    (``wasted``), without ``extra`` time; ``median``: that of a step; ``averaged``: each figure is the mean of all steps so far.

    Some records took longer than their steps, those of warm-ups and those after a mark: the indexes ``at`` (ascending, int64 [m])
    with the seconds of their steps (``working``), ``extra`` seconds (float64 [m] each), and whether these are ``of_mark`` (bool).
    """

    standing: float
    wasted: float
    median: float
    averaged: bool
    at: Integers
    working: Floats
    extra: Floats
    of_mark: Mask


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
    averaged = definition in CUMULATIVE
    at, working, extra, of_mark = _extras(records, median, definition, waiting, marks)
    beyond, stands = records.times(TIME)[at] * records.covers[at] - working, records.stands(at)
    known = ([total for total in totals if total is not None] for totals in (standing, wasted))
    stand, over = (
        math.fsum(sums) - math.fsum(beyond[mine].tolist()) for sums, mine in zip(known, (stands, ~stands), strict=True)
    )
    return Times(stand, over, median, averaged, at, working, extra, of_mark)


def _extras(
    records: Records, median: float, definition: str | None, waiting: float | None, marks: Placed
) -> tuple[Integers, Floats, Floats, Mask]:
    """Return the records whose time exceeds that of their steps, as ``Times`` has them; none if their times are averages.

    If most records after a mark are far above the median, the timer runs on through evaluations; the excess of a warm-up record
    after a mark then belongs to the mark.
    """
    warm = records.first(warmups(records.lengths))
    at = np.union1d(warm, marks.at)[: 0 if definition in CUMULATIVE else None]
    values, data, covers = picked(records.times(TIME), at), picked(records.times(DATA), at), picked(records.covers, at)
    waits = (data > waiting) & (data <= values) if waiting is not None else np.zeros(len(at), np.bool_)
    waited = np.where(waits, data - (waiting or 0.0), 0.0)
    more = values - waited - median
    averaged = covers if definition is not None else np.where(covers <= 1, covers, 1)
    is_warm, marked = np.isin(at, warm), np.isin(at, marks.at)
    early, after = is_warm & (more > 0), marked & ~is_warm
    late = after & (more > (INCLUDES - 1) * median)
    runs_on = np.count_nonzero(late) > np.count_nonzero(after & ~late & ~np.isnan(values))
    of_mark = (late | (early & marked)) & runs_on
    chosen = early | of_mark
    return at[chosen], ((median + waited) * covers)[chosen], (more * averaged)[chosen], of_mark[chosen]


def is_credible(records: Records, grain: float, definition: str | None, median: float) -> bool:
    """Return whether the printed times fit between the stamps; True if there are no stamps.
    In each attempt, the time of all records after the first must fit between the first and the last."""
    first = picked(records.times(TIME), records.starts)
    first = np.where(np.isnan(first), median, first) * records.leads
    clock = records.clock
    room = ((picked(clock, records.stops - 1) - picked(clock, records.starts)) * (1 + SLACK) + 2 * grain).tolist()
    totals = records.totals(records.starts, records.stops, TIME, definition, median)
    every = zip(totals, first.tolist(), room, strict=True)
    return not any(seconds is not None and seconds - lead > most for seconds, lead, most in every)


def ordinary(records: Records, each: float, times: Times | None = None) -> Floats:
    """Return the usual seconds of the steps that each record covers (float64 [n]): as printed in ``times``, else ``each``."""

    def block(part: slice) -> Floats:
        covers = records.covers[part]
        printed = records.times(TIME)[part] if times is not None and not times.averaged else np.full(len(covers), math.nan)
        found: Floats = np.where(np.isnan(printed), each, printed) * covers
        if times is not None:
            low, high = np.searchsorted(times.at, [part.start, part.stop])
            found[times.at[low:high] - part.start] = times.working[low:high]
        return found

    return gathered(np.float64, records.count, map(block, slices(records.count)))


def find_pace(records: Records, marks: Placed, grain: float) -> float | None:
    """Return the seconds of a step by the stamps; None if records have none.
    Only stretches without ``marks`` count, and none between records once an epoch, but epochs themselves are counted with what
    ends them. ``grain``: seconds by which the stamps may be off."""
    if not marks.at.size and any(bool((records.covers[part] > 1).any()) for part in slices(records.count)) and records.by_epoch:
        return None
    clock = records.clock
    first, last = records.starts, records.stops - 1
    inside = marks.at[~np.isin(marks.at, first)]
    spans = picked(clock, last) - picked(clock, first), picked(clock, inside - 1) - picked(clock, inside)
    seconds = [second for span in spans for second in span.tolist()]
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
        found = find_silences(records, marks, grain, ordinary(records, pace)) if pace is not None else []
        seconds, rest = math.fsum([total, *(-one.span for one in found)]), steps - sum(records.covers[one.at] for one in found)
        mean = float(seconds / rest) if rest > 0 and seconds > 0 else None
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
    """Return the seconds since the record before (float64); NaN without times, across a mark, or within the same step."""
    spans = records.rises(records.clock, part)
    spans[records.covers[part] == 0] = math.nan
    low, high = np.searchsorted(marks.at, [part.start, part.stop])
    spans[marks.at[low:high] - part.start] = math.nan
    return spans


class Silence(NamedTuple):
    """A stall before the record ``at`` this index: ``span`` seconds since the record before, ``seconds`` beyond its steps."""

    at: int
    span: float
    seconds: float


def find_silences(records: Records, marks: Placed, grain: float, usual: Floats, *, printed: bool = False) -> list[Silence]:
    """Return the stalls between the records of each attempt; none between records without stamps.

    ``marks`` are the known events between the records; ``grain``: seconds by which the stamps may be off; ``usual``: seconds of
    the steps of each record. If steps do not ``printed`` times of their own, a stall must also be long beside its neighbours:
    steps may slow down for good.
    """
    found: list[Silence] = []
    for part in slices(records.count):
        spans = _spans(records, marks, part)
        with np.errstate(invalid="ignore"):
            long = np.flatnonzero(spans > LONG * usual[part] + 2 * grain)
        for at in (long + part.start).tolist():
            span, own = float(spans[at - part.start]), float(usual[at])
            if not printed:
                own = max(own, _beside(records, marks, at) * float(records.covers[at]))
            if span > LONG * own + 2 * grain:
                found.append(Silence(at, span, span - own))
    return found


def _beside(records: Records, marks: Placed, at: int) -> float:
    """Return the lower of the seconds of a step in the gaps before and after one; 0 if there is neither."""
    near = slice(at - 1, min(at + 2, records.count))
    each = _spans(records, marks, near) / np.maximum(records.covers[near], 1)
    each[1] = math.nan
    return min((pace for pace in each.tolist() if not math.isnan(pace)), default=0.0)
