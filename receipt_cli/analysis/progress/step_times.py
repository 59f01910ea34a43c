"""The spread of step times in a phase: printed per record, else from timestamps."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from receipt_cli.analysis.goodput.attempts import CUMULATIVE, TIME
from receipt_cli.analysis.goodput.marked import place
from receipt_cli.analysis.goodput.pauses import marks_of
from receipt_cli.analysis.goodput.tries import paces, standing_of
from receipt_cli.events.phases import Phase
from receipt_cli.events.series import Series
from receipt_cli.numeric.arrays import is_large
from receipt_cli.numeric.statistics import Statistic, Values, exact_median, quantiles, value_range

MIN_RECORDS = 10
"""Fewest step times that show a tail."""
FINE = 10
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
    if grain is None:
        return None
    lengths, times = paces(standing_of(phase), place(marks_of(phase, 0), phase.steps))
    median = exact_median(lengths)
    if not median or median < FINE * grain or (value_range(times)[0] or 0.0) < 0:
        return None
    return _spread("timestamps", times)


def _spread(source: Literal["printed", "timestamps"], values: Values) -> StepTimes | None:
    if len(values) < MIN_RECORDS:
        return None
    p5, p90, p95, p99 = quantiles(values, SHARES)
    middle = exact_median(values)
    assert middle is not None
    return StepTimes(source, len(values), p5, middle, p90, p95, p99, _deviation(values, middle))


def _deviation(values: Values, middle: float) -> float:
    """Return the median absolute deviation from ``middle``."""
    if is_large(values):
        found = exact_median(np.abs(np.asarray(values, np.float64) - middle))
    else:
        found = exact_median([abs(value - middle) for value in values])
    return found or 0.0
