"""Order the files of a run: which follow one another, which ran side by side, and which belong to other runs."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np

from receipt_cli.errors import UsageError
from receipt_cli.events.table import EventTable, at_rows, losses_of, not_nan, where
from receipt_cli.io.discovery import family_of
from receipt_cli.io.source import Stream
from receipt_cli.numeric.array_types import Floats

COMPARED = 50
"""Most common steps that are compared."""
LIKE = 0.2
"""Share by which a loss may differ if its step was trained again from a checkpoint."""
TOGETHER_S = 600.0
"""Seconds within which all ranks of a run print their first step."""
MODEL = ("parameter_count", "model_name", "sequence_length")
"""Facts that all files of one run share."""


class SeveralRuns(UsageError):
    """The files are not of one run; ``groups`` are the numbers of the streams, by run."""

    def __init__(self, message: str, *, why: str, try_: str, groups: Sequence[Sequence[int]]) -> None:
        """Keep the groups for a caller who wants a receipt of each."""
        super().__init__(message, why=why, try_=try_)
        self.groups = groups


@dataclass(frozen=True)
class Part:
    """One stream as read, the stream ``number`` of the log: ``records`` are its first record and the one after its last."""

    number: int
    stream: Stream
    records: tuple[int, int]
    events: EventTable

    @cached_property
    def steps(self) -> EventTable:
        """The step records of the stream."""
        return self.events.of_sources(lambda source: source.is_step)

    @property
    def name(self) -> str:
        """The file name with which messages name the stream."""
        return self.stream.names[-1]

    @cached_property
    def places(self) -> Floats:
        """The positions in training of the step records that print one."""
        return at_rows(self.steps.positions, where(not_nan(self.steps.positions)))

    @property
    def first(self) -> float:
        """The first position in training, 0 if no step record prints one."""
        return float(self.places[0]) if len(self.places) else 0.0

    @property
    def last(self) -> float:
        """The last position in training, 0 if no step record prints one."""
        return float(self.places[-1]) if len(self.places) else 0.0

    @property
    def stride(self) -> float:
        """The distance of the positions of the first two step records, 1 if unknown."""
        rise = self.steps.positions[:2]
        return float(rise[1] - rise[0]) if len(rise) > 1 and not np.isnan(rise).any() else 1.0

    @property
    def trainers(self) -> set[str]:
        """Ids of the grammars that read the steps."""
        return {source.grammar.id for source in self.steps.sources}

    def values(self, name: str) -> set[float | str]:
        """Return the values that the stream prints for a fact."""
        if name == "planned_steps":
            planned = self.steps.column("planned")
            return {*planned[~np.isnan(planned)].tolist()}
        return {row.facts[name] for row in self.events.of_sources(lambda source: source.speaks) if name in row.facts}

    @property
    def order(self) -> tuple[int, float, float, int]:
        """The sort key of the files of one rank: attempt, first time stamp, first position, number."""
        return self.stream.attempt or 0, _first_clock(self.events), self.first, self.number


def _first_clock(events: EventTable) -> float:
    """Return the first time stamp, infinite if there is none."""
    known = ~np.isnan(events.clock)
    return float(events.clock[known.argmax()]) if known.any() else math.inf


@dataclass(slots=True)
class Lane:
    """The streams of one process and its restarts, in order."""

    parts: list[Part]
    rank: int | None


def make_lanes(streams: Sequence[Stream], parts: Sequence[Part]) -> tuple[list[Lane], list[Part]]:
    """Return the lanes of one run, the one with most step records first, and the files that nothing ties to it.

    On a tie the lowest rank is the first. Raises ``SeveralRuns`` unless something shows that all files with steps are of one run:
    names of ranks, equal values, steps that go on. If no file has steps, the names alone must show it.
    """
    runs: list[list[Lane]] = []
    reasons: list[str] = []
    for part in sorted((p for p in parts if len(p.steps)), key=lambda p: p.order):
        why = [_join(run, part) for run in runs]
        if all(why):
            runs.append([Lane([part], part.stream.rank)])
            reasons += [reason for reason in why if reason]
    if len(runs) > 1:
        groups = [sorted(p.number for lane in run for p in lane.parts) for run in runs]
        raise SeveralRuns(
            f"these {len(streams)} files belong to {len(runs)} runs",
            why=reasons[0],
            try_="receipt parse --all-runs ..., or name the files of one run",
            groups=groups,
        )
    lanes = runs[0] if runs else []
    if len(lanes) == 1 and not lanes[0].parts[0].stream.certain:
        lanes[0].rank = None  # a number at the end of a name is a rank only beside others
    lanes.sort(key=lambda lane: (-sum(len(p.steps) for p in lane.parts), math.inf if lane.rank is None else lane.rank))
    silent = [part for part in parts if not len(part.steps)]
    known = [part for lane in lanes for part in lane.parts] or silent[:1]
    tied = [part for part in silent if any(_same_family(part, other) for other in known)]
    if not lanes and len(tied) < len(silent):
        loose = next(part for part in silent if part not in tied)
        raise SeveralRuns(
            f"these {len(streams)} files may not belong to one run",
            why=f"no step was read in any of them, and {known[0].name} and {loose.name} are not named like files of one run",
            try_="receipt parse FILE for each",
            groups=[[part.number] for part in silent],
        )
    lanes += [Lane([part], part.stream.rank if part.stream.certain else None) for part in tied]
    return lanes, [part for part in silent if part not in tied]


def _same_family(left: Part, right: Part) -> bool:
    """Return whether the names of two files differ only in a rank, a node, an attempt or the stream."""
    return family_of(left.name) == family_of(right.name)


def _join(run: list[Lane], part: Part) -> str | None:
    """Add ``part`` to the lane of the run to which it belongs, and return None; else return why it belongs to none."""
    first = run[0].parts[0]
    if first.trainers.isdisjoint(part.trainers):
        return f"{first.name} is of {', '.join(sorted(first.trainers))}, {part.name} of {', '.join(sorted(part.trainers))}"
    for name in MODEL:
        mine, theirs = part.values(name), first.values(name)
        if mine and theirs and mine.isdisjoint(theirs):
            return f"{first.name} has {name} {_shown(theirs)}, {part.name} {_shown(mine)}"
    for lane in run:
        before = lane.parts[-1]
        named = before.stream.certain and part.stream.certain  # the names tell whether two ranks wrote them
        if (not named or before.stream.rank == part.stream.rank) and _follows(before, part):
            lane.parts.append(part)
            return None
    return _beside(run, part)


def _follows(earlier: Part, later: Part) -> bool:
    """Return whether ``later`` goes on where ``earlier`` was, or is the launcher's next attempt.

    Its first step is the next one, or one that ``earlier`` had already made, with a similar loss. A step that is only larger may
    be of any run, unless the names are of one family.
    """
    attempts = {earlier.stream.attempt, later.stream.attempt}
    if None not in attempts and len(attempts) > 1:
        return True
    again = earlier.first < later.first and later.stride * 1.5 < later.first and later.last > earlier.last
    if not (later.first > earlier.last or again):
        return False
    plans, theirs = earlier.values("planned_steps"), later.values("planned_steps")
    if plans and theirs and plans.isdisjoint(theirs):
        return False
    near = later.first - earlier.last <= 2 * max(earlier.stride, later.stride)
    return _same_family(earlier, later) or (near and _alike(earlier, later))


def _alike(left: Part, right: Part) -> bool:
    """Return whether the losses of two files differ by at most a fifth at half or more of the steps that they share."""
    apart = [abs(a - b) > LIKE * max(abs(a), abs(b)) for a, b in _common(left, right) if math.isfinite(a) and math.isfinite(b)]
    return 2 * sum(apart) <= len(apart)


def _beside(run: list[Lane], part: Part) -> str | None:
    """Add ``part`` as another rank that ran at the same time, and return None; else return why it is none."""
    other = run[0].parts[0]
    seeds, theirs = part.values("seed"), other.values("seed")
    plans, their_plans = part.values("planned_steps"), other.values("planned_steps")
    ranks = {lane.rank for lane in run}
    named = part.stream.certain and other.stream.certain and part.stream.rank not in ranks
    certain = named and (_same_family(part, other) or _start_together(part, other))
    if plans and their_plans and plans.isdisjoint(their_plans):
        return f"{other.name} plans {_shown(their_plans)} steps, {part.name} {_shown(plans)}"
    if not certain and seeds and theirs and seeds.isdisjoint(theirs):
        return f"{other.name} has seed {_shown(theirs)}, {part.name} {_shown(seeds)}"
    if not certain and not _same_values(other, part):
        return f"{other.name} and {part.name} print different losses for the same steps, and are not named like ranks of one run"
    run.append(Lane([part], part.stream.rank if part.stream.rank not in ranks else None))
    return None


def _start_together(left: Part, right: Part) -> bool:
    """Return whether both begin at one step and within minutes of each other."""
    clocks = [_first_clock(part.steps) for part in (left, right)]
    return left.first == right.first and max(clocks) < math.inf and abs(clocks[0] - clocks[1]) <= TOGETHER_S


def _same_values(left: Part, right: Part) -> bool:
    """Return whether both print the same losses for the steps that they share, and share some."""
    known = _common(left, right)
    return bool(known) and all(a == b or (math.isnan(a) and math.isnan(b)) for a, b in known)


def _common(left: Part, right: Part) -> list[tuple[float, float]]:
    """Return the pairs of losses that both print for the first steps that they share."""
    mine = dict(losses_of(left.steps))
    return [*islice(((mine[at], loss) for at, loss in losses_of(right.steps) if at in mine), COMPARED)]


def _shown(values: Iterable[float | str]) -> str:
    texts = sorted(f"{v:.15g}" if isinstance(v, float) else str(v)[:80] for v in values)
    return " and ".join(texts[:3])
