"""Compare the stalled steps of runs: how often they stall, and the share of time that it costs.

A step stalls if its time is an outlier of its window (``numeric.intervals.without_outliers``) and at least ``LEAST`` times
the window's median. Consecutive stalls are one episode, because they have one cause. If two runs stall equally often, one
run's share of all their episodes is binomial (Przyborowski and Wilenski 1940); bursts of episodes are not modelled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from receipt_cli.numeric.intervals import MIN_VALUES, without_outliers

RULE = "step_stalls/1"
METRIC = "step_time_s"
LEAST = 1.2
"""Least stalled step time / median of its window; a shorter step is noise of a steady run."""

LEVEL = 0.99
"""Confidence needed for a difference; it is high because the binomial distribution ignores bursts."""

Outcome = Literal["better", "worse", "no_evidence", "equal"]


@dataclass(frozen=True, slots=True)
class Stalls:
    """``stalled`` of ``records`` steps, in ``episodes``; ``rate`` is their share of steps, ``cost`` the share of the run's
    time that they took beyond the median around them.
    """

    records: int
    stalled: int
    episodes: int
    rate: float
    cost: float


def find_stalls(values: Sequence[float]) -> Stalls | None:
    """Return the stalls in the step times ``values`` ([n] seconds, in step order); None if too few or not positive."""
    data = np.asarray(values, np.float64)
    if len(data) < MIN_VALUES or data.min() <= 0:
        return None
    calm, outliers = without_outliers(data)
    stalled = outliers & (data >= LEAST * calm)
    episodes = int(stalled[0]) + int((stalled[1:] & ~stalled[:-1]).sum())
    lost = float((data - calm)[stalled].sum())
    count = int(stalled.sum())
    return Stalls(len(data), count, episodes, count / len(data), lost / float(data.sum()))


def compare_stalls(a: Sequence[Sequence[float]], b: Sequence[Sequence[float]]) -> dict[str, Any] | None:
    """Return the stalls of each side and the outcome for b; None if neither side stalls or one has too few steps."""
    sides = [[found for values in side if (found := find_stalls(values)) is not None] for side in (a, b)]
    if not all(sides) or not any(found.stalled for side in sides for found in side):
        return None
    left, right = (_together(side) for side in sides)
    chance = _probability(left, right)
    outcome: Outcome = "equal" if left.rate == right.rate else "no_evidence"
    if chance < 1 - LEVEL:
        outcome = "worse" if right.episodes / right.records > left.episodes / left.records else "better"
    return {"metric": METRIC, "rule": RULE, "a": asdict(left), "b": asdict(right), "outcome": outcome}


def _together(side: Sequence[Stalls]) -> Stalls:
    records = sum(one.records for one in side)
    rate, cost = (sum(getattr(one, name) * one.records for one in side) / records for name in ("rate", "cost"))
    return Stalls(records, sum(one.stalled for one in side), sum(one.episodes for one in side), rate, cost)


def _probability(a: Stalls, b: Stalls) -> float:
    """Return the two-sided p-value of ``b.episodes`` under the hypothesis that both stall equally often."""
    total, share = a.episodes + b.episodes, b.records / (a.records + b.records)
    masses = [
        math.exp(math.lgamma(total + 1) - math.lgamma(k + 1) - math.lgamma(total - k + 1))
        * share**k * (1 - share) ** (total - k)
        for k in range(total + 1)
    ] if total < 500 else []  # fmt: skip
    if not masses:  # normal approximation with continuity correction
        middle, sigma = total * share, math.sqrt(total * share * (1 - share))
        return math.erfc(max(0.0, abs(b.episodes - middle) - 0.5) / sigma / math.sqrt(2))
    return min(1.0, 2 * min(sum(masses[: b.episodes + 1]), sum(masses[b.episodes :])))
