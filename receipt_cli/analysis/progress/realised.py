"""Realised throughput: steps, tokens and samples over elapsed time, with waits, evaluations and stalls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from receipt_cli.analysis.consistency import tokens_per_step
from receipt_cli.analysis.flops import Facts, positive
from receipt_cli.analysis.goodput.marks import marks_of, place
from receipt_cli.analysis.goodput.records import CUMULATIVE, TIME, are_countable, standing_records
from receipt_cli.analysis.goodput.steps import paces
from receipt_cli.analysis.goodput.timestamps import Life
from receipt_cli.events.model import Event
from receipt_cli.events.phases import Phase
from receipt_cli.events.table import Series
from receipt_cli.numeric.array_types import Floats
from receipt_cli.numeric.statistics import Statistic, exact_median, quantiles, value_range

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


def realise(steps: Sequence[Event], facts: Facts, metrics: Mapping[str, Statistic], life: Life | None) -> Realised | None:
    """Return the realised throughput of a phase's step records over ``life``; None without good timestamps.

    Tokens and samples are the difference of printed totals, else those per step (from ``facts`` or a constant batch size) times
    the steps.
    """
    if life is None or len(steps) + sum(len(event.run) for event in steps if event.run is not None) < 2:
        return None
    if life.seconds <= 0 or life.seconds < FINE * life.grain:
        return None
    first, last = steps[0].step, steps[-1].last_step
    count = last - first if first is not None and last is not None and last > first else None
    samples = _samples_per_step(facts, metrics)
    tokens = _tokens_per_step(facts, metrics, samples)
    amounts = (_total(steps, metrics, "tokens_total", tokens, count), _total(steps, metrics, "samples_total", samples, count))
    seconds = round(life.seconds, CLOCK_DIGITS)
    rates = (None if amount is None else amount / seconds for amount in (count, *amounts))
    return Realised(seconds, count, *amounts, *rates)


def _samples_per_step(facts: Facts, metrics: Mapping[str, Statistic]) -> float | None:
    """Return the samples per step: the printed batch size if it is constant, else the fact."""
    batch = metrics.get(BATCH)
    if batch is not None:
        return batch.min if batch.min is not None and batch.min == batch.max and batch.min > 0 else None
    return positive(facts, "samples_per_step")


def _tokens_per_step(facts: Facts, metrics: Mapping[str, Statistic], samples: float | None) -> float | None:
    if metrics.get(BATCH) is None:
        return tokens_per_step(facts)
    length = positive(facts, "sequence_length")
    return None if samples is None or length is None else samples * length


def _total(
    steps: Sequence[Event], metrics: Mapping[str, Statistic], name: str, each: float | None, count: int | None
) -> float | None:
    """Return the growth of a counter from the first to the last record, else ``each`` times the steps."""
    counter = metrics.get(name)
    if counter is not None and counter.scope in (None, "global"):
        first, last = steps[0].metrics.get(name), _last(steps[-1], name)
        if first is not None and last is not None and last > first:
            return last - first
    return None if each is None or count is None else each * count


def _last(event: Event, name: str) -> float | None:
    return event.metrics.get(name) if event.run is None else event.run.values(len(event.run) - 1)[1].get(name)


MIN_RECORDS = 10
"""Fewest step times that show a tail."""
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


def step_times(phase: Phase, series: Series, printed: Statistic | None, grain: float | None) -> StepTimes | None:
    """Return the spread of step times: printed in steady records, else between records; None if unknown.

    ``grain``: possible error of timestamps [s], None if they prove nothing. Gaps with an evaluation or checkpoint are left out.
    """
    if printed is not None:
        return None if printed.definition in CUMULATIVE else _spread("printed", series.steady(TIME))
    if grain is None or not are_countable(phase):
        return None
    records = standing_records(phase)
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
