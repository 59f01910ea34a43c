"""``steady/1``: select the step records for rates."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from receipt_cli.events.model import Event
from receipt_cli.events.phases import Phase
from receipt_cli.events.relays import is_relay, lengths_of, starts_of
from receipt_cli.events.rows import RowRun
from receipt_cli.events.series import Numbers, Selection, metric, read
from receipt_cli.numeric.array_types import Integers
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

    records: int
    excluded_warmup: int
    excluded_implausible: int


def warmup(records: int) -> int:
    """Return the number of warm-up records: a tenth, 1 to 10; none of fewer than 3."""
    return max(1, min(_MOST_WARMUP, records // _WARMUP_PARTS)) if records >= _FEWEST_RECORDS else 0


def warmups(records: Integers) -> Integers:
    """``warmup`` for several attempts (int64 [n])."""
    found: Integers = np.where(records >= _FEWEST_RECORDS, np.clip(records // _WARMUP_PARTS, 1, _MOST_WARMUP), 0)
    return found


def steady_records(phase: Phase) -> tuple[Selection, SteadyState]:
    """Apply ``steady/1``; return the steady records and the counts.

    The first records of each attempt are warm-up (``warmup``); a record with a step time below 1/100 of the median is
    implausible. An MFU above 1 drops only that value (see ``plausible``).
    """
    median = exact_median(finite(read(phase.steps, metric("step_time_s"))))
    steady = Selection()
    records = warming = implausible = 0
    for attempt in phase.attempts:
        if attempt and is_relay(attempt[0]):
            kept, early, odd = _of_relay(steady, attempt[0], median)
            records, warming, implausible = records + kept, warming + early, implausible + odd
            continue
        n = sum(event.records for event in attempt)
        skip = warmup(n)  # fewer than the records before any run
        warming += skip
        for event in attempt[skip:]:
            if median is not None and event.metrics.get("step_time_s", median) < median / _TOO_FAST:
                implausible += 1
            else:
                steady.events.add(id(event))
            if event.run is not None:
                implausible += _doubt(steady, event, event.run, median)
        records += n - skip
    return steady, SteadyState(records - implausible, warming, implausible)


def _of_relay(steady: Selection, relay: Event, median: float | None) -> tuple[int, int, int]:
    """Select the steady records of a relay; return counts after warm-up, in warm-up, and implausible after warm-up."""
    run, lengths = relay.run, lengths_of(relay)
    assert run is not None
    skips = warmups(lengths)
    settled = np.arange(relay.records) - np.repeat(starts_of(relay), lengths) >= np.repeat(skips, lengths)
    times = run.filled("step_time_s")
    bad = np.zeros(relay.records, np.bool_)
    if median is not None:
        bad[0] = relay.metrics.get("step_time_s", median) < median / _TOO_FAST
        bad[1:] = False if times is None else times < median / _TOO_FAST
    if settled[0] and not bad[0]:
        steady.events.add(id(relay))
    steady.masks[id(relay)] = (settled & ~bad)[1:]
    return int(np.count_nonzero(settled)), int(skips.sum()), int(np.count_nonzero(settled & bad))


def plausible(name: str, values: Numbers) -> Numbers:
    """Return the possible values of a metric: no share of the peak is above 1."""
    if name not in RATIOS:
        return values
    if isinstance(values, list):
        return [value for value in values if not value > 1]
    kept: Numbers = values[~(values > 1)]
    return kept


def _doubt(steady: Selection, event: Event, run: RowRun, median: float | None) -> int:
    """Exclude the implausible records of a run; return their number."""
    bad = np.zeros(len(run), np.bool_)
    times = run.filled("step_time_s")
    if times is not None and median is not None:
        bad |= times < median / _TOO_FAST
    count = int(bad.sum())
    if count:
        steady.masks[id(event)] = ~bad
    return count
