"""Find the records of a rule that are so regular that a comparison with their neighbours finds nothing.

A stretch is regular where its records follow one another without any other event, are of one rank, have the same
fields and the same plan, and where their steps ascend. Its first and its last records stay events of their own: what
compares a record with those around it looks no further.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from receipt_cli.events.compact.frame import PLAN, RANK, STEP, Frame, is_full
from receipt_cli.events.rows import HEAD, TAIL, KeptRows, Read, RowRun, are_many
from receipt_cli.grammar.model import COUNTERS, Rule
from receipt_cli.numeric.array_types import Integers, Mask
from receipt_cli.numeric.arrays import distinct_values
from receipt_cli.numeric.spill import ascends, picked, pieces, show
from receipt_cli.scan.columns import RuleColumns

SPAN = 128
"""A stretch with fewer records is read record by record."""
LEAST = 16
"""Fewer records between two evaluations stay events."""
FEWEST = 128
"""A relay with fewer records is read attempt by attempt."""
LONGEST = 4096
"""An attempt that is longer is worth a run of its own."""
FRESH = 1.5
"""As many strides from its beginning a run may print its first record (see ``starts.Starts.are_fresh``)."""


PASSING = {
    "eval": (STEP[1], PLAN[1], RANK[1], *COUNTERS),
    "checkpoint": (STEP[1], RANK[1], *COUNTERS),
    "header": (STEP[1], RANK[1]),
    "progress": COUNTERS,
}
"""The events that a run may reach over, and what else than figures they may print."""


@dataclass(frozen=True, slots=True)
class Around:
    """What else the log contains: positions (int64) of events that may have to do with the records around them, of
    evaluations and checkpoints, which go by, and of what a run may reach over (ascending); ``figures`` are those of each rule of
    headers among it."""

    hard: Integers
    soft: Integers
    passing: Integers
    figures: Sequence[Integers] = ()

    def firsts(self, starts: Integers) -> Integers:
        """Return the first position in each rule of headers behind each of ``starts``: what a banner holds is seen there."""
        found = (each[np.searchsorted(each, starts[starts <= each[-1]])] for each in self.figures)
        return np.concatenate([np.empty(0, np.int64), *found])


def worth_it(rule: Rule, columns: RuleColumns) -> bool:
    """True for a rule of step records that are many enough."""
    return rule.event == "step" and not rule.companion and rule.counts == "step" and are_many(columns)


def find_runs(
    rule: Rule, columns: RuleColumns, around: Around, chosen: Integers | None = None, *, one_rank: bool
) -> KeptRows | None:
    """Return the regular stretches of the records of ``rule``, or None where there are none.

    ``chosen``: the rows that count, ascending; None: all. ``one_rank``: the log names no other.
    """
    at: Integers = columns.at.whole()
    if chosen is not None:
        at = picked(at, chosen)
    if len(at) < SPAN or not ascends(at):
        return None
    frame = Frame(rule, columns, chosen)
    parted = frame.breaks(one_rank)
    if parted is None:
        return None
    parted[0] = True
    parted[_beside(at, around.hard)] = True
    back = frame.back()
    parted[_beside(at, around.firsts(at[parted | back]))] = True
    breaks = parted | back
    pauses = _beside(at, around.soft)
    if frame.frames is not None:
        over = _beside(at, around.passing)
        drawn = over[(over > 0) & (frame.frames[over] == frame.frames[over - 1])]  # before and after what is passed
        pauses = distinct_values(np.concatenate([pauses, drawn]))
        breaks[pauses] = True
    starts = np.flatnonzero(breaks)
    stops = np.append(starts[1:], len(at))
    kept = np.ones(len(at), np.bool_)
    runs: dict[int, RowRun] = {}
    for start, stop, begins in find_relays(frame, parted, starts, _beside(at, np.concatenate([around.soft, around.passing]))):
        runs[start] = replace(frame.run(slice(start + 1, stop), stop - start - 1), begins=begins - (start + 1))
        kept[start + 1 : stop] = False
    long = np.flatnonzero((stops - starts >= SPAN) & kept[np.minimum(starts + 1, len(at) - 1)])
    for start, stop in zip(starts[long].tolist(), stops[long].tolist(), strict=True):
        ends = frame.ends(start, stop)
        if ends is not None and len(ends) < HEAD + TAIL + LEAST:
            continue
        show()
        first, last = start + HEAD, stop - TAIL
        if ends is not None:
            first, last = int(ends[HEAD - 1]) + 1, int(ends[-TAIL - 1]) + 1
        inside = pauses[np.searchsorted(pauses, first) : np.searchsorted(pauses, last, "right")].tolist()
        for begin, end in pairwise([first - 1, *inside, last + 1]):  # a record on each side of a pause stays an event
            show()
            if end - begin - 2 >= LEAST:
                inner = slice(begin + 1, end - 1)
                rows = inner if ends is None else ends[slice(*np.searchsorted(ends, [inner.start, inner.stop]))]
                run = frame.run(rows, end - begin - 2)
                low, high = np.searchsorted(around.passing, [at[begin], at[end - 2]])
                runs[begin] = replace(run, passed=True) if low < high else run
                kept[begin + 1 : end - 1] = False
    if not runs:
        return None
    if chosen is None:
        return KeptRows(np.flatnonzero(kept), runs)
    return KeptRows(chosen[kept], {int(chosen[begin]): run for begin, run in runs.items()})


def find_relays(frame: Frame, parted: Mask, starts: Integers, pauses: Integers) -> Iterator[tuple[int, int, Integers]]:
    """Yield each relay, attempts in turn that each begin at a step of the one before: its first record, the one behind its
    last, and the first record of each attempt but its first.

    ``starts`` are the records that do not go on from the one before, of which those in ``parted`` are parted from it by more
    than their step; ``pauses`` those with an evaluation or a checkpoint before them, ascending.
    """
    stops = np.append(starts[1:], len(parted))
    if not frame.prints_steps or len(starts) < 4:  # two attempts, and one on each side that are none of it
        return
    steps, lengths = frame.steps, stops - starts
    assert steps is not None
    first, second = steps[starts], steps[np.minimum(starts + 1, len(steps) - 1)]
    goes_back = ~parted[starts] & (lengths > 1) & (first < steps[starts - 1]) & (first > 1) & (first > (second - first) * FRESH)
    goes_back &= ~np.isin(first, first[~goes_back])  # a copy of the log may begin there, or a loop over runs
    paused = np.searchsorted(pauses, stops, "right") > np.searchsorted(pauses, starts)
    together = goes_back & np.append(goes_back[1:], False) & (lengths <= LONGEST) & ~paused
    edges = np.flatnonzero(np.diff(together, prepend=False, append=False))
    for begin, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        while begin < end and lengths[begin - 1] < TAIL:
            begin += 1  # what else is printed about a step must be able to find the record before
        if end - begin > 1 and starts[end] - starts[begin] >= FEWEST:
            yield int(starts[begin]), int(starts[end]), starts[begin + 1 : end]


def surroundings(
    read: Sequence[Read], its: Read, unseen: Container[tuple[str, str]], passing: Container[tuple[str, str]]
) -> Around:
    """Return the surroundings of the records of ``its`` rule in a log, of which ``read`` is all that was read.

    ``unseen`` are the rules, by grammar and name, that have no events; ``passing`` those of ``find_passing``.
    """
    hard: list[Sequence[int]] = []
    soft: list[Sequence[int]] = []
    over: list[Sequence[int]] = []
    figures: list[Integers] = []
    grammar, rule, own = its
    counters = printed_by(rule, own)
    for g, r, columns in read:
        key = g.id, r.name
        if (r is rule and g is grammar) or key in unseen:
            continue
        if g is grammar and key in passing and r.event == "progress":
            named = {r.fields[name].target[1] for name in columns.numbers} & {*COUNTERS}
            if not named <= counters and STEP[1] not in counters:
                hard.append(columns.at)
        elif g is grammar and key in passing:
            over.append(columns.at)
            figures += [columns.at.whole()] if r.event == "header" else []
        else:
            goes_by = g is grammar and r.event in ("eval", "checkpoint") and r.phase is None
            (soft if goes_by else hard).append(columns.at)
    return Around(_joined(hard), _joined(soft), np.sort(_joined(over)), figures)


def printed_by(rule: Rule, columns: RuleColumns) -> set[str]:
    """Return what every record of a rule prints of where training is."""
    full = (name for name, column in columns.numbers.items() if is_full(column, columns))
    return {rule.fields[name].target[1] for name in full if rule.fields[name].target[0] == "structural"}


def find_passing(read: Sequence[Read]) -> dict[tuple[str, str], Read]:
    """Return the rules, by grammar and name, whose lines nothing but their order ties to the steps around them.

    They print figures, and perhaps where training is. Not for a log of several ranks' steps: then the place of each counts.
    """
    return {} if any(r.repeats for _, r, _ in read) else {(one[0].id, one[1].name): one for one in read if _goes_by(*one[1:])}


def _goes_by(rule: Rule, columns: RuleColumns) -> bool:
    if rule.event not in PASSING or rule.phase is not None or rule.redraw or rule.companion or columns.texts:
        return False
    targets = [rule.fields[name].target for name in columns.numbers]
    if rule.event == "progress" and any(kind == "metric" for kind, _ in targets):
        return False  # the record behind it takes them
    plain = all(kind in ("metric", "other") or name in PASSING[rule.event] for kind, name in targets)
    return plain and ascends(columns.at.whole())


def passed_by(found: Read, runs: Iterable[tuple[RuleColumns, KeptRows]]) -> KeptRows | None:
    """Return the evaluations that stand between the records of runs: the first of each run is an event, with a run of the others.

    None where there are none. Those of a run that are not regular stay events.
    """
    rule, columns = found[1:]
    if rule.event != "eval" or not are_many(columns):
        return None
    frame, at = Frame(rule, columns, None), columns.at.whole()
    breaks = None if frame.counters else frame.breaks(one_rank=False)
    if breaks is None:
        return None
    breaks |= frame.back()
    kept = np.ones(len(at), np.bool_)
    behind: dict[int, RowRun] = {}
    for its, regular in runs:
        for row, run in regular.runs.items():
            low, high = np.searchsorted(at, [its.at[row], run.record(len(run) - 1)[0]]).tolist()
            if high - low > LEAST and not breaks[low + 1 : high].any():
                behind[low] = replace(frame.run(slice(low + 1, high), high - low - 1), passed=True)
                kept[low + 1 : high] = False
    return KeptRows(np.flatnonzero(kept), behind) if behind else None


def _joined(positions: Sequence[Sequence[int]]) -> Integers:
    return np.concatenate([np.empty(0, np.int64), *(np.asarray(places, np.int64) for places in positions)])


def _beside(at: Integers, others: Integers) -> Integers:
    """Return, ascending, the indices of the records that something at the positions ``others`` parts from the one before."""
    others = np.sort(others)
    found: list[Integers] = []
    before = done = 0
    for piece in pieces(at):
        since, done = done, int(np.searchsorted(others, piece[-1], "right"))
        places = np.concatenate([np.searchsorted(piece, others[since:done], side) for side in ("left", "right")])
        found.append(before + distinct_values(places))
        before += len(piece)
    every = np.concatenate(found)
    wanted = every < len(at)
    wanted[1:] &= every[1:] != every[:-1]  # behind a piece, and before the next one
    return every[wanted]
