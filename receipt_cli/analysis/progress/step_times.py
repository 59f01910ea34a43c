"""The spread of step times in a phase: printed per record, else from timestamps."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np

from receipt_cli.analysis.goodput.marks import marks_of, place
from receipt_cli.analysis.goodput.records import CUMULATIVE, TIME, are_countable, standing_records
from receipt_cli.analysis.goodput.steps import paces
from receipt_cli.events.phases import Phase
from receipt_cli.events.table import Series
from receipt_cli.numeric.array_types import Floats
from receipt_cli.numeric.statistics import Statistic, exact_median, quantiles, value_range

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
    if grain is None or not are_countable(phase):
        return None
    records = standing_records(phase)
    lengths, times = paces(records, place(marks_of(phase, 0), records))
    median = exact_median(lengths)
    if not median or median < FINE * grain or (value_range(times)[0] or 0.0) < 0:
        return None
    return _spread("timestamps", times)


def _spread(source: Literal["printed", "timestamps"], values: Floats) -> StepTimes | None:
    if len(values) < MIN_RECORDS:
        return None
    p5, p90, p95, p99 = quantiles(values, SHARES)
    middle = exact_median(values)
    assert middle is not None
    return StepTimes(source, len(values), p5, middle, p90, p95, p99, exact_median(np.abs(values - middle)) or 0.0)
