"""``steady/1``: select the step records for rates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from receipt_cli.analysis.records import Records
from receipt_cli.numeric.array_types import Floats, Integers, Mask
from receipt_cli.numeric.statistics import exact_median, finite

STEADY_RULE = "steady/1"
RATIOS = ("mfu_ratio",)
"""Metrics that cannot exceed 1."""
_WARMUP_PARTS = 10
"""1/share of an attempt that is warm-up: compilation, caches and the first batches."""
_MOST_WARMUP = 10
"""Most warm-up records: after ten records even a long attempt has settled."""
_FEWEST_RECORDS = 3
"""Shorter attempts have no warm-up: without the first record at most one would be left."""
_TOO_FAST = 100
"""A step time below median / this is implausible: the step was skipped, or the unit differs."""


class SteadyState(NamedTuple):
    """Counts of steady and excluded step records."""

    record_count: int
    excluded_warmup: int
    excluded_implausible: int


def warmups(records: Integers) -> Integers:
    """Return how many ``records`` of each attempt are warm-up (int64 [k]): a tenth, 1 to 10; none of fewer than 3."""
    return np.where(records >= _FEWEST_RECORDS, np.clip(records // _WARMUP_PARTS, 1, _MOST_WARMUP), 0)


def steady_records(records: Records) -> tuple[Mask, SteadyState]:
    """Apply ``steady/1``; return which of the step records that stand are steady (bool [n]), and the counts.

    The first records of each attempt are warm-up (``warmups``); a record with a step time below 1/100 of the median is
    implausible. An MFU above 1 drops only that value (see ``plausible``).
    """
    times = records.metric("step_time_s")
    median = exact_median(finite(times.values))
    steady = np.ones(records.count, np.bool_)
    warm = records.first(warmups(records.lengths))
    steady[warm] = False
    settled = int(np.count_nonzero(steady))
    if median is not None:
        bad = times.chosen(times.values < median / _TOO_FAST)
        steady[bad.rows] = False
    kept = int(np.count_nonzero(steady))
    return steady, SteadyState(kept, len(warm), settled - kept)


def plausible(name: str, values: Floats) -> Floats:
    """Return the values without those that the metric cannot have: a share of the peak is at most 1."""
    return values[~(values > 1)] if name in RATIOS else values
