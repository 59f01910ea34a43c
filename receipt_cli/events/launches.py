"""Split the events of a log into launches: the runs that follow one another in it.

A queue job, a sweep, the folds of a cross-validation and an appended `nohup.out` contain several runs. What separates another
run from another attempt of the same one: the steps begin at the very start again and the trainer introduced itself
anew, with another configuration, or after the run before was done. A restart by the launcher, a resumed checkpoint
or the same trajectory printed again speak for the same run. In doubt it is one run: nothing of it is hidden then.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from receipt_cli.definitions.failure_markers import Catalogue
from receipt_cli.events.copies import repeats_at
from receipt_cli.events.model import Event
from receipt_cli.lazy_dataclass import dataclass, field, replace
from receipt_cli.records.place import MENTIONED
from receipt_cli.scan.columns import POSITION_BITS
from receipt_cli.scan.segment import Hits, SegmentBody

END = 1 << 62
MODEL = frozenset({"parameter_count", "model_name"})
STRONG = MODEL | {"sequence_length", "samples_per_step", "tokens_per_step", "planned_steps"}
CONFIGURATION = STRONG | {
    "seed", "world_size", "micro_batch_size", "gradient_accumulation_steps", "data_parallel", "tensor_parallel",
    "pipeline_parallel", "context_parallel", "expert_parallel", "accelerator_name", "accelerator_count", "precision", "optimizer",
}  # fmt: skip
"""Facts that belong to a run as it was started: where two launches print others, they are two runs."""
FOLDS = 3
"""So many starts from the beginning, none of them after a sign of trouble, are a loop and no restarts."""
COMPARED = 20
"""Records of two starts that are compared to see whether the same trajectory is printed again."""
LEAD = 1000
"""Events before the first step of a launch that are looked at, whether they are its own."""
PREEMPTED = "preempted"
"""The marker of a job that the scheduler took away: it puts it into its queue again."""
Key = tuple[str, str | None, str, int]
Known = dict[str, set[float | str]]


class Launch(NamedTuple):
    """One run of the log: its events, from position ``start`` to ``end`` (exclusive), and the line that begins it.

    ``apart``: it shares no banner with the run before, as a fold does.
    """

    events: list[Event]
    start: int = 0
    end: int = END
    line: int = 1
    apart: bool = False


def split_launches(
    events: Sequence[Event], body: SegmentBody, catalogue: Catalogue, banners: Collection[int] = ()
) -> list[Launch]:
    """Return the runs of a log in log order, at least one, each with its events.

    ``banners`` are the positions of step records before which a banner is that no rule reads. A launch without a banner
    of its own (a fold) goes by the banner before it.
    """
    cuts = _cuts_of(events, body, catalogue, banners)
    launches: list[Launch] = []
    banner: list[Event] = []
    for begin, end in pairwise([0, *cuts, len(events)]):
        mine = list(events[begin:end])
        introduced = _introduction(mine)
        first = mine[0] if begin else None
        last_at = events[end].at if end < len(events) else END
        apart = bool(introduced) or not banner
        own = mine if apart else [*banner, *mine]
        launches.append(Launch(own, first.at if first else 0, last_at, first.line if first else 1, apart))
        banner = introduced or banner
    return launches


def _cuts_of(events: Sequence[Event], body: SegmentBody, catalogue: Catalogue, banners: Collection[int]) -> list[int]:
    """Return the indices of the events that begin another launch; a log appended to itself has those of each copy."""
    period = repeats_at(events)
    if period is None:
        return _Walk(events, body, catalogue, banners).cuts()
    cuts = _cuts_of(events[:period], body, catalogue, banners)
    starts = range(period, len(events), period)
    return [*cuts, *(cut for start in starts for cut in (start, *(start + own for own in cuts)))]


def window(body: SegmentBody, launch: Launch) -> SegmentBody:
    """Return ``body`` with the markers of one launch only."""
    if (launch.start, launch.end) == (0, END):
        return body
    kept: dict[str, Hits] = {}
    for name, hits in body.markers.items():
        low, high = bisect_left(hits.at, launch.start), bisect_left(hits.at, launch.end)
        if low < high:
            texts = [t for t in hits.texts if launch.start <= t[0] < launch.end] or hits.texts[-1:]
            kept[name] = Hits(hits.at[low:high], hits.line[low:high], texts, hits.rank[low:high], hits.form[low:high], hits.hosts)
    return replace(body, markers=kept, records=min(body.records, launch.end >> POSITION_BITS))


@dataclass(slots=True)
class _Track:
    """One kind of step record of one launch: where it began, and where it is."""

    first: float
    last: float
    event: Event
    values: dict[float, Event] = field(default_factory=dict)
    records: int = 1


def _introduction(events: Sequence[Event]) -> list[Event]:
    """Return the header lines before the first step that name what is trained."""
    first = next((i for i, e in enumerate(events) if e.rule.event == "step"), len(events))
    return [e for e in events[:first] if e.rule.event == "header" and e.facts and not e.metrics]


class _Walk:
    """One pass over the events that finds where another launch begins."""

    def __init__(self, events: Sequence[Event], body: SegmentBody, catalogue: Catalogue, banners: Collection[int]) -> None:
        self.events = events
        self.banners = banners
        self.troubles = _positions(body, catalogue, ("cause", "stop", "error"))
        self.restarts = _positions(body, catalogue, ("restart",), PREEMPTED)
        self.ahead: dict[Key, list[tuple[int, float]]] = {}
        self.unlisted: Counter[Key] = Counter()  # records of runs, which no start is among
        self.keys: list[Key] = []
        self.folds: dict[Key, tuple[float, bool]] = {}
        stage: str | None = None
        for index, event in enumerate(events):
            if event.rule.event == "phase":
                stage = event.rule.phase or event.texts.get("phase")
            self.keys.append((event.grammar.id, event.rule.phase or stage, event.rule.name, event.rank))
            clock = _clock(event)
            if clock is not None:
                self.ahead.setdefault(self.keys[index], []).append((index, clock))
                self.unlisted[self.keys[index]] += event.drawn - 1
        self._new(0)

    def _new(self, begin: int) -> None:
        self.begin = begin
        self.tracks: dict[Key, _Track] = {}
        self.banner: set[tuple[str, str]] = set()
        self.known: Known = {}
        self.pending: int | None = None  # where a banner that may be another launch's begins
        self.pending_rules: set[tuple[str, str]] = set()
        self.pending_known: Known = {}
        self.ended = False

    def cuts(self) -> list[int]:
        """Return the indices of the events that begin another launch."""
        return list(self._cuts())

    def _cuts(self) -> Iterator[int]:
        for index, event in enumerate(self.events):
            kind = event.rule.event
            if kind in ("header", "compile"):
                self._header(index, event)
            elif kind == "end":
                self._merge()
                self.ended = event.texts.get("status", "success").lower() in ("success", "ok")
            elif (clock := _clock(event)) is not None:
                cut = self._step(index, event, clock)
                if cut is not None:
                    yield cut
                    self._resume_at(cut, index)
                self._track(self.keys[index], event, clock)
        if self.pending is not None and self._died_at_start():
            yield self.pending

    def _resume_at(self, cut: int, index: int) -> None:
        """Begin the launch at ``cut``; the lines before its first step are its banner."""
        self._new(cut)
        for event in self.events[cut:index]:
            if event.rule.event in ("header", "compile"):
                self.banner.add(_rule(event))
                _learn(self.known, event)

    def _header(self, index: int, event: Event) -> None:
        rule = _rule(event)
        if self.pending is None and not self.tracks:
            again = rule in self.banner and self._troubled(self.events[index - 1].at, event.at)
            if not again:
                self.banner.add(rule)
                _learn(self.known, event)
                return
        elif self.pending is None and rule not in self.banner and self.banner:
            return  # a figure printed after the steps, no banner
        self.pending = index if self.pending is None else self.pending
        self.pending_rules.add(rule)
        _learn(self.pending_known, event)

    def _step(self, index: int, event: Event, clock: float) -> int | None:
        """Return where the launch begins that this step record belongs to, or None when it is the running one."""
        track = self.tracks.get(self.keys[index])
        introduced = self.pending is not None and (bool(self.banner) or len(self.pending_rules) > 1)
        introduced = introduced or event.at in self.banners
        if not self.tracks:
            return self._after_failed_start()
        if track is None:
            if introduced and all(key[:2] != self.keys[index][:2] for key in self.tracks):
                self._merge()  # another stage of the same job introduces itself
            return None
        back = clock < track.last or (clock == track.last and introduced) or (clock <= track.last and self.ended)
        if not back:
            return self._go_on(introduced)
        if self._another(index, event, clock, track, introduced):
            return self._boundary(index, event)
        self._merge()
        return None

    def _after_failed_start(self) -> int | None:
        """A banner printed again after trouble and before any step: another launch when its configuration is another."""
        cut = self.pending if self.pending is not None and _differ(self.known, self.pending_known, STRONG) else None
        if cut is None:
            self._merge()
        return cut

    def _go_on(self, introduced: bool) -> int | None:
        """Steps go on after a banner: a resumed run, unless it is another model."""
        cut = self.pending if introduced and _differ(self.known, self.pending_known, MODEL) else None
        if cut is None:
            self._merge()
        return cut

    def _another(self, index: int, event: Event, clock: float, track: _Track, introduced: bool) -> bool:
        if not self._fresh(index, clock):
            return introduced and _differ(self.known, self.pending_known, MODEL)
        if bisect_left(self.restarts, track.event.at) < bisect_left(self.restarts, event.at):
            return introduced and _differ(self.known, self.pending_known, MODEL)
        if introduced and _differ(self.known, self.pending_known, CONFIGURATION):
            return True
        if event.planned is not None and track.event.planned is not None and event.planned != track.event.planned:
            return introduced or self.ended  # in the same process it is another stage of the same run
        if self.ended or _reached_plan(track):
            return True
        if introduced:
            return not self._same_trajectory(index, event, track)
        return self._loop(index, event, track)

    def _fresh(self, index: int, clock: float) -> bool:
        """True when this record is the first of a run that began at its beginning: not beyond its own stride."""
        coming = self.ahead[self.keys[index]]
        at = bisect_left(coming, (index, clock))
        after = coming[at + 1][1] if at + 1 < len(coming) else clock
        if after <= clock:
            return clock <= 1
        return clock <= (after - clock) * 1.5 or (clock <= 1 and after - clock >= 1)

    def _same_trajectory(self, index: int, event: Event, track: _Track) -> bool:
        """True when the records that both starts have print the same losses: the same run once more."""
        coming = self.ahead[self.keys[index]]
        compared = 0
        last = -1.0
        begin = bisect_left(coming, (index, -1.0))
        for at, clock in coming[begin : begin + COMPARED]:
            if clock <= last or clock not in track.values:
                break
            last = clock
            mine, theirs = self.events[at].metrics.get("loss"), track.values[clock].metrics.get("loss")
            if mine is None or mine != theirs:
                return False
            compared += 1
        return compared > 0

    def _loop(self, index: int, event: Event, track: _Track) -> bool:
        """Starts from the beginning without a banner: a loop over runs when there are many and nothing failed."""
        if self._troubled(track.values[track.first].at if track.values else 0, event.at):
            return False
        first, enough = self._folds(self.keys[index])
        return enough and _clock(event) == first == track.first

    def _folds(self, key: Key) -> tuple[float, bool]:
        """Return where the first run of a kind starts, and whether there are many, each long enough to be one."""
        if key not in self.folds:
            clocks = [clock for _, clock in self.ahead[key]]
            starts = 1 + sum(b < a and b == clocks[0] for a, b in pairwise(clocks))  # a record printed twice is no start
            records = len(clocks) + self.unlisted[key]
            self.folds[key] = clocks[0], starts >= FOLDS and records >= FOLDS * starts
        return self.folds[key]

    def _boundary(self, index: int, event: Event) -> int:
        """Return the first event of the launch whose first step record is at ``index``."""
        begin = index
        while begin > max(self.begin + 1, index - LEAD) and self._leads(begin - 1, event):
            begin -= 1
        if self.pending is not None:
            late = [i for i in range(self.pending, index) if _is_before(event, self.events[i])]
            begin = min(begin, late[-1] + 1 if late else self.pending)
        while begin < index and self._trails(self.events[begin]):
            begin += 1
        return begin

    def _leads(self, index: int, first: Event) -> bool:
        """True for what a run may print before its first step."""
        event = self.events[index]
        if event.rule.event == "eval":
            return self._is_first_evaluation(index) if event.step is None else not _is_before(first, event)
        return event.rule.event in ("header", "compile", "phase", "progress")

    def _is_first_evaluation(self, index: int) -> bool:
        """True for an evaluation behind an end that is not of the model there: that one was evaluated, with other values."""
        event = self.events[index]
        scores = {name: value for name, value in event.metrics.items() if name.startswith("val_")}
        ended = False
        for other in reversed(self.events[self.begin : index]):
            kind = other.rule.event
            if kind == "step":
                return False
            if kind == "eval" and ended:
                return bool(scores) and all(
                    scores.items().isdisjoint(earlier.metrics.items()) and scores.keys() <= earlier.metrics.keys()
                    for earlier in self.events[self.begin : index]
                    if earlier.rule is event.rule
                )
            ended = ended or kind == "end"
        return False

    def _trails(self, event: Event) -> bool:
        """True for a figure that the run before printed when it was over."""
        return event.rule.event == "header" and bool(self.banner) and _rule(event) not in self.banner

    def _died_at_start(self) -> bool:
        """True when the last banner of the log is of another run, which failed before its first step."""
        assert self.pending is not None
        troubled = self._troubled(self.events[self.pending].at, END)
        return troubled and _differ(self.known, self.pending_known, STRONG)

    def _troubled(self, start: int, end: int) -> bool:
        return bisect_left(self.troubles, start) < bisect_left(self.troubles, end)

    def _merge(self) -> None:
        if self.pending is None:
            return
        for name, values in self.pending_known.items():
            self.known.setdefault(name, set()).update(values)
        self.banner |= self.pending_rules
        self.pending, self.pending_rules, self.pending_known = None, set(), {}

    def _track(self, key: Key, event: Event, clock: float) -> None:
        track = self.tracks.get(key)
        self.ended = False
        if event.planned is not None:
            self.known.setdefault("planned_steps", set()).add(float(event.planned))
        if track is None:
            self.tracks[key] = _Track(clock, clock, event, {clock: event})
            return
        track.last, track.event = clock, event
        track.records += 1
        if len(track.values) < COMPARED:
            track.values.setdefault(clock, event)


def _positions(body: SegmentBody, catalogue: Catalogue, roles: tuple[str, ...], also: str = "") -> list[int]:
    wanted = (m.id for m in catalogue.markers if m.role in roles or m.id == also)
    found = (body.markers[name] for name in wanted if name in body.markers)
    return sorted(at for hits in found for at, form in zip(hits.at, hits.form, strict=True) if form != MENTIONED)


def _clock(event: Event) -> float | None:
    """Return how far the run is at a step record: its step, or where none is printed its epoch."""
    return event.position if event.is_step else None


def _is_before(first: Event, evaluation: Event) -> bool:
    """True when an evaluation is of a later step than ``first``, so of the run before it."""
    if evaluation.rule.event != "eval":
        return False
    if evaluation.step is not None and first.step is not None:
        return evaluation.step > first.step
    return evaluation.metrics.get("epoch", 0.0) > first.metrics.get("epoch", END)


def _rule(event: Event) -> tuple[str, str]:
    return event.grammar.id, event.rule.name


def _learn(known: Known, event: Event) -> None:
    for name in CONFIGURATION & event.facts.keys():
        known.setdefault(name, set()).add(event.facts[name])
    if event.planned is not None:
        known.setdefault("planned_steps", set()).add(float(event.planned))


def _differ(known: Known, again: Known, names: frozenset[str]) -> bool:
    """True when both print one of the facts and have no value of it in common."""
    return any(known[name].isdisjoint(again[name]) for name in names & known.keys() & again.keys())


def _reached_plan(track: _Track) -> bool:
    planned = track.event.planned
    return planned is not None and track.records > 1 and track.last >= planned - 1
