"""Evaluations and checkpoints between step records: where they stand, and how long each class of them took."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

import numpy as np

from receipt_cli.analysis.goodput.records import Records, is_time
from receipt_cli.analysis.goodput.totals import Tally
from receipt_cli.events.model import Event, in_order
from receipt_cli.events.phases import Phase
from receipt_cli.numeric.array_types import Integers

NOISE = 0.01
"""Share of the time of the steps that is no more than how much they differ."""
_DURATIONS = {"eval": "eval_duration_s", "checkpoint": "checkpoint_duration_s"}


class Mark(NamedTuple):
    """A line about an evaluation or a checkpoint: its class, and how long it took in seconds if it says so."""

    event: Event
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
    found = [e for e in (*in_order(phase.evals), *phase.standalone_events) if e.rule.event in _DURATIONS and e.at >= start]
    return [Mark(e, e.rule.event, _printed(e)) for e in sorted(found, key=lambda e: e.at)]


def _printed(event: Event) -> float | None:
    seconds = event.metrics.get(_DURATIONS[event.rule.event])
    return seconds if is_time(seconds) else None


def place(marks: Sequence[Mark], records: Records) -> Placed:
    """Return where ``marks``, in log order, stand among step records."""
    places = [event.at for event in records.events]
    firsts = np.cumsum([0, *(event.records for event in records.events)]).tolist() if marks else []
    before: dict[int, list[Mark]] = {}
    behind: list[Mark] = []
    for number, group in groupby(marks, lambda mark: bisect_left(places, mark.event.at)):
        run = records.events[number - 1].run if number else None
        rows = run.at if run is not None and run.passed else np.empty(0, np.int64)
        for mark in group:
            if len(rows) and mark.event.at < rows[-1]:
                before.setdefault(firsts[number - 1] + 1 + int(np.searchsorted(rows, mark.event.at)), []).append(mark)
            elif number < len(places):
                before.setdefault(firsts[number], []).append(mark)
            else:
                behind.append(mark)
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
