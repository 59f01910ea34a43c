"""Compute ``goodput/1`` from phases, stamps and the stated wall time: the wall time, and parts that add up to it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from receipt_cli.analysis.goodput.model import CLASSES, GPU_IDLE, Goodput, Part, Range, Stalls, Tally, Wall, is_doubtful
from receipt_cli.analysis.goodput.step_time_account import Begin, PhaseTime, Work
from receipt_cli.analysis.goodput.steps import SLACK
from receipt_cli.analysis.goodput.timestamps import ClockBack, ClockSkip, Edges, Life, Outside, find_life, format_clock, is_zoned
from receipt_cli.analysis.records import are_countable
from receipt_cli.analysis.summary import Summary
from receipt_cli.events.launches import Launch
from receipt_cli.events.phases import Phase
from receipt_cli.problems import Problem
from receipt_cli.scan.arrivals import Samples

STAMPS = "log_timestamps"
EXACT = 1e-12
"""Share of the wall time below which a difference is rounding of float64."""
ROUNDING = 0.005
"""Share of the wall time by which the sum of the parts may exceed it because printed digits are rounded."""
_OVERLAPPING = ("checkpoint", "eval", "data_loading")
"""Classes that ran beside other work if the parts exceed the wall time, the likeliest first.
Other classes are then cut: the wall time holds less than their figures say."""
_FITTED = (*_OVERLAPPING, "compilation", "initialization", "wasted_progress", GPU_IDLE)
SAMPLED = 0.9
"""Share of the time between step records that samples must cover."""
LEAST_SAMPLES = 10
"""Fewest samples of the steps that prove something."""


class Account(NamedTuple):
    """The goodput of a run, None if nothing proves it, and the problems of its evidence."""

    goodput: Goodput | None
    problems: Sequence[Problem] = ()


def account(
    phases: Sequence[Phase],
    summaries: Sequence[Summary],
    launch: Launch,
    edges: Edges,
    stated: Wall | None,
    samples: Samples | None = None,
    work: Callable[[], Outside] = Outside,
) -> Account:
    """Return the goodput of a run, and what contradicts its evidence.

    A stated wall time counts whatever the log says: stamps show a job only from its first line to its last. Else the wall time is
    that between the stamps of the log. ``samples`` of the GPUs, by the same clock, show steps in which no GPU did anything.
    ``work`` returns what unread lines before the first and after the last record show.
    """
    chosen = [(p, s) for p, s in zip(phases, summaries, strict=True) if stated is None or stated.phase in (None, s.phase)]
    steps = [phase.step_events.line_span for phase in phases if len(phase.step_events)]
    lines = (min(first for first, _ in steps), max(last for _, last in steps)) if steps else (1 << 62, 0)
    found = find_life(launch.events, launch.start, edges, lines, local=is_zoned(edges) is not True)
    life = found if isinstance(found, Life) else None
    problems: list[Problem] = []
    if isinstance(found, ClockBack) and stated is None:
        detail = f"timestamps go back by {found.seconds:.0f} s: they give no wall time"
        problems.append(Problem("clock_goes_back", found.line, detail, ""))
    if isinstance(found, ClockSkip):
        fields = ("/summary/realised", *(("/goodput",) if stated is None else ()))
        values = (format_clock(found.before), format_clock(found.after))
        detail = "timestamps skip the hour of the change to summer time: they give no wall time"
        problems.append(Problem("clock_skip", found.line, detail, "", (found.line,), values, fields))
    if stated is not None and phases and not chosen:
        problems.append(Problem("wall_of_no_phase", None, "the stated wall time is for a phase that is not in the log", ""))
    if not any(summary.record_count or phase.fact("training_time_s") is not None for phase, summary in chosen):
        return Account(None, problems)
    wall = stated.seconds if stated is not None else life.seconds if life is not None else 0.0
    if not wall > 0:
        return Account(None, problems)
    outside = work() if life is not None else Outside()
    if outside.tail is not None and stated is None:  # what follows is of another start
        own = find_life(launch.events, launch.start, edges._replace(tail=outside.tail), lines, local=False)
        life = own if isinstance(own, Life) else life
        wall = life.seconds if life is not None else wall
    goodput = _parts(chosen, launch, life, wall, stated, samples, outside)
    if goodput is not None and life is not None and outside.after:
        read = find_life(launch.events, launch.start, Edges(grain=life.grain), lines, local=False)
        goodput = _open(goodput, life.end - read.end) if isinstance(read, Life) else goodput
    if goodput is None and stated is not None:
        detail = "no step times fit the stated wall time"
        problems.append(Problem("wall_without_step_times", None, detail, ""))
    return Account(goodput, problems)


def _open(goodput: Goodput, seconds: float) -> Goodput:
    """Return the goodput with its idle time unknown: unread lines in the last ``seconds`` of the run show work."""
    if not seconds > 0:
        return goodput
    high = min(1.0, goodput.range.high + seconds / goodput.wall_time_s)
    return goodput._replace(range=goodput.range._replace(high=high), parts={**goodput.parts, "idle": Part(None, "unknown")})


def _parts(
    chosen: Sequence[tuple[Phase, Summary]],
    launch: Launch,
    life: Life | None,
    wall: float,
    stated: Wall | None,
    samples: Samples | None,
    outside: Outside,
) -> Goodput | None:
    tally = Tally(life.grain if life is not None else 0.0)
    whole = life is not None and (stated is None or (stated.phase is None and stated.seconds >= life.seconds * (1 - SLACK)))
    until = life.last_line if life is not None and stated is None else None
    begin = Begin(launch.start, last_line=until)
    if life is not None and whole:
        begin = Begin(launch.start, life.start, life.led, stated is None, until, outside.loop, outside.between)
    works: list[Work] = []
    stamped = life.grain if life is not None else math.nan
    for phase, summary in chosen:
        work = PhaseTime(phase, summary, begin, stamped, tally).work(samples) if are_countable(phase) else None
        if work is None:
            return None
        works.append(work)
        if summary.record_count:
            begin = Begin(launch.start, last_line=until)
    classes: tuple[str, ...] = CLASSES
    if samples is not None and _tells(samples, works):
        works = [_without_quiet(work, tally) for work in works]
        classes = (*CLASSES[:-1], GPU_IDLE, CLASSES[-1])
    step_time = math.fsum(work.seconds for work in works)
    grain = life.grain if life is not None else 1.0
    if step_time > wall * (1 + SLACK) + 2 * grain:
        return None
    step_time = min(step_time, wall)
    parts = _fitted({name: tally.part(name) for name in classes}, step_time, wall, max(2 * grain, ROUNDING * wall))
    evidence = {work.evidence for work in works if work.evidence}
    if "trainer_loop" in evidence and parts["initialization"].seconds is None:
        parts["idle"] = Part(None, "unknown")  # what is left holds the start, which no stamp of a step ends
    known = "mixed" if len(evidence) > 1 else next(iter(evidence))
    phase_name = stated.phase if stated is not None else None
    source = stated.evidence if stated is not None else STAMPS
    least = [work.least for work in works if work.least is not None]
    low = min(1.0, math.fsum(least) / wall) if len(least) == len(works) else None
    most = min(1.0, max(step_time, math.fsum(work.most for work in works)) / wall)
    ratio = min(1.0, step_time / wall)
    limits = Range(None if low is None else min(low, ratio), most)
    return Goodput(ratio, wall, step_time, source, phase_name, known, parts, limits, _stalls(works))


def _tells(samples: Samples, works: Sequence[Work]) -> bool:
    """Return whether the samples show what the GPUs did in the steps: they cover nearly all steps, and a GPU was busy."""
    timed = [work for work in works if work.seconds > 0]
    quiet = [work.quiet for work in timed if work.quiet is not None]
    if not quiet or len(quiet) < len(timed):
        return False
    known, whole = (math.fsum(getattr(one, name) for one in quiet) for name in ("sampled", "whole"))
    many, busy = samples.count_in(quiet[0].begin, quiet[-1].end)
    return busy > 0 and many >= LEAST_SAMPLES and known >= SAMPLED * whole


def _without_quiet(work: Work, tally: Tally) -> Work:
    """Return the work without the steps in which no GPU did anything; their time is added to ``tally``."""
    if work.quiet is None:
        return work
    seconds = min(work.seconds, work.quiet.seconds)
    tally.add(GPU_IDLE, seconds, measured=False, count=work.quiet.gap_count)
    return work.less(seconds)


def _stalls(works: Sequence[Work]) -> Stalls | None:
    """Return the stalls of all phases; None if no phase has stamps between its steps."""
    stamped = [work for work in works if work.stalls is not None]
    found = [one for work in stamped for one in work.stalls or ()]
    doubtful = any(is_doubtful(len(work.stalls or ()), work.gaps) for work in stamped)
    return Stalls.of(found, doubtful=doubtful) if stamped else None


def _fitted(parts: dict[str, Part], step_time: float, wall: float, slack: float) -> dict[str, Part]:
    """Return the parts, with the rest of the wall time as ``idle``. If their sum is larger, they overlapped and are cut to fit.
    Up to ``slack`` seconds are no overlap but the rounding of stamps and printed times; inferred parts are cut first."""
    taken = [step_time, *(part.seconds for part in parts.values() if part.seconds is not None)]
    beyond = math.fsum([*taken, -wall])
    rounding = beyond <= slack
    names = [name for name in _FITTED if name in parts and parts[name].seconds]
    if rounding:
        names.sort(key=lambda name: (parts[name].how != "inferred", -(parts[name].seconds or 0.0)))
    for name in names:
        part = parts[name]
        if beyond > 0 and part.seconds is not None:
            cut = min(beyond, part.seconds)
            beside = part.overlapped_s if rounding or name not in _OVERLAPPING else (part.overlapped_s or 0.0) + cut
            parts[name] = replace(part, seconds=part.seconds - cut, overlapped_s=beside)
            beyond -= cut
    lost = [-part.seconds for part in parts.values() if part.seconds is not None]
    rest = math.fsum([wall, -step_time, *lost])
    return {**parts, "idle": Part(rest if rest > wall * EXACT else 0.0, "inferred")}
