"""Find what the arrival times of records prove: both ends of a run, the error of its times, and records that came together."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from receipt_cli.analysis.goodput.account import STAMPS, Account
from receipt_cli.analysis.goodput.timestamps import Edges, Stamp, Stamps
from receipt_cli.analysis.progress import CLOCK_DIGITS, Realised
from receipt_cli.analysis.summary import Summary
from receipt_cli.events.launches import Launch
from receipt_cli.events.phases import Phase
from receipt_cli.events.table import NO_STEP, EventTable
from receipt_cli.numeric.statistics import exact_median
from receipt_cli.problems import Problem, pointer
from receipt_cli.scan.arrivals import LATENCY_S, Arrivals
from receipt_cli.scan.columns import place

EVIDENCE = "arrival"
"""Evidence of times at which lines came."""
TOGETHER = 0.05
"""Share of the step records beyond which records that come together are no exception."""
HELD = 3.0
"""Pauses between two reads: if output that comes together is further apart than these, the program held it back."""
BURSTS = 10
"""Bursts of output beyond which their pace is that of the run."""
FINE = 0.01
"""Largest share of a run's time for which output may be held back if goodput is to be stated."""


class Came(NamedTuple):
    """How the step records of a run arrived. ``grain``: the error of their times in seconds. ``together`` of ``among`` records
    arrived at the same time as the record before, the first of them is that of ``line``; 0 and None if they are an exception.
    ``held``: the program held its output back."""

    grain: float
    together: int = 0
    among: int = 0
    line: int | None = None
    held: bool = False


def how_they_came(events: EventTable, arrivals: Arrivals) -> Came:
    """Return how the step records of a run arrived, by the stamps that its ``events`` have from ``arrivals``."""
    table = events.of_sources(lambda source: source.is_step)
    clock, step = table.clock, table.step
    gaps, same = np.diff(clock), (np.diff(clock) == 0) & (np.diff(step) != 0)
    together, pause = int(np.count_nonzero(same)), arrivals.pause_s
    apart = np.flatnonzero(gaps > 0)
    usual = exact_median(gaps[apart]) if len(apart) else None
    if usual is None:
        starts = (one.start for one in arrivals.entries.launches)
        begun = [start for start in starts if start is not None and len(clock) and start <= clock[0]]
        usual = float(clock[0]) - begun[-1] if begun and together else 0.0
    if together <= TOGETHER * len(gaps):
        return Came(LATENCY_S if usual > 2 * pause and not arrivals.entries.followed else pause)
    line = int(table.line[int(same.argmax()) + 1])
    return Came(max(usual, pause), together, len(clock), line, usual > HELD * pause)


def edges_of(arrivals: Arrivals, lines: tuple[int, int], before: int, after: float, grain: float) -> Edges:
    """Return when the program was first started for a run, and when its last start for the run ended.
    The run has the ``lines`` from first to last. A moment is missing if it is unknown, and if it belongs to another run, too:
    ``before`` is the last line that an earlier run printed, ``after`` the first line of a later one (infinity if none)."""
    starts = arrivals.starts()
    firsts = [one.line for one in starts]
    head = tail = Stamps()
    first = max(0, bisect_left(firsts, lines[0] + 1) - 1)
    started = starts[first].start
    if started is not None and before < firsts[first] <= lines[0]:
        head = Stamps.of([Stamp(lines[0] - 1, started, True)])
    last = max(0, bisect_left(firsts, lines[1] + 1) - 1)
    ended, until = starts[last].end, (*firsts, math.inf)[last + 1]
    if ended is not None and until <= after:
        tail = Stamps.of([Stamp(lines[1] + 1, ended, True)])
    return Edges(head, tail, grain)


def note_starts(phases: Sequence[Phase], arrivals: Arrivals) -> None:
    """Note in each phase when the program was started again, at the position in the log where it then begins to print."""
    for one in arrivals.starts()[1:]:
        at = place(one.records) - 1
        for phase in phases if one.start is not None else ():
            if phase.step_events and phase.step_events[0].at < at < phase.step_events[-1].at:
                phase.started.append((at, one.start or 0.0))


def by_arrival(spent: Account) -> Account:
    """Return the account of a run with arrival times as its evidence."""
    if spent.goodput is None:
        return spent
    evidence, of_steps = (EVIDENCE if name == STAMPS else name for name in (spent.goodput.evidence, spent.goodput.step_evidence))
    return spent._replace(goodput=spent.goodput._replace(evidence=evidence, step_evidence=of_steps))


def by_bursts(found: Realised | None, phase: Phase) -> Realised | None:
    """Return the throughput of a phase whose program printed in bursts, from the end of the first to that of the last but one.
    None for at most ``BURSTS`` bursts."""
    clock, step = phase.steps.clock, phase.steps.step
    ends = np.flatnonzero(np.diff(clock) > 0)
    if found is None or found.step_count is None or len(ends) <= BURSTS or NO_STEP in (step[ends[0]], step[ends[-1]]):
        return None
    seconds, count = float(clock[ends[-1]] - clock[ends[0]]), int(step[ends[-1]] - step[ends[0]])
    if count <= 0:
        return None
    whole = round(seconds / count * found.step_count, CLOCK_DIGITS)
    amounts = (found.step_count, found.tokens, found.samples)
    return Realised(whole, *amounts, *(None if amount is None else amount / whole for amount in amounts))


def held_back(came: Came, spent: Account, summaries: Sequence[Summary], launch: Launch) -> list[Problem]:
    """Return the problem of a run whose output was held back, with the figures that its times do not prove."""
    if not came.held:
        return []
    fields = [pointer("phases", index, "summary", "checkpoints", "unsaved_time_s") for index in range(len(summaries))]
    fields += [pointer("failure", "progress", name) for name in ("silence_s", "usual_s", "stalled")]
    marks = any(source.rule.event in ("eval", "checkpoint") for source in launch.events.sources)
    if spent.goodput is not None and (marks or came.grain > FINE * spent.goodput.wall_time_s):
        fields.insert(0, pointer("goodput"))
    what = f"{came.together:,} of {came.among:,} step records came with the one before: the program holds its output back"
    detail = f"{what}, for about {came.grain:.3g} s; PYTHONUNBUFFERED=1 or stdbuf -oL shows when each was printed"
    return [Problem("output_held_back", came.line, detail, "", fields=tuple(fields))]
