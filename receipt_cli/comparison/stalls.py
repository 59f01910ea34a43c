"""Compare stalled steps apart from the median step: how often runs stall, and what share of their time that costs.

A step stalls where its time is an outlier of its window (``numeric.intervals.without_outliers``) and ``LEAST`` times the
median there. Stalls in a row are one episode, since they have one cause. Given all episodes of two runs, those of one are
binomial if both stall equally often (Przyborowski and Wilenski 1940); this ignores that episodes may come in bursts.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from receipt_cli.numeric.intervals import MIN_VALUES, without_outliers
from receipt_cli.numeric.lazy_numpy import np

RULE = "step_stalls/1"
METRIC = "step_time_s"
LEAST = 1.2
"""A shorter step is noise of an even run, whatever its robust deviation."""

LEVEL = 0.99
"""How sure a difference must be: stalls come in bursts, which the binomial distribution leaves out."""

Outcome = Literal["better", "worse", "no_evidence", "equal"]


@dataclass(frozen=True, slots=True)
class Stalls:
    """Stalled steps: of ``records`` steps ``stalled`` in ``episodes``; ``rate`` is their share of steps, ``cost`` the share
    of the time that they took beyond the median around them.
    """

    records: int
    stalled: int
    episodes: int
    rate: float
    cost: float


def find_stalls(values: Sequence[float]) -> Stalls | None:
    """Return the stalls among the step times ``values`` (n,), in seconds and step order; None for too few values."""
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
    """Return the stalls of the runs ``a`` and ``b`` together, and the outcome for b; None where neither side stalls."""
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
    """Return the two-sided p-value of the episodes of ``b`` among those of both, if they stall equally often."""
    total, share = a.episodes + b.episodes, b.records / (a.records + b.records)
    masses = [
        math.exp(math.lgamma(total + 1) - math.lgamma(k + 1) - math.lgamma(total - k + 1))
        * share**k * (1 - share) ** (total - k)
        for k in range(total + 1)
    ] if total < 500 else []  # fmt: skip
    if not masses:  # the normal limit, with a correction for continuity
        middle, sigma = total * share, math.sqrt(total * share * (1 - share))
        return math.erfc(max(0.0, abs(b.episodes - middle) - 0.5) / sigma / math.sqrt(2))
    return min(1.0, 2 * min(sum(masses[: b.episodes + 1]), sum(masses[b.episodes :])))
