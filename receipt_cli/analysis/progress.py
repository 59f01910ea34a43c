"""Progress of a phase: realised throughput, identities between figures of its log, and its checkpoints.

Realised throughput is steps, tokens and samples over elapsed time, with waits, evaluations and stalls. An identity is one number
computed in two ways, both in the receipt. Checkpoints are saved steps, their durations, and the unsaved rest.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from receipt_cli.analysis.bottleneck import LOOKED_AT
from receipt_cli.analysis.flops import Facts, Peak, positive, tokens_per_step
from receipt_cli.analysis.goodput.steps import marks_of, paces, place
from receipt_cli.analysis.goodput.timestamps import Life
from receipt_cli.analysis.records import CUMULATIVE, TIME, Records, are_countable, is_time
from receipt_cli.events.phases import Phase, last_steps
from receipt_cli.events.table import EventTable, Row, Series
from receipt_cli.numeric.array_types import Floats
from receipt_cli.numeric.precision import TOLERANCE, resolution
from receipt_cli.numeric.statistics import Statistic, Values, exact_median, exact_sum, quantiles, value_range
from receipt_cli.patterns import compile_later
from receipt_cli.problems import Problem, pointer

FINE = 20
"""Timestamp grains in a time from which on its error is below 5 %."""
CLOCK_DIGITS = 6
"""Decimals of seconds in timestamps; further ones of a difference are float64 noise."""
BATCH = "global_batch_size"


class Realised(NamedTuple):
    """Work from the first to the last step record, and ``duration_s`` by their timestamps.

    An amount and its rate are None if the log does not show them.
    """

    duration_s: float
    step_count: int | None
    tokens: float | None
    samples: float | None
    steps_per_s: float | None
    tokens_per_s: float | None
    samples_per_s: float | None


def realise(steps: EventTable, facts: Facts, metrics: Mapping[str, Statistic], life: Life | None) -> Realised | None:
    """Return the realised throughput of a phase's step records over ``life``; None without good timestamps.

    Tokens and samples are the difference of printed totals, else those per step (from ``facts`` or a constant batch size) times
    the steps.
    """
    if life is None or len(steps) < 2:
        return None
    if life.seconds <= 0 or life.seconds < FINE * life.grain:
        return None
    first, last = steps[0].step, steps[-1].step
    count = last - first if first is not None and last is not None and last > first else None
    samples, tokens = _per_step(facts, metrics)
    amounts = (_total(steps, metrics, "tokens_total", tokens, count), _total(steps, metrics, "samples_total", samples, count))
    seconds = round(life.seconds, CLOCK_DIGITS)
    rates = (None if amount is None else amount / seconds for amount in (count, *amounts))
    return Realised(seconds, count, *amounts, *rates)


def _per_step(facts: Facts, metrics: Mapping[str, Statistic]) -> tuple[float | None, float | None]:
    """Return samples and tokens per step: by the printed batch size, which must be constant, else by the facts."""
    batch, length = metrics.get(BATCH), positive(facts, "sequence_length")
    if batch is None:
        return positive(facts, "samples_per_step"), tokens_per_step(facts)
    samples = batch.min if batch.min is not None and batch.min == batch.max and batch.min > 0 else None
    return samples, None if samples is None or length is None else samples * length


def _total(steps: EventTable, metrics: Mapping[str, Statistic], name: str, each: float | None, count: int | None) -> float | None:
    """Return the growth of a counter from the first to the last record, else ``each`` times the steps."""
    counter = metrics.get(name)
    if counter is not None and counter.scope in (None, "global"):
        first, last = (row.metrics.get(name) for row in (steps[0], steps[-1]))
        if first is not None and last is not None and last > first:
            return last - first
    return None if each is None or count is None else each * count


FINE_GAP = 10
"""Timestamp grains in a gap from which on its error is below 10 %."""
SHARES = (0.05, 0.9, 0.95, 0.99)


class StepTimes(NamedTuple):
    """Quantiles and median absolute deviation of the step time [s], over ``record_count`` step times."""

    source: Literal["printed", "timestamps"]
    record_count: int
    p5_s: float
    p50_s: float
    p90_s: float
    p95_s: float
    p99_s: float
    mad_s: float


def step_times(
    phase: Phase, records: Records, series: Series, printed: Statistic | None, grain: float | None
) -> StepTimes | None:
    """Return the spread of step times: printed in steady records, else between the ``records`` that stand; None if unknown.
    Between records without a step any number of steps may lie.

    ``grain``: possible error of timestamps [s], None if they prove nothing. Gaps with an evaluation or checkpoint are left out.
    Of records once an epoch these are all.
    """
    if printed is not None:
        return None if printed.definition in CUMULATIVE else _spread("printed", series.steady(TIME))
    if grain is None or not records.numbered or records.by_epoch or not are_countable(phase):
        return None
    lengths, times = paces(records, place(marks_of(phase, 0), records))
    median = exact_median(lengths)
    if not median or median < FINE_GAP * grain or (value_range(times)[0] or 0.0) < 0:
        return None
    return _spread("timestamps", times)


def _spread(source: Literal["printed", "timestamps"], values: Floats) -> StepTimes | None:
    if len(values) < MIN_RECORDS:
        return None
    p5, p90, p95, p99 = quantiles(values, SHARES)
    middle = exact_median(values)
    assert middle is not None
    return StepTimes(source, len(values), p5, middle, p90, p95, p99, exact_median(np.abs(values - middle)) or 0.0)


PER_RECORD = ("mean_over_the_run", "mean_since_start")
"""Definitions of rates that are not per record."""
FLOPS_PER_WEIGHT = (6.0, 18.0, 24.0)
"""FLOPs per token and weight: forward and backward; three times that (Forgather); with recomputed activations, by a formula
that counts the forward pass four times."""
MIN_RECORDS = 10
"""Fewest records that show a rate, and fewest step times that show a tail."""


class Identity(NamedTuple):
    """Two figures that must be equal. ``holds`` is None if they differ and a convention may explain it."""

    name: str
    left: float
    right: float
    ratio: float
    holds: bool | None
    detail: str


class Evidence(NamedTuple):
    """Inputs of the identities. ``grain``: possible error of timestamps [s]; ``world``: number of devices."""

    steps: EventTable
    facts: Facts
    metrics: Mapping[str, Statistic]
    series: Series
    realised: Realised | None
    grain: float
    world: float | None
    peak: Peak | None
    parameters: int | None
    whole: bool
    """Whether every step has a record, without restarts or omitted records."""


def find_identities(known: Evidence) -> list[Identity]:
    """Return the identities of a phase with two known sides."""
    made = [*_realised(known), *_of_a_step(known), *_of_samples(known), *_of_the_peak(known), *_of_time(known), *_of_flops(known)]
    return [one for one in made if math.isfinite(one.ratio)]


def _identity(name: str, left: float, right: float, tolerance: float, detail: str, *, doubt: bool = False) -> Identity:
    """Return an identity that holds within a relative ``tolerance``; with ``doubt`` it is never false."""
    ratio = left / right if right else math.inf
    near = abs(ratio - 1) <= tolerance
    return Identity(name, left, right, ratio, True if near else None if doubt else False, detail)


def _rate(known: Evidence, unit: str) -> float | None:
    """Return the median of a printed rate of the job, or of one device times the number of devices."""
    for name, factor in ((f"{unit}_per_s", 1.0), (f"{unit}_per_s_per_device", known.world)):
        found = known.metrics.get(name)
        if found is None or factor is None or not found.median or found.definition in PER_RECORD or found.window != "steady":
            continue
        if found.record_count >= MIN_RECORDS and (found.scope in (None, "global") or factor != 1.0 or known.world == 1):
            return found.median * factor
    return None


def _realised(known: Evidence) -> Iterator[Identity]:
    """Yield printed rate = realised rate; they differ if the steps waited for something."""
    found = known.realised
    if found is None:
        return
    tolerance = TOLERANCE + 2 * known.grain / found.duration_s
    for unit, realised in (("tokens", found.tokens_per_s), ("samples", found.samples_per_s)):
        printed = _rate(known, unit)
        if printed is not None and realised:
            detail = f"printed {unit}/s = {unit} over the time from the first step record to the last"
            yield _identity(f"realised_{unit}_per_s", printed, realised, tolerance, detail)


def _of_a_step(known: Evidence) -> Iterator[Identity]:
    seconds = known.metrics.get("step_time_s")
    each = positive(known.facts, "tokens_per_step")
    rate = _rate(known, "tokens")
    if seconds is None or not seconds.median or each is None or rate is None or "global_batch_size" in known.metrics:
        return
    yield _identity("tokens_of_a_step", rate * seconds.median, each, TOLERANCE, "tokens/s × step time = tokens of a step")


def _of_samples(known: Evidence) -> Iterator[Identity]:
    samples, length, tokens = (positive(known.facts, n) for n in ("samples_per_step", "sequence_length", "tokens_per_step"))
    if samples is not None and length is not None and tokens is not None:
        yield _identity("samples_times_length", samples * length, tokens, 0.0, "samples × sequence length = tokens of a step")


def _of_the_peak(known: Evidence) -> Iterator[Identity]:
    ratio, flops = known.metrics.get("mfu_ratio"), known.metrics.get("flops_per_s_per_device")
    if known.peak is None or ratio is None or flops is None or not ratio.median or not flops.median:
        return
    tolerance = TOLERANCE + resolution(known.series.steady("mfu_ratio")[:LOOKED_AT]) / ratio.median
    detail = "MFU × peak = FLOP/s of a device"
    yield _identity("mfu_times_peak", ratio.median * known.peak.flops_per_s, flops.median, tolerance, detail)


def _of_time(known: Evidence) -> Iterator[Identity]:
    times, elapsed = known.series.steady("step_time_s"), known.series.steady("elapsed_time_s")
    printed = known.metrics.get("step_time_s")
    if not known.whole or printed is None or printed.definition is not None:
        return
    if len(times) != len(elapsed) or len(times) < MIN_RECORDS:
        return
    grain = _grain(elapsed)
    begin = max((i for i, value in enumerate(elapsed) if value == elapsed[0]), default=0)  # some trainers omit their first steps
    span = float(elapsed[-1]) - float(elapsed[0])
    if span < FINE * grain:
        return
    detail = "the step times add up to the printed total time"
    yield _identity("sum_of_step_times", exact_sum(times[begin + 1 :]), span, TOLERANCE + 2 * grain / span, detail)


def _grain(elapsed: Values) -> float:
    """Return the possible error [s] of a growing total: by its digits, or by its jumps."""
    shown = [float(value) for value in elapsed[:LOOKED_AT]]
    jumps = [after - before for before, after in pairwise(shown) if after > before]
    return max(resolution(shown) or 1.0, min(jumps, default=1.0))


def _of_flops(known: Evidence) -> Iterator[Identity]:
    flops, tokens = known.metrics.get("total_flops"), known.metrics.get("tokens_total")
    if flops is None or tokens is None or not known.parameters or not flops.last or not tokens.last:
        return
    each = flops.last / tokens.last / known.parameters
    nearest = min(FLOPS_PER_WEIGHT, key=lambda weight: abs(math.log(each / weight)))
    detail = f"total FLOPs ÷ tokens ÷ parameters = {nearest:g}"
    yield _identity("flops_of_a_token", each, nearest, TOLERANCE, detail, doubt=True)


LISTED = 20
"""Most checkpoints in a receipt: the last ones."""
DURATION = "checkpoint_duration_s"


_COUNTER = compile_later(rb"(?i)(?:\b(?:step|iter(?:ation)?)s?[ :=\[#]{0,3}|\| *)(\d{1,9})/(\d{1,9})(?![\d/.])")
"""A counter of steps with its total, as ``step:90/500`` or of a progress bar."""


def find_reached(phase: Phase, saved: Checkpoints | None, lines: Iterable[tuple[int, bytes]]) -> int | None:
    """Return the highest step that later lines show, up to a stride above the last record; None without one or if it is higher.

    Such lines are evaluations, the last checkpoint ``saved`` and, among the numbered ``lines`` of the phase, counters that have
    the planned steps or those of the epoch as their total; also before the last record, which may be printed late.
    """
    positions, last = last_steps(phase)
    if last is None or last.step is None:
        return None
    evals = phase.evals.of_sources(lambda source: source.rule.counts == last.rule.counts)
    found = [int(step) for step in evals.steps[evals.at > last.at] if step == step]
    found += [saved.last_step] if saved is not None and saved.last_step is not None and saved.last_line > last.line else []
    totals = {phase.planned: last.step, last.counters.get("epoch_steps"): last.counters.get("epoch_step")}
    read = ((number, pair) for number, line in lines for pair in _COUNTER.findall(line)) if last.rule.counts != "epoch" else ()
    told = [(number, last.step + int(at) - begin) for number, (at, all_) in read if (begin := totals.get(int(all_))) is not None]
    above = [(number, step) for number, step in told if step > last.step]
    late = [step for number, step in above if number > last.line]
    found += late or [step for number, step in above if number < last.line and not phase.restarts]
    stride = max((after - before for before, after in pairwise(positions)), default=1)
    reached = max(found, default=last.step)
    return reached if last.step < reached <= min(last.step + stride, phase.planned or reached) else None


_SAVING = compile_later(
    rb"(?i)\b(?:sav|writ|stor|dump)\w{1,4}\b[^\r\n]{0,80}?(?:checkpoint|ckpt|snapshot|state|weights|model)"
    rb"|(?:checkpoint|ckpt|snapshot)s?\b[^\r\n]{0,40}?\b(?:sav|writ|beg[iu]n|start)"
)
"""A line about writing a checkpoint."""


class Saved(NamedTuple):
    """One checkpoint: its step, its line, and its duration [s]; None: unknown.

    ``step``: printed, else that of the record, evaluation or checkpoint before it. ``duration_s``: printed, else the time
    between the timestamps around it without its steps.
    """

    step: int | None
    line_number: int
    duration_s: float | None


@dataclass(slots=True)
class Checkpoints:
    """The saved steps. ``unsaved_*``: from the last checkpoint to the last step reached, which a restart would repeat."""

    count: int
    last_step: int | None
    last_line: int
    duration_s: float | None
    unsaved_step_count: int | None
    unsaved_time_s: float | None
    latest: Sequence[Saved]


def checkpoint_begun(index: int, lines: Mapping[int, bytes], last: int) -> list[Problem]:
    """Return a problem if another checkpoint began after line ``last``, that of the last step record of phase ``index``.

    ``lines`` are the first and the last ones of the run. Whether it was saved, and so what is unsaved, is unknown then.
    """
    begun = [number for number, line in lines.items() if number > last and _SAVING.search(line)][:1]
    detail = "a checkpoint begins after the last step; whether it was saved is unknown"
    names = ("unsaved_step_count", "unsaved_time_s")
    fields = tuple(pointer("phases", index, "summary", "checkpoints", name) for name in names)
    return [Problem("checkpoint_begun", number, detail, "", (number,), (), fields) for number in begun]


def find_checkpoints(phase: Phase, median_step_s: float | None, grain: float | None) -> Checkpoints | None:
    """Return the checkpoints of a phase; None if it reports none.

    ``median_step_s`` [s] and ``grain`` (timestamp resolution [s]) come from the step times; None if unknown. Lines about one
    step with no step record between them belong to one checkpoint.
    """
    lines = phase.standalone_events.of_sources(lambda source: source.rule.event == "checkpoint")
    if not lines:
        return None
    evals = phase.evals.where(~np.isnan(phase.evals.steps))
    others = phase.evals.with_(phase.standalone_events).of_sources(lambda source: source.rule.event != "checkpoint")
    between = sorted([*others.at.tolist(), *(at for at, _ in phase.started)])
    saved: list[Saved] = []
    before: tuple[int, int | None] | None = None
    named: Row | None = None  # a line without a step belongs to the checkpoint before it if no record lies between
    for event in lines:
        number = bisect_left(phase.every.at, event.at)
        last = _record(phase.every, number - 1)
        named = event if event.step is not None else named
        since = named is not None and (last is None or named.at > last.at)
        epoch_end = _epoch_end(event, last, _record(phase.every, number - 2))
        step, previous = _step(named if named is not None and since else event, last, evals, epoch_end), before
        before = -1 if last is None else last.at, step
        seconds = event.metrics.get(DURATION)
        one = Saved(step, event.line, seconds if is_time(seconds) else None)
        if saved and previous == before:
            saved[-1] = saved[-1]._replace(duration_s=saved[-1].duration_s if one.duration_s is None else one.duration_s)
            continue
        if one.duration_s is None and median_step_s is not None and grain is not None and last is not None:
            one = one._replace(duration_s=_inferred(last, _record(phase.every, number), between, median_step_s, grain))
        saved.append(one)
    return _ledger(saved, lines[-1], phase.every)


def _record(table: EventTable, number: int) -> Row | None:
    """Return a record by its number, None if there is none."""
    return table[number] if 0 <= number < len(table) else None


def _step(event: Row, before: Row | None, evals: EventTable, epoch_end: int | None) -> int | None:
    """Return the step of a checkpoint: printed, else the end of its epoch, else of the record or evaluation before its line."""
    if event.step is not None or epoch_end is not None:
        return epoch_end if event.step is None else event.step
    last = _record(evals, bisect_left(evals.at, event.at) - 1)
    if before is None or (last is not None and last.at > before.at):
        return None if last is None else last.step
    return before.step


def _epoch_end(event: Row, last: Row | None, previous: Row | None) -> int | None:
    """Return the last step of the epoch that a checkpoint names, if it is that of the ``last`` record, the last one due in it.

    The ``previous`` record shows how far they are apart. None: unknown.
    """
    if last is None or last.step is None or not {"epoch_number", "epoch_step", "epoch_steps"} <= last.counters.keys():
        return None
    epoch, inside, length = (last.counters[name] for name in ("epoch_number", "epoch_step", "epoch_steps"))
    stride = inside if previous is None or previous.step is None else last.step - previous.step
    return last.step + length - inside if event.counters.get("epoch_number") == epoch and inside + stride > length else None


def _inferred(before: Row, after: Row | None, others: Sequence[int], median_step_s: float, grain: float) -> float | None:
    """Return the time between the records around a checkpoint minus that of their steps [s].

    None if another event, at one of the positions ``others``, lies between, or if the timestamps are too coarse.
    """
    if after is None or before.step is None or after.step is None or after.step <= before.step:
        return None
    if bisect_right(others, before.at) < bisect_left(others, after.at):
        return None
    seconds = after.clock - before.clock - median_step_s * (after.step - before.step)
    return None if math.isnan(seconds) or seconds < 2 * grain else round(seconds, CLOCK_DIGITS)


def _ledger(saved: Sequence[Saved], last: Row, steps: EventTable) -> Checkpoints:
    known = [one.duration_s for one in saved if one.duration_s is not None]
    whole = math.fsum(known) if len(known) == len(saved) else None
    at_end = steps[-1] if steps else None
    steps_since = time_since = None
    if at_end is not None and at_end.step is not None and saved[-1].step is not None:
        steps_since = max(0, at_end.step - saved[-1].step)
    if at_end is not None and not math.isnan(at_end.clock) and not math.isnan(last.clock):
        time_since = max(0.0, round(at_end.clock - last.clock, CLOCK_DIGITS))
    return Checkpoints(len(saved), saved[-1].step, last.line, whole, steps_since, time_since, saved[-LISTED:])
