"""``slow/1``: the slow steps of a phase, and which part of each grew.

A step is slow if its printed time is ``FACTOR`` times the median of the ``WINDOW`` times before it and lies ``DEVIATES`` times
as far from that median as these times do. Its cause is the one part that grew by at least ``MOST`` of what the step took
beyond that median, whatever the last printed digits hide; of a part inside another, the inner one. Else it is evaluations or
checkpoints, if their lines stand before slow steps and almost no other step is slow. If several parts grew by as much, or
none, the cause is not printed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np

from receipt_cli.analysis.bottleneck import LOOKED_AT, SLACK
from receipt_cli.analysis.goodput.steps import Placed, marks_of, place
from receipt_cli.analysis.records import CUMULATIVE, TIME, Records
from receipt_cli.analysis.spikes import PIECE, TOGETHER, candidates, medians_of, places_before, values_at
from receipt_cli.events.phases import Phase
from receipt_cli.events.table import NO_STEP, EventTable, distinct
from receipt_cli.numeric.array_types import Floats, Integers, Mask
from receipt_cli.numeric.precision import resolution
from receipt_cli.numeric.statistics import Statistic, exact_sum, finite
from receipt_cli.records.envelope import NO_RANK

SLOW_RULE = "slow/1"
Cause = Literal["data", "communication", "compute", "generation", "evaluation", "checkpoint"]
CAUSES: tuple[Cause, ...] = get_args(Cause)
LEAST = 10
"""Fewest step times that a median is of."""
FACTOR = 1.5
"""Times the median from which on a step is slow: the factor from which on a step time includes an evaluation."""
DEVIATES = 6.0
"""Times the median absolute deviation that a slow step is above the median; steps that differ as much anyway are not slow."""
MOST = 0.5
"""Share of the excess that the part which explains it grew by at least."""
OTHERWISE = 0.05
"""Share of the other steps that may be slow if marks explain the slow ones."""
FEWEST_MARKS = 2
"""Fewest steps behind a mark from which on their times show what the mark costs."""
SEVERAL = -2
DIGITS = 9
"""Decimals of a sum of seconds: what differences of printed times leave behind them is noise."""
MAX_LONGEST = 8
MAX_RANKS = 8
_PARTS: Mapping[Cause, tuple[tuple[str, ...], ...]] = {
    "data": (("data_time_s",),),
    "communication": (("communication_time_s",),),
    "compute": (("compute_time_s",), ("forward_backward_time_s",), ("forward_time_s", "backward_time_s")),
    "generation": (("generation_time_s",),),
}
"""The metrics that add up to a part: the first of these that are printed."""
_OPTIMIZER = "optimizer_time_s"
"""Part of computing, beside passes."""
_MARKS: Mapping[str, Cause] = {"eval": "evaluation", "checkpoint": "checkpoint"}


class SlowRank(NamedTuple):
    """A rank that was slow at a step, and the part that grew there, if it prints it."""

    rank: int
    cause: Cause | None


class SlowStep(NamedTuple):
    """A slow step: its record and its rank, its time and the usual one, and the part that grew with its two times.

    ``slow_ranks`` are those that were slow at this step, None if fewer than two printed a time of it.
    """

    step: int | None
    line_number: int
    rank: int | None
    step_time_s: float
    usual_s: float
    cause: Cause | None
    part_s: float | None
    usual_part_s: float | None
    slow_ranks: tuple[SlowRank, ...] | None = None


class Share(NamedTuple):
    """How many slow steps have a cause, and the seconds that they took beyond the usual ones."""

    step_count: int
    excess_s: float


class SlowSteps(NamedTuple):
    """The slow steps of a phase; ``causes`` has the printed ones, and ``verdict`` that of most of the excess, if any has it."""

    step_count: int
    excess_s: float
    verdict: Cause | None
    causes: dict[Cause, Share]
    longest: tuple[SlowStep, ...]


class _Slow(NamedTuple):
    """Slow steps (k): their records (int64), times, and the medians before them; ``windows`` are the records before each."""

    rows: Integers
    own: Floats
    usual: Floats
    windows: Integers

    @property
    def excess(self) -> Floats:
        return self.own - self.usual


def find_slow(phase: Phase, records: Records, steady: Mask, metrics: Mapping[str, Statistic]) -> SlowSteps | None:
    """Return the slow steps among the ``steady`` records of a phase that stand; None if there are none.

    Means since the start say nothing of a step.
    """
    printed = metrics.get(TIME)
    if printed is None or printed.definition in CUMULATIVE:
        return None
    times = records.times(TIME)
    judged: Integers = np.flatnonzero(steady & (times > 0))
    if len(judged) <= LEAST:
        return None
    slow = _slow(times, judged)
    if not len(slow.rows):
        return None
    unit = _unit(times[judged])
    marked = place(marks_of(phase, 0), records)
    grown = [*_parts(records, slow, unit), *(_timed_marks(marked, slow, unit) if marked.before else ())]
    codes, part, usual_part = _one_of(grown, slow.excess)
    if marked.before:
        _add_marks(codes, marked, slow, judged)
    return _told(records, slow, codes, part, usual_part)


def _slow(times: Floats, judged: Integers) -> _Slow:
    """Return the slow ones of some records."""
    kept = times[judged]
    found: list[tuple[Integers, Floats]] = []
    for begin in range(0, len(kept), PIECE):
        places = candidates(kept, begin, FACTOR, LEAST)
        for start in range(0, len(places), TOGETHER):
            some = places[start : start + TOGETHER]
            before = medians_of(windows := values_at(kept, places_before(some)))
            off = medians_of(np.abs(windows - before[:, None]))
            own = kept[some]
            late = (own >= FACTOR * before) & (own - before >= DEVIATES * off)
            found.append((some[late], before[late]))
    places, usual = (np.concatenate(each) for each in zip(*found, strict=True)) if found else (np.empty(0, np.int64), np.empty(0))
    window = places_before(places)
    return _Slow(judged[places], kept[places], usual, np.where(window >= 0, judged[np.maximum(window, 0)], -1))


class _Growth(NamedTuple):
    """Which slow steps a cause explains (bool [k]), and the time of its part and the usual one (float64 [k])."""

    cause: Cause
    explains: Mask
    part: Floats
    usual: Floats


def _parts(records: Records, slow: _Slow, unit: float) -> Iterator[_Growth]:
    """Yield the parts of a step that the records print."""
    names = frozenset(records.metric_names())
    for cause, spellings in _PARTS.items():
        chosen = next((each for each in spellings if names.issuperset(each)), None)
        if chosen is None:
            continue
        more = (_OPTIMIZER,) if cause == "compute" and chosen != spellings[0] and _OPTIMIZER in names else ()
        columns = [records.times(name) for name in (*chosen, *more)]
        whole: Floats = np.sum(columns, axis=0)
        part = whole[slow.rows]
        windows = values_at(whole, slow.windows)
        usual = np.where(np.count_nonzero(~np.isnan(windows), axis=1) >= LEAST, medians_of(windows), math.nan)
        off = math.fsum(_unit(finite(column)) for column in columns)
        yield _Growth(cause, _explains(part, usual, slow, off, unit), part, usual)


def _timed_marks(marked: Placed, slow: _Slow, unit: float) -> Iterator[_Growth]:
    """Yield evaluations and checkpoints whose lines state how long they took, before the record of a slow step."""
    for kind, cause in _MARKS.items():
        part = np.full(len(slow.rows), math.nan)
        for number, row in enumerate(slow.rows.tolist()):
            seconds = [mark.seconds for mark in marked.before.get(row, ()) if mark.name == kind and mark.seconds is not None]
            if seconds:
                part[number] = math.fsum(seconds)
        usual = np.where(np.isnan(part), math.nan, 0.0)
        yield _Growth(cause, _explains(part, usual, slow, 0.0, unit), part, usual)


def _explains(part: Floats, usual: Floats, slow: _Slow, off: float, unit: float) -> Mask:
    """Return where a part, printed to ``off`` seconds, grew by most of the excess of a step, printed to ``unit`` seconds."""
    found: Mask = (part - usual - off >= MOST * (slow.excess + unit)) & (part <= SLACK * slow.own + off + unit)
    return found


def _without_outer(grown: Sequence[_Growth], excess: Floats) -> list[_Growth]:
    """Return the growths in which computing explains no step that a part inside it does.

    A batch may be fetched inside the forward pass, gradients sent inside the backward pass: computing then grew by what that
    part did, and no more.
    """
    outer = next((each for each in grown if each.cause == "compute"), None)
    if outer is None:
        return list(grown)
    own = outer.explains.copy()
    for inner in grown:
        if inner.cause in ("data", "communication"):
            rest = (outer.part - outer.usual) - (inner.part - inner.usual)
            own &= ~(inner.explains & (rest < MOST * excess))
    return [each._replace(explains=own) if each is outer else each for each in grown]


def _one_of(grown: Sequence[_Growth], excess: Floats) -> tuple[Integers, Floats, Floats]:
    """Return the number of each step's cause in ``CAUSES``, and the times of its part: -1 for none, ``SEVERAL`` if it is not
    known which."""
    grown = _without_outer(grown, excess)
    count = len(excess)
    codes: Integers = np.full(count, -1)
    part, usual = np.full(count, math.nan), np.full(count, math.nan)
    number = np.sum([each.explains for each in grown], axis=0, dtype=np.int64) if grown else np.zeros(count, np.int64)
    for each in grown:
        alone = each.explains & (number == 1)
        codes[alone], part[alone], usual[alone] = CAUSES.index(each.cause), each.part[alone], each.usual[alone]
    codes[number > 1] = SEVERAL
    return codes, part, usual


def _add_marks(codes: Integers, marked: Placed, slow: _Slow, judged: Integers) -> None:
    """Give steps without a cause that of the only kind of marks before them, if such steps are slow and few others are."""
    kinds = {row: {mark.name for mark in marks} for row, marks in marked.before.items()}
    among, late = frozenset(judged.tolist()), frozenset(slow.rows.tolist())
    rest = len(judged) - len(kinds.keys() & among)
    if rest <= 0 or len(late - kinds.keys()) > OTHERWISE * rest:
        return
    for kind, cause in _MARKS.items():
        alone = [row for row, found in kinds.items() if found == {kind} and row in among]
        if len(alone) >= FEWEST_MARKS and sum(row in late for row in alone) > MOST * len(alone):
            rows = frozenset(alone)
            codes[[code == -1 and row in rows for code, row in zip(codes.tolist(), slow.rows.tolist(), strict=True)]] = (
                CAUSES.index(cause)
            )


def _told(records: Records, slow: _Slow, codes: Integers, part: Floats, usual: Floats) -> SlowSteps:
    excess = slow.excess
    causes: dict[Cause, Share] = {}
    for number, cause in enumerate(CAUSES):
        mine = codes == number
        if mine.any():
            causes[cause] = Share(int(np.count_nonzero(mine)), _seconds(excess[mine]))
    whole = _seconds(excess)
    most = max(causes, key=lambda cause: causes[cause].excess_s, default=None)
    verdict = most if most is not None and causes[most].excess_s > MOST * whole else None
    order = np.lexsort((slow.rows, -excess))[:MAX_LONGEST].tolist()
    return SlowSteps(len(slow.rows), whole, verdict, causes, tuple(_step(records, slow, codes, part, usual, at) for at in order))


def _step(records: Records, slow: _Slow, codes: Integers, part: Floats, usual: Floats, at: int) -> SlowStep:
    row, code = int(slow.rows[at]), int(codes[at])
    step, rank = int(records.step[row]), int(records.rank[row])
    return SlowStep(
        step=None if step == NO_STEP else step,
        line_number=int(records.line[row]),
        rank=None if rank == NO_RANK else rank,
        step_time_s=float(slow.own[at]),
        usual_s=float(slow.usual[at]),
        cause=CAUSES[code] if code >= 0 else None,
        part_s=_known(part[at]),
        usual_part_s=_known(usual[at]),
    )


def _seconds(excess: Floats) -> float:
    return round(exact_sum(excess), DIGITS)


def _known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def with_ranks(found: SlowSteps, table: EventTable) -> SlowSteps:
    """Return the slow steps with the ranks that were slow at each and what grew there, by what all ranks print in ``table``.

    A rank that waits for another one prints communication, the other one what held it up.
    """
    steps = table.of_sources(lambda source: source.is_step and TIME in source.metrics)
    if len([rank for rank in distinct(steps.rank) if rank != NO_RANK]) < 2:
        return found
    of_step = {one.step: steps.rank[steps.step == one.step] for one in found.longest if one.step is not None}
    wanted = {rank for ranks in of_step.values() for rank in ranks.tolist() if rank != NO_RANK}
    slow = {rank: _of_rank(steps.where(steps.rank == rank)) for rank in sorted(wanted)}
    longest = []
    for one in found.longest:
        ranks = sorted({*of_step[one.step].tolist()} - {NO_RANK}) if one.step is not None else []
        late = [SlowRank(rank, slow[rank][one.step]) for rank in ranks if one.step in slow[rank]]
        longest.append(one._replace(slow_ranks=tuple(late[:MAX_RANKS]) if len(ranks) > 1 else None))
    return found._replace(longest=tuple(longest))


def _of_rank(table: EventTable) -> dict[int | None, Cause | None]:
    """Return the slow steps of one rank, each with its cause."""
    records = Records(table, np.zeros(1, np.int64))
    times = records.times(TIME)
    slow = _slow(times, np.flatnonzero(times > 0))
    codes, _, _ = _one_of(list(_parts(records, slow, _unit(finite(times)))), slow.excess)
    steps = records.step[slow.rows].tolist()
    return {step: CAUSES[code] if code >= 0 else None for step, code in zip(steps, codes.tolist(), strict=True)}


def _unit(values: Floats) -> float:
    """Return the unit of the last digit in the values [s]."""
    return resolution(values[:LOOKED_AT]) or 0.0
