"""Student's t distribution, for intervals with an estimated variance."""

from __future__ import annotations

import math
from functools import lru_cache

_TINY = 1e-300
_CLOSE = 3e-16
_MAX_TERMS = 500


def cumulative(t: float, freedom: float) -> float:
    """Return P(T <= t) for ``freedom`` > 0 degrees of freedom (Abramowitz and Stegun 26.7.1)."""
    tail = 0.5 * _beta_ratio(freedom / (freedom + t * t), freedom / 2, 0.5)
    return tail if t < 0 else 1 - tail


@lru_cache(maxsize=256)
def quantile(probability: float, freedom: float) -> float:
    """Return the t with ``cumulative(t) == probability`` in (0, 1), by bisection to a relative 1e-12."""
    if probability == 0.5:
        return 0.0
    if probability < 0.5:
        return -quantile(1 - probability, freedom)
    low, high = 0.0, 1.0
    while cumulative(high, freedom) < probability:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if cumulative(middle, freedom) < probability:
            low = middle
        else:
            high = middle
    return high


def _beta_ratio(x: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function I_x(a, b) by its continued fraction (A. and S. 26.5.8)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta_ratio(1 - x, b, a)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    c, d = 1.0, 1 / _away(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _MAX_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for step in (even, odd):
            d = 1 / _away(1 + step * d)
            c = _away(1 + step / c)
            value *= c * d
        if abs(c * d - 1) < _CLOSE:
            break
    return front * value / a


def _away(value: float) -> float:
    """Return ``value``, or the smallest allowed number if it is nearly zero (Lentz)."""
    return value if abs(value) > _TINY else _TINY
