"""``steady/1``: which step records of a phase the rates are over."""

from __future__ import annotations

from typing import NamedTuple

from receipt_cli.events.compact.run import Run
from receipt_cli.events.model import Event
from receipt_cli.events.phases import Phase
from receipt_cli.events.series import Selection, finite, metric, read
from receipt_cli.numeric.statistics import exact_median


class SteadyState(NamedTuple):
    """Which step records the rates are over. ``records`` counts them."""

    records: int
    excluded_warmup: int
    excluded_implausible: int


def steady_records(phase: Phase) -> tuple[Selection, SteadyState]:
    """Apply ``steady/1``; return the steady records and the counts.

    Of each attempt the first tenth (1 to 10 records) warms up; a record whose MFU is above 1, or whose step time is
    under a hundredth of the median, is implausible.
    """
    median = exact_median(finite(read(phase.steps, metric("step_time_s"))))
    steady = Selection()
    records = warmup = implausible = 0
    for attempt in phase.attempts:
        n = sum(event.records for event in attempt)
        skip = max(1, min(10, n // 10)) if n >= 3 else 0  # fewer than any run has records before it
        warmup += skip
        for event in attempt[skip:]:
            if event.metrics.get("mfu_ratio", 0.0) > 1 or (
                median is not None and event.metrics.get("step_time_s", median) < median / 100
            ):
                implausible += 1
            else:
                steady.events.add(id(event))
            if event.run is not None:
                implausible += _doubt(steady, event, event.run, median)
        records += n - skip
    return steady, SteadyState(records - implausible, warmup, implausible)


def _doubt(steady: Selection, event: Event, run: Run, median: float | None) -> int:
    """Leave out the implausible records of a run; return how many there are."""
    import numpy as np

    bad = np.zeros(len(run), np.bool_)
    mfu, times = run.filled("mfu_ratio"), run.filled("step_time_s")
    if mfu is not None:
        bad |= mfu > 1
    if times is not None and median is not None:
        bad |= times < median / 100
    count = int(bad.sum())
    if count:
        steady.masks[id(event)] = ~bad
    return count
