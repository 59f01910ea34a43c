"""Stalls: silences between neighbouring step records that neither their steps nor a known event explain."""

from __future__ import annotations

import heapq
import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from receipt_cli.analysis.goodput.attempts import TIME, Try, covered, is_time, last_clock, strides
from receipt_cli.analysis.goodput.legs import Beyond, Legs, Tries
from receipt_cli.analysis.goodput.marked import Placed, Row
from receipt_cli.analysis.goodput.model import Stall, Stalls
from receipt_cli.analysis.goodput.steptime import Extra
from receipt_cli.events.model import Event
from receipt_cli.events.rows import RowRun

if TYPE_CHECKING:
    from receipt_cli.numeric.array_types import Floats

    Numbers: TypeAlias = "list[float] | Floats"

LONG = 3.0
"""A silence of so many ordinary steps is no slow step: step times rarely vary that much beside their neighbours."""
DOUBTFUL = 0.05
"""From this share of the gaps on, long ones are no exception: slow steps may be among them."""
FEW = 1
"""So many long gaps are an exception in the shortest log."""
LONGEST = 10
"""Stalls that are listed."""


class Ordinary(NamedTuple):
    """Seconds of a step: ``each``, or what a record prints itself where ``printed``; ``extras`` are records that print more."""

    each: float
    printed: bool = False
    extras: Mapping[int, Extra] = {}
    beyond: Mapping[int, Beyond] = {}
    """The same of records in relays, by the identity of the ``Legs``."""

    def of(self, event: Event, cover: float) -> float:
        """Return the seconds of the ``cover`` steps that a record is of."""
        extra = self.extras.get(id(event))
        if extra is not None:
            return extra.working
        value = event.metrics.get(TIME) if self.printed else None
        return (value if is_time(value) else self.each) * cover

    def of_run(self, run: RowRun, covers: Floats) -> Floats:
        """Return the same of the records in a run (float64 [n])."""
        found = run.metric(TIME) if self.printed else None
        if found is None:
            return covers * self.each
        known = (found[0] >= 0) & (True if found[1] is None else found[1])
        working: Floats = np.where(known, found[0], self.each) * covers
        return working

    def of_legs(self, legs: Legs) -> Floats:
        """Return the same of all records of a relay (float64 [n])."""
        values = legs.times(TIME) if self.printed else np.full(legs.records, np.nan)
        working: Floats = np.where(np.isnan(values), self.each, values) * legs.covers
        beyond = self.beyond.get(id(legs))
        if beyond is not None:
            working[beyond.at] = beyond.working
        return working


class Found(NamedTuple):
    """One stall: ``overtaken`` where its record was, ``marked`` the record behind it that follows a mark, if one does."""

    stall: Stall
    span: float
    cover: float
    overtaken: bool
    marked: Event | None


@dataclass(frozen=True, slots=True, eq=False)
class _Stretch:
    """Gaps of an attempt in order: seconds by the stamps (NaN where another event explains the gap), steps, seconds of
    the steps, and the record at the end of each. ``run`` is the event whose run they are of."""

    spans: Numbers
    covers: Numbers
    working: Numbers
    records: Sequence[tuple[Event, Event]] = ()
    run: Event | None = None

    def lines(self, index: int) -> tuple[int, int]:
        """Return the lines of the records at both ends of a gap."""
        if self.run is None:
            before, event = self.records[index]
            return _last_line(before), event.line
        run = self.run.run
        assert run is not None
        return (run.record(index - 1)[1] if index else self.run.line), run.record(index)[1]


def find_stalls(tries: Sequence[Tries], marks: Placed, grain: float, ordinary: Ordinary) -> list[Found]:
    """Return the stalls between the records of each attempt; none between records without stamps.

    ``marks`` are the known events between them; ``grain`` is how many seconds the stamps may be off.
    Where steps print no time of their own, a gap is long beside its neighbours, too: steps may slow down for good.
    """
    found: list[Found] = []
    for one in tries:
        if not isinstance(one, Try):
            found += _of_legs(one, grain, ordinary)
            continue
        stretches = list(_stretches(one, marks, ordinary))
        late = {id(event) for event in one.part[1]}
        for number, stretch in enumerate(stretches):
            for index in _candidates(stretch, grain):
                span, cover = float(stretch.spans[index]), float(stretch.covers[index])
                own = float(stretch.working[index])
                if not ordinary.printed:
                    own = max(own, _beside(stretches, number, index) * cover)
                    if span <= LONG * own + 2 * grain:
                        continue
                event = stretch.run if stretch.run is not None else stretch.records[index][1]
                stall = Stall(*stretch.lines(index), span - own)
                found.append(Found(stall, span, cover, id(event) in late, _marked_behind(stretches, number, index, marks)))
    return found


def _of_legs(legs: Legs, grain: float, ordinary: Ordinary) -> Iterator[Found]:
    """Yield the stalls between the records of each attempt of a relay."""
    spans, covers, working = legs.spans, legs.covers, ordinary.of_legs(legs)
    with np.errstate(invalid="ignore"):
        long = np.flatnonzero(spans > LONG * working + 2 * grain)
    lines, stands = (legs.line, legs.stands) if len(long) else (spans, spans)
    for index in long.tolist():
        span, cover, own = float(spans[index]), float(covers[index]), float(working[index])
        if not ordinary.printed:
            near = [at for at in (index - 1, index + 1) if at < len(spans) and not math.isnan(spans[at])]
            own = max(own, min((float(spans[at]) / float(covers[at]) for at in near), default=0.0) * cover)
            if span <= LONG * own + 2 * grain:
                continue
        yield Found(Stall(int(lines[index - 1]), int(lines[index]), span - own), span, cover, not stands[index], None)


def count_gaps(tries: Sequence[Tries]) -> int:
    """Return how many neighbouring records there are."""
    return sum(max(0, one.records - one.count) for one in tries)


def is_doubtful(stalls: int, gaps: int) -> bool:
    """True where so many of the gaps are long that slow steps may be among them."""
    return stalls > max(FEW, DOUBTFUL * gaps)


def listed(found: Sequence[Found], doubtful: bool) -> Stalls:
    """Return the stalls for the account: how many, their seconds, and the longest in order."""
    stalls = [one.stall for one in found]
    longest = heapq.nsmallest(LONGEST, stalls, key=lambda stall: (-stall.duration_s, stall.line_number))
    return Stalls(len(stalls), math.fsum(stall.duration_s for stall in stalls), doubtful, longest)


def _stretches(one: Try, marks: Placed, ordinary: Ordinary) -> Iterator[_Stretch]:
    spans: list[float] = []
    covers: list[float] = []
    working: list[float] = []
    records: list[tuple[Event, Event]] = []
    before: Event | None = None
    for event in one.events:
        if before is not None:
            cover = covered(before, event, 1)
            spans.append(event.clock - last_clock(before) if id(event) not in marks.before and cover else math.nan)
            covers.append(float(cover))
            working.append(ordinary.of(event, cover))
            records.append((before, event))
        if event.run is not None:
            yield _Stretch(spans, covers, working, records)
            yield _of_run(event, event.run, marks.rows_of(event), ordinary)
            spans, covers, working, records = [], [], [], []
        before = event
    yield _Stretch(spans, covers, working, records)


def _of_run(event: Event, run: RowRun, rows: Sequence[Row], ordinary: Ordinary) -> _Stretch:
    spans = np.diff(run.clock, prepend=event.clock)
    spans[[row.place for row in rows]] = np.nan
    covers = strides(event, len(run))
    return _Stretch(spans, covers, ordinary.of_run(run, covers), run=event)


def _candidates(stretch: _Stretch, grain: float) -> Sequence[int]:
    """Return the gaps of a stretch that are long beside their own steps."""
    if stretch.run is None:
        rows = zip(stretch.spans, stretch.working, strict=True)
        return [index for index, (span, own) in enumerate(rows) if span > LONG * own + 2 * grain]
    with np.errstate(invalid="ignore"):
        long: list[int] = np.flatnonzero(stretch.spans > LONG * np.asarray(stretch.working) + 2 * grain).tolist()
    return long


def _beside(stretches: Sequence[_Stretch], number: int, index: int) -> float:
    """Return the shorter of the seconds per step in the gaps before and behind one; 0 where there is no other."""
    paces = []
    for towards in (-1, 1):
        at, place = number, index + towards
        while 0 <= at < len(stretches) and not 0 <= place < len(stretches[at].spans):
            at += towards
            place = 0 if towards > 0 else (len(stretches[at].spans) - 1 if at >= 0 else 0)
        if 0 <= at < len(stretches):
            span, cover = float(stretches[at].spans[place]), float(stretches[at].covers[place])
            if cover and not math.isnan(span):
                paces.append(span / cover)
    return min(paces, default=0.0)


def _marked_behind(stretches: Sequence[_Stretch], number: int, index: int, marks: Placed) -> Event | None:
    """Return the record that follows the one at the end of a gap, where a mark stands between the two."""
    if index + 1 < len(stretches[number].spans):
        stretch, at = stretches[number], index + 1
    elif number + 1 < len(stretches):
        stretch, at = stretches[number + 1], 0
    else:
        return None
    if stretch.run is not None:
        rows = marks.rows_of(stretch.run)
        place = bisect_left(rows, at, key=lambda row: row.place)
        return rows[place].event if place < len(rows) and rows[place].place == at else None
    event = stretch.records[at][1] if at < len(stretch.records) else None
    return event if event is not None and id(event) in marks.before else None


def _last_line(event: Event) -> int:
    return event.line if event.run is None else event.run.record(len(event.run) - 1)[1]
