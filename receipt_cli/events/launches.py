"""Split the events of a log into launches: the runs that follow one another in it.

A queue job, a sweep, the folds of a cross-validation and an appended `nohup.out` contain several runs. Another run, not another
attempt, begins if the steps start at the very beginning again, no launcher reports a restart, and a new banner shows another
configuration or other losses, or the run before was done, or (a doubt) the records have other columns or values. A banner with
another model begins one wherever the steps go on, and another plan where they are far ahead. Otherwise it is the same run:
nothing of it is hidden then.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from receipt_cli.definitions.failure_markers import Catalogue
from receipt_cli.events.copies import repeats_at
from receipt_cli.events.starts import CONFIGURATION, FEWEST, MODEL, STRONG, Alike, Key, Known, Starts, introduces, runs_named
from receipt_cli.events.table import EventTable, Row, at_rows, chosen, distinct, put, where
from receipt_cli.grammar.model import MOMENTS
from receipt_cli.numeric.array_types import Floats, Integers
from receipt_cli.numeric.spill import slices
from receipt_cli.records.envelope import NO_RANK
from receipt_cli.records.place import MENTIONED
from receipt_cli.scan.columns import POSITION_BITS
from receipt_cli.scan.segment import Hits, SegmentBody

END = 1 << 62
BANNER = 4
"""Twice the fewest kinds of header lines of a banner."""
FOLD, DOUBT, UNNUMBERED = "fold", "doubt", "unnumbered"
"""Kinds of launches: one of many starts in a loop, one that only its records show, or one whose records have no number."""
NO_BANNERS: Mapping[int, bool | None] = MappingProxyType({})
MEMORY = "cuda_oom"
"""The reason of a failure that a program may catch to begin anew with a smaller batch."""
DAY = 86400
"""Seconds of a day. Steps that begin anew after so long, without a restart that a launcher reports, are of another run."""
LONG = 8
"""Fewest records of a launch that are more than a few pasted lines."""
LEAD = 1000
"""Most events before the first step of a launch that may belong to it."""
SAID_DONE = frozenset({"said_to_be_done", "training_time_said"})
"""The marker of a line that reports the end of a training."""
PREEMPTED = "preempted"
"""The marker of a job that the scheduler stopped and put into its queue again."""
PROGRAM_BEGINS = ("generic", "program_begins")
"""The learned rule of the lines that a program prints first, about its arguments or its checkout."""


class Launch(NamedTuple):
    """One run of the log: its events, from position ``start`` to ``end`` (exclusive), and the line that begins it.

    ``apart``: it shares no banner with the run before. Starts in a loop, and without a logged start, share one. ``doubtful``: the
    line of its first step if only the records show that it is another run. ``contested``: the lines of its steps that begin anew
    if little indicates that the program was started again. ``banners``: positions in the log (ascending) of steps after a long
    banner that no rule reads.
    """

    events: EventTable
    start: int = 0
    end: int = END
    line: int = 1
    apart: bool = False
    doubtful: int | None = None
    contested: tuple[int, ...] = ()
    banners: tuple[int, ...] = ()


def split_launches(
    events: EventTable, body: SegmentBody, catalogue: Catalogue, banners: Mapping[int, bool | None] = NO_BANNERS
) -> list[Launch]:
    """Return the runs of a log in log order, at least one, each with its events.

    ``banners``: positions in the log of step records after a banner that no rule reads, and whether it is long. If a start in a
    loop (a fold), or one that only its records show, has no banner of its own, the banner before it counts.
    """
    cuts, signs, contested = _cuts_of(events, body, catalogue, banners)
    launches: list[Launch] = []
    banner = before = events[:0]
    for begin, end in pairwise([0, *cuts, len(events)]):
        mine = events[begin:end]
        introduced = _introduction(mine)
        first = mine[0] if begin else None
        last_at = events[end].at if end < len(events) else END
        sign = signs.get(begin)
        # records without a number are learned from all launches: those of one may be too few
        apart = sign != UNNUMBERED and (bool(introduced) or not banner or sign not in (FOLD, DOUBT))
        doubtful = events[begin].line if sign == DOUBT and not _outdoes(mine, before) else None
        own = mine if apart else banner.with_(mine)
        against = tuple(events[at].line for at in contested if begin <= at < end)
        launches.append(Launch(own, first.at if first else 0, last_at, first.line if first else 1, apart, doubtful, against))
        banner, before = introduced or banner, mine
    return launches


def _outdoes(mine: EventTable, before: EventTable) -> bool:
    """Return whether a launch begins no later than the one before, has as many positions up to its end, and rises beyond it.

    Then it does not matter whether it is another attempt, which would supersede all records before it. A few lines that were
    pasted into a log are no such launch: the step goes back after them, or steps are missing.
    """
    ours, theirs = map(_places, (mine, before))
    if not LONG <= len(theirs) < len(ours) or ours[0] > theirs.min() or ours[-1] < theirs.max():
        return False
    return bool((np.diff(ours) > 0).all() and np.count_nonzero(ours <= theirs.max()) >= len(theirs))


def _places(events: EventTable) -> Floats:
    """Return the positions in training of the step records that print one (float64)."""
    places = events.of_sources(lambda source: source.is_step).positions
    return places[~np.isnan(places)]


def _cuts_of(
    events: EventTable, body: SegmentBody, catalogue: Catalogue, banners: Mapping[int, bool | None]
) -> tuple[list[int], dict[int, str], list[int]]:
    """Return the rows that begin another launch; by row ``FOLD`` or ``DOUBT``, if it is one of these; and the contested rows.

    A row is contested if a step begins anew there and little indicates another start. If a log was appended to itself, the rows
    of its first copy count for each copy.
    """
    period = repeats_at(events) if len(events) else None
    if period is None:
        walk = _Walk(events, body, catalogue, banners)
        return list(walk.cuts()), walk.signs, walk.contested
    cuts, signs, contested = _cuts_of(events[:period], body, catalogue, banners)
    starts = range(period, len(events), period)
    again = [cut for start in starts for cut in (start, *(start + own for own in cuts))]
    signs |= {start + own: sign for start in starts for own, sign in signs.items()}
    return [*cuts, *again], signs, [*contested, *(start + own for start in starts for own in contested)]


def window(body: SegmentBody, launch: Launch) -> SegmentBody:
    """Return the scanned log ``body`` with the markers of one launch only."""
    if (launch.start, launch.end) == (0, END):
        return body
    kept: dict[str, Hits] = {}
    for name, hits in body.markers.items():
        low, high = bisect_left(hits.at, launch.start), bisect_left(hits.at, launch.end)
        if low < high:
            known = [message for message in hits.known if launch.start <= message[0] < launch.end]
            texts = known or [(hits.at[high - 1], b"", None)]  # the texts of other launches say nothing about this one
            kept[name] = Hits(hits.at[low:high], hits.line[low:high], texts, hits.rank[low:high], hits.form[low:high], hits.hosts)
    return replace(body, markers=kept, records=min(body.records, launch.end >> POSITION_BITS))


def _introduction(events: EventTable) -> EventTable:
    """Return the header lines before the first step that print facts and no metric."""
    steps = events.by_source(lambda source: source.rule.event == "step")
    first = events[: int(steps.argmax()) if steps.any() else len(events)]
    lines = first.of_sources(lambda source: source.rule.event == "header")
    return lines.where(np.array([bool(row.facts) and not row.metrics for row in lines], np.bool_))


class _Walk:
    """Finds where another launch begins, in one pass over the events.
    A step record that goes on from the record before it changes nothing: it is not looked at."""

    def __init__(self, events: EventTable, body: SegmentBody, catalogue: Catalogue, banners: Mapping[int, bool | None]) -> None:
        self.events = events
        self.banners = banners
        found = catalogue.among(body.markers)
        self.troubles = _at(body, [m.id for m in found if m.role in ("cause", "stop", "error")])
        memory = {at >> POSITION_BITS for at in _at(body, [m.id for m in found if m.reason == MEMORY])}
        self.fatal = [at for at in self.troubles if at >> POSITION_BITS not in memory]
        self.done = {at >> POSITION_BITS for at in _at(body, SAID_DONE)}
        self.restarts = _at(body, [m.id for m in found if m.role == "restart" or m.id == PREEMPTED])
        self.starts = Starts(events)
        self.of_ranks = len(distinct(events.rank)) > 1
        self.named = runs_named(events)
        self.signs: dict[int, str] = {}
        """``FOLD`` or ``DOUBT`` by the row that begins such a launch."""
        self.contested: list[int] = []
        self.weak = False
        self._new(0)

    def _new(self, begin: int) -> None:
        self.begin = begin
        self.begun_at: dict[Key, int] = {}
        """For each kind of step record the first one in the launch, by its number among all of its kind."""
        self.banner: set[tuple[str, str]] = set()
        self.opening: tuple[str, str] | None = None
        self.openings = 0
        self.known = Known()
        self.pending: int | None = None  # the row at which a banner begins that may be another launch's
        self.pending_rules: set[tuple[str, str]] = set()
        self.pending_known = Known()
        self.ended = False
        self.begun: list[tuple[int, int, float]] = []

    def _tracks(self, index: int) -> dict[Key, Alike]:
        """Return the step records of the running launch before the row ``index``, by kind."""
        ahead = self.starts.ahead
        return {key: ahead[key].between(begin, ahead[key].before(index)) for key, begin in self.begun_at.items()}

    def _noted(self) -> Integers:
        """Return the rows (ascending) at which a launch may begin or end, whatever comes before them."""
        wanted = np.array(self.events.by_source(lambda source: source.rule.event in ("header", "compile", "end")))
        for coming in self.starts.ahead.values():
            planned = at_rows(self.events.column("planned"), coming.rows)
            odd = coming.back & coming.fresh
            for part in slices(len(planned) - 1):
                plans = planned[part.start : part.stop + 1]
                odd[part.start + 1 : part.stop + 1] |= (plans[1:] != plans[:-1]) & ~np.isnan(plans[1:])
            put(wanted, chosen(coming.rows, where(odd)), True)
        wanted[[*self.named]] = True
        for part in slices(len(wanted)) if self.banners else ():
            wanted[part] |= np.isin(self.events.at[part], [*self.banners])
        return np.flatnonzero(wanted)

    def _looked_at(self) -> Iterator[int]:
        """Yield the rows that may change something.
        They are the noted ones, the first of each kind in a launch, and from a banner or an end on all up to the next step."""
        noted, ahead = self._noted(), self.starts.ahead
        index = place = 0
        while index < len(self.events):
            if self.pending is None and not self.ended:
                place += int(np.searchsorted(noted[place:], index))
                firsts = (coming.before(index) for key, coming in ahead.items() if key not in self.begun_at)
                missing = [coming for key, coming in ahead.items() if key not in self.begun_at]
                news = [c.row(n) for c, n in zip(missing, firsts, strict=True) if n < len(c.places)]
                index = min([*noted[place : place + 1].tolist(), *news], default=len(self.events))
                if index == len(self.events):
                    return
            yield index
            index += 1

    def cuts(self) -> Iterator[int]:
        """Yield the rows that begin another launch."""
        for index in self._looked_at():
            event = self.events[index]
            kind = event.rule.event
            if kind in ("header", "compile"):
                if self._begins_again(event):
                    yield index
                    self._new(index)
                self._header(index, event)
                self.begun += [(event.rank, order, time) for order, time in _beginnings(event)]
            elif kind == "end":
                if self.pending is not None and self._introduced_again(self.pending, index):
                    yield self.pending
                    self._resume_at(self.pending, index)
                self._merge()
                self.ended = event.texts.get("status", "success").lower() in ("success", "ok")
            elif self.starts.codes[index] >= 0:
                key = self.starts.key(index)
                cut = self._step(index, event, float(self.events.positions[index]))
                if cut is not None:
                    if self.weak:
                        self.signs[cut] = DOUBT
                    elif index in self.named or (key in self.begun_at and self.starts.folds(key)[1]):
                        self.signs[cut] = FOLD
                    self.weak = False
                    yield cut
                    self._resume_at(cut, index)
                self.ended = False
                if event.planned is not None:
                    self.known.setdefault("planned_steps", set()).add(float(event.planned))
                self.begun_at.setdefault(key, self.starts.ahead[key].before(index))
            elif event.at in self.banners:  # without a number
                cut = self._boundary(index)
                self.signs[cut] = UNNUMBERED
                yield cut
                self._resume_at(cut, index)
        if self.pending is None:
            return
        died = self._troubled(self.events[self.pending].at, END) and self.known.differs(self.pending_known, STRONG)
        if self._introduced_again(self.pending, len(self.events)) or died:  # which failed before its first step
            yield self.pending

    def _begins_again(self, event: Row) -> bool:
        """Return whether a benchmark line reports the beginning of another run: this rank has reported it, or any a later moment.

        The time must be later than all reported before. A log's only label is that of its launcher, whose processes may each
        report.
        """
        for order, time in _beginnings(event):
            ranks = {rank for rank, place, _ in self.begun if place == order and self.of_ranks} - {NO_RANK}
            later = all(past < time for *_, past in self.begun)
            if later and (event.rank in ranks or any(place > order for _, place, _ in self.begun)):
                return True
        return False

    def _resume_at(self, cut: int, index: int) -> None:
        """Begin the launch at ``cut``; the header lines before its first step are its banner."""
        self._new(cut)
        for event in self.events[cut:index]:
            if event.rule.event in ("header", "compile"):
                self._introduce(event)

    def _introduce(self, event: Row) -> None:
        """Add a line to the banner of the running launch, and its values to the configuration."""
        self.opening = self.opening or event.source.key
        self.openings += event.source.key == self.opening
        self.banner.add(event.source.key)
        self.known.learn(event)

    def _header(self, index: int, event: Row) -> None:
        rule = event.source.key
        if self.pending is None and not self.begun_at:
            again = rule in self.banner and (self.ended or self._troubled(self.events[index - 1].at, event.at))
            if not again:
                self._introduce(event)
                return
        elif self.pending is None and rule not in self.banner and self.banner:
            return  # a figure printed after the steps, no banner
        self.pending = index if self.pending is None else self.pending
        self.pending_rules.add(rule)
        self.pending_known.learn(event)

    def _step(self, index: int, event: Row, position: float) -> int | None:
        """Return the row at which the launch of this step record begins, None if it is the running one."""
        if index in self.named:
            return self._boundary(index)
        if self.banners.get(event.at, True) is None:
            self.contested.append(index)
            return self._decided(another=False)
        own, tracks = self.starts.key(index), self._tracks(index)
        track = tracks.get(own)
        introduced = self.pending is not None and (bool(self.banner) or len(self.pending_rules) > 1)
        introduced = introduced or event.at in self.banners
        if not tracks:
            if self.ended and self.starts.are_fresh(index):
                return self._boundary(index)
            # after trouble, a banner begins another launch if most of the one before comes again, or the configuration differs
            return self._decided(self._comes_again() or self.known.differs(self.pending_known, STRONG))
        if track is None:
            if introduced and all(key[:2] != own[:2] for key in tracks):
                if PROGRAM_BEGINS in self.pending_rules & self.banner:
                    return self._boundary(index)
                self._merge()  # another stage of the same job introduces itself
            return self._boundary(index) if self._other_records(index, position, tracks, introduced) else None
        last = track.places[-1]
        back = position < last or (position == last and (introduced or self.ended))
        if not back:
            if introduced and self.starts.are_fresh(index) and self._introduced_anew(event):
                return self._boundary(index)
            if track.leaps_to(event, position):
                return self._boundary(index)
            # if steps go on after a banner, the run was resumed, unless the model is another
            return self._decided(introduced and self.known.differs(self.pending_known, MODEL))
        if self._another(index, event, position, track, introduced):
            return self._boundary(index)
        self._merge()
        return None

    def _decided(self, another: bool) -> int | None:
        """Return the row of the last banner if it begins another launch; else add it to the running launch and return None."""
        if not another:
            self._merge()
        return self.pending

    def _introduced_again(self, begin: int, end: int) -> bool:
        """Return whether a run without steps ended and most of its banner comes again; evaluations that go on do not count."""
        if not self.ended or self.begun_at or not self._comes_again():
            return False
        before, after = (self.events.steps[start:stop] for start, stop in ((self.begin, begin), (begin, end)))
        before, after = before[~np.isnan(before)], after[~np.isnan(after)]
        return not len(before) or not len(after) or bool(after[0] <= before.max())

    def _comes_again(self) -> bool:
        return 2 * len(self.pending_rules & self.banner) >= max(len(self.banner), BANNER)

    def _introduced_anew(self, event: Row) -> bool:
        """Return whether most of the banner, or another configuration, comes before a step record."""
        return event.at in self.banners or self.known.differs(self.pending_known, CONFIGURATION)

    def _another(self, index: int, event: Row, position: float, track: Alike, introduced: bool) -> bool:
        if not self.starts.are_fresh(index) or self._troubled(track.last_row.at, event.at, self.restarts):
            return introduced and self.known.differs(self.pending_known, MODEL)
        if introduced and self.known.differs(self.pending_known, CONFIGURATION):
            return True
        if event.clock - track.last_row.clock >= DAY:
            return True
        if event.planned is not None and track.last_row.planned is not None and event.planned != track.last_row.planned:
            # with another plan in the same process it is another stage of the same run
            if introduced or self.ended or track.left_epoch or self._troubled(track.last_row.at, event.at, self.fatal):
                return True
            if self._contest(index, track):
                return False
            lengths = [row.counters.get("epoch_steps", 0) for row in (event, track.last_row)]
            same = lengths[0] != 0 and event.planned * lengths[1] == track.last_row.planned * lengths[0]
            # as many epochs have another length, or the plan was not reached; more lines between may be a banner, which decides
            self.weak = event.line - track.last_row.line <= BANNER and (same or not track.nearly_done)
            return self.weak
        if self.ended or track.reached_plan or self.starts.are_earlier(index, track, introduced=introduced):
            return True
        if introduced and not self.starts.are_repeated(index, track):
            return True
        if introduced and self.banners.get(event.at, True):
            return False
        if self._contest(index, track):
            return False
        first, many = self.starts.folds(self.starts.key(index))
        if many:  # many starts from the beginning without a banner are a loop over runs, if nothing failed
            return position == first == track.places[0] and not self._troubled(track.table[track.row(0)].at, event.at)
        self.weak = self.starts.are_others(index, track)
        return self.weak

    def _contest(self, index: int, track: Alike) -> bool:
        """Note and return whether steps begin anew after only an error that a program may catch, or beside those before."""
        place = track.last_row.at, self.events[index].at
        caught = self._troubled(*place) and not self._troubled(*place, self.fatal)
        found = caught or self.starts.are_beside(index, track)
        self.contested += [index] * found
        return found

    def _other_records(self, index: int, position: float, tracks: dict[Key, Alike], introduced: bool) -> bool:
        """Return whether other rules than those of the running launch read records from here on, from a beginning.
        Records of another stage or another rank do not count, nor fewer than three if nothing else shows another launch."""
        grammar, stage, rule, rank = self.starts.key(index)
        same = [key for key in tracks if key[:2] == (grammar, stage)]
        ranks = [key for key in same if key[2] == rule and NO_RANK not in (rank, key[3])]
        own = self.events[index].step is None
        begun = [float(track.places[-1]) for track in tracks.values() if (track.last_row.step is None) == own]
        if len(same) < len(tracks) or ranks or not self.starts.are_fresh(index):
            return False
        if position > max(begun, default=position) and not (introduced and self._introduced_anew(self.events[index])):
            return False
        ahead = ((self.starts.ahead[key], self.starts.ahead[key].before(index)) for key in tracks)
        until = min((alike.row(number) for alike, number in ahead if number < len(alike)), default=len(self.events))
        is_step = self.events[index:until].by_source(lambda source: source.is_step)
        last_at = max(track.last_row.at for track in tracks.values())
        shown = introduced or self.ended or self._troubled(last_at, self.events[index].at)
        records = sum(map(len, tracks.values()))
        self.weak = not shown and min(int(np.count_nonzero(is_step)), records) >= FEWEST
        return shown or self.weak

    def _boundary(self, index: int) -> int:
        """Return the row of the first event of the launch whose first step record is at the row ``index``."""
        event, begin = self.events[index], index
        tracks = self._tracks(index)
        while begin > max(self.begin + 1, index - LEAD) and self._leads(begin - 1, event, tracks):
            begin -= 1
        if self.pending is not None:
            begin = min(begin, self.pending)
        begin = max(begin, self._last_opening(index))
        while begin < index and self._trails(self.events[begin]):
            begin += 1
        return begin

    def _last_opening(self, index: int) -> int:
        """Return the last row before a step record that opens a banner, if the run before printed this line at its end, too.
        Such a line came once before the first step of that run. 0 if it comes only once, never, or from several ranks."""
        begin = index if self.pending is None else self.pending
        again = [at for at in range(begin, index) if self.events[at].source.key == self.opening]
        ranks = {self.events[at].rank for at in again}
        return again[-1] if self.openings == len(ranks) == 1 and len(again) > 1 else 0

    def _leads(self, index: int, first: Row, tracks: dict[Key, Alike]) -> bool:
        """Return whether a run may print this event before its first step."""
        event = self.events[index]
        if event.rule.event == "eval":
            if event.step is None:
                return self.starts.is_first_evaluation(self.begin, index)
            epochs = event.metrics.get("epoch", 0.0), first.metrics.get("epoch", math.inf)
            later = event.step > first.step if first.step is not None else epochs[0] > epochs[1]
            return not later and all(event.step != track.last_row.step for track in tracks.values())
        return event.rule.event in ("header", "compile", "phase", "progress")

    def _trails(self, event: Row) -> bool:
        """Return whether the run before may have printed this line after its end: a figure, or that it is done."""
        another = bool(self.banner) and event.source.key not in self.banner
        figure = another and not introduces(event)
        return event.rule.event == "header" and (figure or event.at >> POSITION_BITS in self.done)

    def _troubled(self, start: int, end: int, troubles: Sequence[int] | None = None) -> bool:
        troubles = self.troubles if troubles is None else troubles
        return bisect_left(troubles, start) < bisect_left(troubles, end)

    def _merge(self) -> None:
        if self.pending is None:
            return
        self.known.join(self.pending_known)
        self.banner |= self.pending_rules
        self.pending, self.pending_rules, self.pending_known = None, set(), Known()


def _beginnings(event: Row) -> list[tuple[int, float]]:
    """Return which of the ``MOMENTS`` a benchmark line reports as the beginning of its run, and their times."""
    times = ((order, event.facts.get(name)) for order, name in enumerate(MOMENTS[:2]))
    return [(order, time) for order, time in times if isinstance(time, float)]


def _at(body: SegmentBody, names: Collection[str]) -> list[int]:
    """Return the positions in the log of some markers, ascending; texts that only mention a marker are left out."""
    found = (body.markers[name] for name in names if name in body.markers)
    return sorted(at for hits in found for at, form in zip(hits.at, hits.form, strict=True) if form != MENTIONED)
