"""``steady/1``: which step records of a phase the rates are over."""

from __future__ import annotations

from typing import NamedTuple

from receipt_cli.events.model import Event
from receipt_cli.events.phases import Phase
from receipt_cli.events.relays import is_relay, lengths_of, starts_of
from receipt_cli.events.rows import RowRun
from receipt_cli.events.series import Numbers, Selection, metric, read
from receipt_cli.numeric.array_types import Integers
from receipt_cli.numeric.lazy_numpy import np
from receipt_cli.numeric.statistics import exact_median, finite

STEADY_RULE = "steady/1"
RATIOS = ("mfu_ratio",)
"""Shares of a peak that nothing exceeds."""
_WARMUP_PARTS = 10
"""A tenth of an attempt warms up: compilation, caches and the data loader's first batches show in its first records."""
_MOST_WARMUP = 10
"""A log prints a record every few steps: behind ten of them even a long attempt has settled, and the rest is worth keeping."""
_FEWEST_RECORDS = 3
"""An attempt of fewer records keeps them all: without its first one, one value at most would be left."""
_TOO_FAST = 100
"""A step in a hundredth of the median time was skipped, or its time is in another unit."""


class SteadyState(NamedTuple):
    """Which step records the rates are over. ``records`` counts them."""

    records: int
    excluded_warmup: int
    excluded_implausible: int


def warmup(records: int) -> int:
    """Return how many of the ``records`` of an attempt warm up: the first tenth, 1 to 10; none of fewer than 3."""
    return max(1, min(_MOST_WARMUP, records // _WARMUP_PARTS)) if records >= _FEWEST_RECORDS else 0


def warmups(records: Integers) -> Integers:
    """Return the same for each of several attempts (int64 [n])."""
    found: Integers = np.where(records >= _FEWEST_RECORDS, np.clip(records // _WARMUP_PARTS, 1, _MOST_WARMUP), 0)
    return found


def steady_records(phase: Phase) -> tuple[Selection, SteadyState]:
    """Apply ``steady/1``; return the steady records and the counts.

    The first records of each attempt warm up (``warmup``); a record whose step time is under a hundredth of the median is
    implausible. An MFU above 1 is no more than that itself (see ``plausible``).
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
        skip = warmup(n)  # fewer than any run has records before it
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
    """Select the steady records of a relay; return how many are behind a warm-up, how many warm up, and how many of the first
    are implausible."""
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
    """Return the values of a metric that can be true: no share of the peak is above 1."""
    if name not in RATIOS:
        return values
    if isinstance(values, list):
        return [value for value in values if not value > 1]
    kept: Numbers = values[~(values > 1)]
    return kept


def _doubt(steady: Selection, event: Event, run: RowRun, median: float | None) -> int:
    """Leave out the implausible records of a run; return how many there are."""
    bad = np.zeros(len(run), np.bool_)
    times = run.filled("step_time_s")
    if times is not None and median is not None:
        bad |= times < median / _TOO_FAST
    count = int(bad.sum())
    if count:
        steady.masks[id(event)] = ~bad
    return count
