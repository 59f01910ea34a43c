"""Compare two groups of runs, metric by metric: difference, confidence interval, direction."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from receipt_cli.definitions.metrics import Metric, Registry
from receipt_cli.numeric.intervals import MIN_VALUES, Spread, difference, drift, median_spread
from receipt_cli.numeric.precision import printed_unit

Outcome = Literal["better", "worse", "different", "no_evidence", "below_precision", "equal", "incomparable", "lost", "gained"]
Basis = Literal["within_run", "between_runs", "none"]

LEVEL = 0.95
TOO_FEW = "too few records: the interval of a positive figure would begin below zero"
WANDER = 0.005
"""Relative difference of a rate or time below which two single runs show no evidence.

The two halves of a run differ by this much in one of seven real logs, with any number of steps: machines drift.
"""


@dataclass(frozen=True, slots=True)
class Figures:
    """One metric of one run: the receipt's statistics, and its steady values in step order if known."""

    statistic: Mapping[str, Any]
    values: Sequence[float] | None = None
    printed: bool = True
    """Whether the log prints the metric; else it was recomputed."""
    contradicted: bool = False
    """Whether the log's steps and times contradict the metric, and no recomputed value replaces it."""


@dataclass(frozen=True, slots=True)
class MetricComparison:
    """One metric of the runs on both sides, in base units.

    ``figure`` is the compared statistic: the median of rates, times and memory, the last value of curves and counters.
    ``records`` are the fewest values of a run on each side. ``low`` and ``high`` bound b - a with 95 % confidence on the given
    ``basis``; within runs they are widened by printed digits, ``WANDER`` and ``drift``. ``floor`` is the least difference
    that the printed digits can show. A metric on one side only is ``lost`` (only a) or ``gained`` (only b).
    """

    name: str
    id: int
    unit: str
    better: str
    figure: str
    a: float | None
    b: float | None
    runs: list[int]
    records: list[int]
    low: float | None
    high: float | None
    basis: Basis
    floor: float
    outcome: Outcome
    reason: str | None

    @property
    def delta(self) -> float | None:
        """b - a, or None if one is missing."""
        return None if self.a is None or self.b is None else self.b - self.a

    @property
    def ratio(self) -> float | None:
        """b / a, or None if one is missing, a is zero, or their signs differ."""
        if self.a is None or self.b is None:
            return None
        return self.b / self.a if self.a and (self.a > 0) == (self.b > 0) else None


def compare_metrics(
    left: Sequence[Mapping[str, Figures]], right: Sequence[Mapping[str, Figures]], registry: Registry, least: float = 0.0
) -> Iterator[MetricComparison]:
    """Yield a comparison of every metric that runs of both sides have, or that only one side prints, in registry order.

    ``left`` and ``right`` have metric → figures for each run; below the relative difference ``least`` there is no verdict.
    """
    for metric in registry.metrics:
        sides = [[run[metric.name] for run in side if metric.name in run] for side in (left, right)]
        if all(sides):
            comparison = _compare(metric, sides[0], sides[1], least)
            if comparison is not None:
                yield comparison
        elif any(figures.printed for side in sides for figures in side):
            yield _one_sided(metric, sides[0], sides[1])


def _compare(metric: Metric, left: Sequence[Figures], right: Sequence[Figures], least: float) -> MetricComparison | None:
    figure = metric.headline
    values = [[f.statistic[figure] for f in side if f.statistic[figure] is not None] for side in (left, right)]
    if not all(values):
        return None
    a, b = (statistics.median(side) for side in values)
    digits = _floor([*left, *right])
    low, high, basis = _interval(metric, left, right, values, digits)
    floor = max(digits, least * abs(a))
    impossible = low is not None and all(value > 0 for side in values for value in side) and a + low <= 0
    if impossible:  # it says that b may be below zero
        low, high, basis = None, None, "none"
    outcome, reason = _outcome(metric, left, right, (a, b), (low, high), floor)
    if impossible and outcome == "different":
        outcome, reason = "no_evidence", TOO_FEW
    records = _records(left, right)
    if outcome == "different" and low is None and metric.headline == "median" and min(records) < MIN_VALUES:
        reason = f"no interval: fewer than {MIN_VALUES} records"
    return MetricComparison(
        name=metric.name,
        id=metric.id,
        unit=metric.unit,
        better=metric.better,
        figure=figure,
        a=a,
        b=b,
        runs=[len(values[0]), len(values[1])],
        records=records,
        low=low,
        high=high,
        basis=basis,
        floor=floor,
        outcome=outcome,
        reason=reason,
    )


def _one_sided(metric: Metric, left: Sequence[Figures], right: Sequence[Figures]) -> MetricComparison:
    """Return the comparison of a metric that only one side has."""
    values = [f.statistic[metric.headline] for f in (*left, *right) if f.statistic[metric.headline] is not None]
    value = statistics.median(values) if values else None
    outcome: Outcome = "lost" if left else "gained"
    return MetricComparison(
        name=metric.name, id=metric.id, unit=metric.unit, better=metric.better, figure=metric.headline,
        a=value if left else None, b=None if left else value, runs=[len(left), len(right)], records=_records(left, right),
        low=None, high=None, basis="none", floor=0.0, outcome=outcome, reason=None,
    )  # fmt: skip


def _records(left: Sequence[Figures], right: Sequence[Figures]) -> list[int]:
    counts = [[f.statistic.get("record_count") or 0 for f in side] for side in (left, right)]
    return [min(side, default=0) for side in counts]


def _interval(
    metric: Metric, left: Sequence[Figures], right: Sequence[Figures], values: Sequence[Sequence[float]], digits: float
) -> tuple[float | None, float | None, Basis]:
    """Return the interval of b - a and its basis: between runs if both sides have repeats, else within runs if possible."""
    if min(map(len, values)) > 1:
        errors = [statistics.stdev(v) / math.sqrt(len(v)) for v in values]
        means = [Spread(statistics.fmean(v), e, e, len(v) - 1) for v, e in zip(values, errors, strict=True)]
        return *difference(means[0], means[1], LEVEL), "between_runs"
    if metric.headline != "median":
        return None, None, "none"
    a, b = (_pooled(side) for side in (left, right))
    if a is None or b is None:
        return None, None, "none"
    low, high = difference(a, b, LEVEL)
    if a.down + a.up + b.down + b.up > 0 and not low <= 0 <= high:
        middle, wander = b.value - a.value, WANDER * abs(a.value) if metric.klass == "rate" else 0.0
        slack = digits + sum(max(drift(f.values) for f in side if f.values is not None) for side in (left, right))
        low, high = min(low, middle - wander) - slack, max(high, middle + wander) + slack
    return low, high, "within_run"


def _pooled(side: Sequence[Figures]) -> Spread | None:
    """Return the spread of the mean of the runs' medians on one side, each from its own steps; None without steps."""
    spreads = [median_spread(f.values) if f.values is not None else None for f in side]
    known = [s for s in spreads if s is not None]
    if len(known) < len(side):
        return None
    down, up = (math.hypot(*errors) / len(known) for errors in ([s.down for s in known], [s.up for s in known]))
    return Spread(statistics.fmean(s.value for s in known), down, up, min(s.freedom for s in known))


def _floor(runs: Sequence[Figures]) -> float:
    """Return the coarsest unit of the last printed digit among ``runs``."""
    named = ("first", "last", "min", "max")
    shown = [f.values if f.values is not None else [f.statistic[n] for n in named if f.statistic[n] is not None] for f in runs]
    digits = [f.statistic.get("printed_digits") for f in runs]
    return max((printed_unit(*each) for each in zip(digits, shown, strict=True)), default=0.0)


def _outcome(
    metric: Metric,
    left: Sequence[Figures],
    right: Sequence[Figures],
    pair: tuple[float, float],
    interval: tuple[float | None, float | None],
    floor: float,
) -> tuple[Outcome, str | None]:
    if any(f.contradicted for f in (*left, *right)):
        return "incomparable", "the log's steps and times contradict the printed value"
    for key in ("definition", "scope", "window"):
        meanings = {f.statistic.get(key) for f in (*left, *right)}
        if len(meanings) > 1:
            return "incomparable", f"{key} differs: {', '.join(sorted(map(str, meanings)))}"
    a, b = pair
    if a == b:
        return "equal", None
    if abs(b - a) < floor:
        return "below_precision", "the difference is below the printed digits"
    low, high = interval
    if low is None or high is None:
        return "different", "one value for each run and no repeats: the variation between runs is unknown"
    if low <= 0 <= high:
        return "no_evidence", "the interval contains zero"
    if metric.better == "none":
        return "different", None
    return ("better" if (b < a) == (metric.better == "lower") else "worse"), None
