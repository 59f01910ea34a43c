"""Compare two curves of one metric: find the place where they diverge, and their difference at the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from receipt_cli.numeric.array_types import Floats
from receipt_cli.numeric.arrays import last_of_each
from receipt_cli.numeric.intervals import interval, mean_spread
from receipt_cli.numeric.precision import printed_unit

MIN_COMMON = 4
"""Least number of common places for a comparison."""
_TAIL = 10
"""The last 1 / ``_TAIL`` of the common places is the end of a run."""
_NOISE = 1.4826
"""Standard deviation / median absolute deviation of normal noise."""
_FAR = 4.0
"""Smoothed difference at which curves have diverged, in standard deviations."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Values of a metric at ascending places (such as steps or tokens); the last value of a repeated place counts."""

    places: Sequence[float] | Floats
    values: Sequence[float] | Floats
    digits: Mapping[str, int] | None = None
    """Number of digits with which the values were printed; None if unknown."""


@dataclass(frozen=True, slots=True)
class CurveComparison:
    """Two curves, in base units, at the ``common`` places from ``first`` to ``last``.

    ``first_difference`` is the first place with different printed values (None: none); after ``departure`` the smoothed
    difference stays beyond its noise; ``end_delta`` is the mean of b - a over the last tenth of the places, with its 95 %
    interval ``low`` to ``high``, from the steps of these two runs only.
    """

    common: int
    first: float
    last: float
    first_difference: float | None
    departure: float | None
    departure_delta: float | None
    end_delta: float
    low: float | None
    high: float | None


def compare_curves(a: Curve, b: Curve, *, between: bool = False) -> CurveComparison | None:
    """Return the comparison of two curves, or None if they share fewer than ``MIN_COMMON`` places.

    ``between``: interpolate b linearly at the places of a; else compare only common places.
    """
    left, right = _finite(a), _finite(b)
    if between and len(right[0]):
        inside = (left[0] >= right[0][0]) & (left[0] <= right[0][-1])
        common, first = left[0][inside], left[1][inside]
        second = np.interp(common, *right)
    else:
        common, at_left, at_right = np.intersect1d(left[0], right[0], assume_unique=True, return_indices=True)
        first, second = left[1][at_left], right[1][at_right]
    if len(common) < MIN_COMMON:
        return None
    apart = second - first
    floor = max(printed_unit(a.digits, left[1].tolist()), printed_unit(b.digits, right[1].tolist()))
    unequal = np.flatnonzero(np.abs(apart) >= floor) if floor else np.flatnonzero(apart)
    leaving = _departure(apart, floor)
    tail = apart[-max(1, len(apart) // _TAIL) :]
    end = mean_spread(tail)
    low, high = interval(end) if end is not None else (None, None)
    return CurveComparison(
        common=len(common),
        first=float(common[0]),
        last=float(common[-1]),
        first_difference=float(common[unequal[0]]) if len(unequal) else None,
        departure=float(common[leaving]) if leaving is not None else None,
        departure_delta=float(apart[leaving]) if leaving is not None else None,
        end_delta=float(tail.mean()),
        low=low,
        high=high,
    )


def _finite(curve: Curve) -> tuple[Floats, Floats]:
    places, values = np.asarray(curve.places, np.float64), np.asarray(curve.values, np.float64)
    known = np.isfinite(places) & np.isfinite(values)
    return last_of_each(places[known], values[known])


def _departure(apart: Floats, floor: float) -> int | None:
    """Return the index from which the difference stays beyond its noise, or None.

    The noise is the change from one place to the next. Medians over windows of 1/50 of the curve are compared with it.
    """
    width = max(3, len(apart) // 50) | 1
    if len(apart) < 2 * width:
        return None
    noise = _NOISE * float(np.median(np.abs(np.diff(apart)))) / np.sqrt(2)
    far = max(floor, _FAR * noise * 1.2533 / np.sqrt(width))  # sqrt(pi / 2): standard error of a median / of a mean
    windows = np.lib.stride_tricks.sliding_window_view(apart, width)
    smooth = np.median(windows, axis=1)
    near = np.flatnonzero(np.abs(smooth) < far) if far else np.flatnonzero(smooth == 0)
    begin = int(near[-1]) + 1 if len(near) else 0
    if begin >= len(smooth):
        return None
    middle = begin + width // 2
    beyond = np.flatnonzero(np.abs(apart[begin : middle + 1]) >= max(far, floor))
    return begin + int(beyond[0]) if len(beyond) else middle
