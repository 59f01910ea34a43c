"""Intervals of the median or mean of one run, whose steps are autocorrelated and stall at times (``interval/2``).

Steps of a run are autocorrelated: a slow node stays slow for minutes. A stalled step (a checkpoint, a full disk) is an
outlier that hides this dependence from estimates that are not robust. Therefore:

1. A Hampel filter replaces outliers by the median of their window. The rank correlation of neighbours gives the
coefficient of an autoregression, converted as for normal values and corrected for its bias (Marriott and Pope 1954,
Kendall 1954); from it follows the long-run variance of the signs around the median.
2. If the equal-weighted cosine estimate (Lazarus, Lewis, Stock and Watson 2018) of that variance is larger, it is used:
it includes dependence that no autoregression explains, such as slow waves.
3. The signs' variance gives two order statistics around the median (Woodruff 1952). No density is estimated, so ties and
two speeds of a run are no special case. The degrees of freedom are those of the estimated variance.
4. Two runs are subtracted by the method of variance estimates recovery (Zou and Donner 2008), with Student's t for the
degrees of freedom of Welch and Satterthwaite. With few effective steps the interval excludes nothing.

``make calibrate`` measures how often two equal runs are called different.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np

from receipt_cli.numeric.array_types import Floats, Mask

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


INTERVAL_RULE = "interval/2"
MIN_VALUES = 20
"""Fewest values for an interval."""
_HALF_WINDOW = 5
"""Values on each side in the window of the Hampel filter: stalls of up to five steps are outliers."""
_OUTLIER = 5.0
"""Robust standard deviations from its window's median beyond which a value is an outlier."""
_AT_ONCE = 100_000
"""Windows sorted at once: 9 MB."""
_PROBE = 1.96
"""Standard errors from the median at which the order statistics are taken."""
_PARTS = ((2, 0.999), (4, 0.9999))
"""(parts compared for drift, confidence level of a difference): four parts make six pairs."""
_LEAST_FREEDOM = 0.3
_MOST_PHI = 0.9999


@dataclass(frozen=True, slots=True)
class Spread:
    """Median or mean of a metric in one run, its standard error towards smaller (``down``) and larger (``up``) values, and the
    degrees of freedom of these errors.
    """

    value: float
    down: float
    up: float
    freedom: float


def median_spread(values: Sequence[float] | Floats) -> Spread | None:
    """Return the median of ``values`` (n,), finite and in step order, with its standard errors; None for too few values."""
    data = np.asarray(values, np.float64)
    if len(data) < MIN_VALUES:
        return None
    value = float(np.median(data))
    ordered = np.sort(data)
    if ordered[0] == ordered[-1]:
        return Spread(value, 0.0, 0.0, float(len(data)))
    calm, _ = without_outliers(data)
    phi = _dependence(calm)
    lags = np.arange(1, min(len(data), math.ceil(12 / (1 - phi))) + 1)
    parametric = 1 + 4 / math.pi * float(np.arcsin(phi**lags).sum())  # of a normal series' signs: 2 / pi arcsin(phi^k)
    ratio, freedom = _long_run(np.sign(calm - value), parametric, phi)
    reach = _PROBE * math.sqrt(ratio / len(data)) / 2
    places = np.array([0.5 - reach, 0.5 + reach]).clip(0, 1) * len(data) - 0.5
    low, high = np.interp(places, np.arange(len(data)), ordered)
    return Spread(value, (value - float(low)) / _PROBE, (float(high) - value) / _PROBE, freedom)


def mean_spread(values: Sequence[float] | Floats) -> Spread | None:
    """Return the mean of ``values`` (n,), finite and in step order, with its standard error; None for too few values."""
    data = np.asarray(values, np.float64)
    if len(data) < MIN_VALUES:
        return None
    value, variance = float(data.mean()), float(data.var())
    if not variance:
        return Spread(value, 0.0, 0.0, float(len(data)))
    phi = _dependence(data)
    ratio, freedom = _long_run(data, (1 + phi) / (1 - phi), phi)
    error = math.sqrt(ratio * variance / len(data))
    return Spread(value, error, error, freedom)


def interval(part: Spread, level: float = 0.95) -> tuple[float, float]:
    """Return the interval that contains the true value of ``part`` with probability ``level``."""
    factor = quantile((1 + level) / 2, part.freedom)
    return part.value - factor * part.down, part.value + factor * part.up


def difference(a: Spread, b: Spread, level: float = 0.95) -> tuple[float, float]:
    """Return the interval of b - a for independent ``a`` and ``b``."""
    variances = [((part.down + part.up) / 2) ** 2 for part in (a, b)]
    middle = b.value - a.value
    if not sum(variances):
        return middle, middle
    below = sum(v**2 / part.freedom for v, part in zip(variances, (a, b), strict=True))
    factor = quantile((1 + level) / 2, max(sum(variances) ** 2 / below, _LEAST_FREEDOM))
    return middle - factor * math.hypot(a.up, b.down), middle + factor * math.hypot(a.down, b.up)


def drift(values: Sequence[float] | Floats) -> float:
    """Return the difference between parts of ``values`` (n,), finite and in step order; 0 if it may be chance.

    Compares the halves and the quarters; the largest significant difference counts.
    """
    data = np.asarray(values, np.float64)
    apart = 0.0
    for count, level in _PARTS:
        spreads = [part for piece in np.array_split(data, count) if (part := median_spread(piece)) is not None]
        for a, b in combinations(spreads, 2):
            low, high = difference(a, b, level)
            if low > 0 or high < 0:
                apart = max(apart, abs(b.value - a.value))
    return apart


def without_outliers(data: Floats) -> tuple[Floats, Mask]:
    """Return ``data`` (n,) with outliers replaced by the median of their window, and the mask of outliers (Hampel 1974)."""
    around = np.pad(data, _HALF_WINDOW, mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(around, 2 * _HALF_WINDOW + 1)
    pieces = [np.median(windows[i : i + _AT_ONCE], axis=1) for i in range(0, len(data), _AT_ONCE)]
    middle = np.concatenate(pieces)
    apart = np.abs(data - middle)
    noise = 1.4826 * float(np.median(apart)) or 1.2533 * float(apart.mean())  # both estimate a normal standard deviation
    outliers = apart > _OUTLIER * noise
    return np.where(outliers, middle, data), outliers


def _dependence(data: Floats) -> float:
    """Return the first-order autoregression coefficient, in [0, 1), from the ranks of ``data`` (n,)."""
    _, which, counts = np.unique(data, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[which]
    ranks -= ranks.mean()
    whole = float(ranks @ ranks)
    if not whole:
        return 0.0
    phi = 2 * math.sin(math.pi / 6 * float(ranks[1:] @ ranks[:-1]) / whole)  # from Spearman's to Pearson's correlation
    count = len(data)
    return min(max(0.0, (count * phi + 1) / (count - 3)), _MOST_PHI)


def _long_run(data: Floats, parametric: float, phi: float) -> tuple[float, float]:
    """Return the ratio of the long-run variance of ``data`` to its variance (the larger of two estimates), and its freedom."""
    count = len(data)
    freedom = max(count * (1 - phi) / (1 + phi) / 1.5, _LEAST_FREEDOM)  # by the variance of the estimate of phi
    centred = data - data.mean()
    variance = float(centred @ centred) / count
    waves = max(4, int(0.4 * count ** (2 / 3)))
    if not variance:
        return parametric, freedom
    spectrum = np.fft.rfft(centred, 2 * count)[1 : waves + 1]
    cosines = (spectrum * np.exp(-0.5j * math.pi * np.arange(1, waves + 1) / count)).real
    smooth = 2 / count * float((cosines**2).mean()) / variance
    return max(parametric, smooth), freedom
