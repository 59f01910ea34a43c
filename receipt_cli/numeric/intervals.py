"""Standard errors and intervals of one run's figures, whose steps depend on one another: block bootstrap.

Steps of a run are autocorrelated: a slow node stays slow for minutes. Blocks of consecutive values keep that. The block
length is that of Politis and White (2004) with the correction of Patton, Politis and White (2009), for the circular
bootstrap; twice as long blocks are drawn and the variance is corrected by that of half of them (Politis and Romano
1995), because one length alone is too coarse for strongly dependent steps. The interval is symmetric, with the factor
of Student's t for as many blocks as the run has. ``benchmarks/coverage.py`` measures how often it covers the truth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from receipt_cli.numeric.array_types import Floats
from receipt_cli.numeric.student_t import quantile

Estimate = Literal["mean", "median"]

MIN_VALUES = 20
"""Values below which no interval is given: there are too few blocks to draw from."""
MAX_VALUES = 20_000
"""A longer run is thinned by averages of consecutive values (a mean) or every k-th value (a median) first."""
DRAWS = 500
SEED = 20_260_101
"""Every interval draws the same numbers: the same inputs give the same bytes."""
_AT_ONCE = 2_000_000
"""Values drawn in one piece: 16 MB."""


@dataclass(frozen=True, slots=True)
class Spread:
    """The value of one figure in a run, its standard error, and the number of blocks behind that."""

    value: float
    error: float
    blocks: float


def spread(values: Sequence[float] | Floats, estimate: Estimate) -> Spread | None:
    """Return the mean or median of ``values`` (n,) in step order with its standard error; None for too few values.

    ``values`` are finite. Deterministic.
    """
    import numpy as np

    data = np.asarray(values, np.float64)
    if len(data) < MIN_VALUES:
        return None
    value = float(np.median(data) if estimate == "median" else data.mean())
    data = _thinned(data, estimate)
    if (data == data[0]).all():
        return Spread(value, 0.0, float(len(data)))
    length = block_length(data)
    longer = max(1, min(2 * length, len(data) // 4)) if length > 1 else 1
    long, short = (_variance(data, size, estimate) for size in (longer, max(1, longer // 2)))
    variance = max(long, min(2 * long - short, 3 * long)) if longer > 1 else long
    return Spread(value, math.sqrt(variance), len(data) / longer)


def half_width(parts: Sequence[Spread], level: float = 0.95) -> float:
    """Return half the width of the interval of a sum or difference of independent ``parts``.

    Degrees of freedom after Welch and Satterthwaite.
    """
    variance = sum(part.error**2 for part in parts)
    if not variance:
        return 0.0
    below = sum(part.error**4 / max(part.blocks - 1, 1) for part in parts)
    return quantile((1 + level) / 2, max(variance**2 / below, 1.0)) * math.sqrt(variance)


def block_length(data: Floats) -> int:
    """Return the block length of Politis and White for the circular block bootstrap of ``data`` (n,), at least 1."""
    import numpy as np

    count = len(data)
    centred = data - data.mean()
    reach = max(5, math.ceil(math.log10(count)))
    most = math.ceil(math.sqrt(count)) + reach
    longest = math.ceil(min(3 * math.sqrt(count), count / 3))
    spectrum = np.fft.rfft(centred, 2 * count)
    covariance = np.fft.irfft(spectrum * np.conj(spectrum))[: most + 1] / count
    if covariance[0] <= 0:
        return 1
    small = np.abs(covariance[1:] / covariance[0]) < 2 * math.sqrt(math.log10(count) / count)
    quiet = next((k for k in range(len(small) - reach + 1) if small[k : k + reach].all()), None)
    loud = np.flatnonzero(~small)
    lag = max(1, quiet if quiet is not None else int(loud[-1]) + 1 if len(loud) else 1)
    width = min(2 * lag, most)
    lags = np.arange(-width, width + 1)
    share = np.abs(lags) / width
    window = np.where(share <= 0.5, 1.0, 2 * (1 - share)) * covariance[np.abs(lags)]
    slope, level = float((window * np.abs(lags)).sum()), float(window.sum())
    if slope == 0 or level == 0:
        return 1
    return int(min(max(1, math.ceil((1.5 * slope**2 / level**2) ** (1 / 3) * count ** (1 / 3))), longest))


def _thinned(data: Floats, estimate: Estimate) -> Floats:
    step = -(-len(data) // MAX_VALUES)
    if step == 1:
        return data
    if estimate == "median":
        return data[::step]
    whole = len(data) // step * step
    averages: Floats = data[:whole].reshape(-1, step).mean(axis=1)
    return averages


def _variance(data: Floats, length: int, estimate: Estimate) -> float:
    """Return the variance of the estimate over resamples of blocks of ``length`` on a circle."""
    import numpy as np

    count = len(data)
    draw = np.random.default_rng(SEED)
    blocks = -(-count // length)
    starts = draw.integers(0, count, (DRAWS, blocks))
    if estimate == "mean":
        sums = np.concatenate([[0.0], np.cumsum(np.concatenate([data, data]) - data.mean())])
        last = count - (blocks - 1) * length
        ends = starts + np.where(np.arange(blocks) == blocks - 1, last, length)
        return float(((sums[ends] - sums[starts]).sum(axis=1) / count).var())
    found = np.empty(DRAWS)
    rows = max(1, _AT_ONCE // count)
    for begin in range(0, DRAWS, rows):
        places = (starts[begin : begin + rows, :, None] + np.arange(length)) % count
        found[begin : begin + rows] = np.median(data[places.reshape(len(places), -1)[:, :count]], axis=1)
    return float(found.var())
