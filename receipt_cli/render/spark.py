"""A series of numbers as one line of block characters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

BLOCKS = "▁▂▃▄▅▆▇█"
GAP = " "
NOT_FINITE = "×"
_SAMPLES = 64  # most values read for one cell, so that the cost does not grow with the run


def sparkline(
    values: Sequence[float],
    width: int,
    *,
    bounds: tuple[float, float] | None = None,
    least_span: float = 0.0,
    gap: str = GAP,
) -> str:
    """Return ``values`` in step order as at most ``width`` blocks, each the mean of its share of the values.

    The lowest mean is ``▁`` and the highest ``█``; values outside ``bounds`` count as the bound, so that a
    warm-up does not flatten the rest. Means that differ by less than ``least_span`` of their size are drawn
    about the middle, so that noise does not look like a change. A share without a finite value is ``gap``. Empty when no
    value is finite.
    """
    means = [_mean(share, bounds) for share in _shares(values, width)]
    known = [mean for mean in means if mean is not None]
    if not known:
        return ""
    means = [None if mean is None else mean / 4 for mean in means]  # so that no difference of large values overflows
    low, high = min(known) / 4, max(known) / 4
    span = max(high - low, least_span * max(abs(low), abs(high)))
    if span == 0:
        return "".join(gap if mean is None else BLOCKS[3] for mean in means)
    base = (low + high) / 2 - span / 2
    top = len(BLOCKS) - 1
    levels = [None if mean is None else min(top, max(0, round((mean - base) / span * top))) for mean in means]
    return "".join(gap if level is None else BLOCKS[level] for level in levels)


def _shares(values: Sequence[float], width: int) -> list[Sequence[float]]:
    total = len(values)
    count = min(total, width)
    edges = [total * index // count for index in range(count + 1)] if count > 0 else []
    return [values[start : stop : max(1, (stop - start) // _SAMPLES)] for start, stop in pairwise(edges)]


def _mean(share: Sequence[float], bounds: tuple[float, float] | None) -> float | None:
    finite = [float(value) for value in share if math.isfinite(value)]
    if bounds is not None:
        low, high = bounds
        finite = [min(max(value, low), high) for value in finite]
    # divided first, so that the sum of large values does not overflow
    return math.fsum(value / len(finite) for value in finite) if finite else None
