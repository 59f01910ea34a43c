"""Values in step order → the statistics of a receipt: means exactly summed, medians of the exact values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Statistic:
    """Figures of one metric, in base units; None where no finite value gives them.

    ``first`` and ``last`` are always those printed, in any window; the others are over the window.
    """

    window: str
    scope: str | None
    definition: str | None
    record_count: int
    nonfinite_count: int
    first: float | None
    last: float | None
    min: float | None
    max: float | None
    mean: float | None
    median: float | None


def exact_mean(values: Sequence[float]) -> float | None:
    """Return the correctly rounded sum over ``n``, or None for no values or a sum beyond float64."""
    if not values:
        return None
    try:
        return math.fsum(values) / len(values)
    except OverflowError:
        return None


def exact_median(values: Sequence[float]) -> float | None:
    """Return the middle value, or the mean of the two middle ones; None for no values."""
    if not values:
        return None
    ordered = sorted(values)
    half = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[half]
    return exact_mean([ordered[half - 1], ordered[half]])


def describe(
    printed: Sequence[float], windowed: Sequence[float], window: str, *, scope: str | None, definition: str | None
) -> Statistic:
    """Return the statistics of ``windowed``, with the first and last of ``printed`` (all values, in order).

    NaN and infinities are counted and take no part; a first or last that is not finite is None.
    """
    finite = [v for v in windowed if math.isfinite(v)]
    first, last = printed[0], printed[-1]
    return Statistic(
        window=window,
        scope=scope,
        definition=definition,
        record_count=len(windowed),
        nonfinite_count=len(windowed) - len(finite),
        first=first if math.isfinite(first) else None,
        last=last if math.isfinite(last) else None,
        min=min(finite, default=None),
        max=max(finite, default=None),
        mean=exact_mean(finite),
        median=exact_median(finite),
    )
