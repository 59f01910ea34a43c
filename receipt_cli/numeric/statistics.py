"""Statistics of a receipt from values in step order: exactly summed means, medians of exact values.

The sum is exact before it is rounded, so that the order and the number of pieces do not matter.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np

from receipt_cli.numeric.array_types import Floats
from receipt_cli.numeric.spill import pieces, slices, take

Values: TypeAlias = "Sequence[float] | Floats"
"""A list, an ``array('d')`` or a float64 array (n,)."""
Ranges: TypeAlias = "Sequence[tuple[float, float]]"
"""Smallest and largest value of each piece of a column; empty if not computed."""

PIECE_BITS = 16
"""log2 of the values summed at a time, which fit into the second-level cache."""
MANTISSA_BITS = 53
MAX_PASSES = 6
SUMMABLE = (2.0**-600, 2.0**950)
"""Range of the largest magnitude within which no step of the exact sum under- or overflows."""
FEW = 2048
"""Fewest values that are worth more than Python's own sum and sort."""
SAMPLE = 8192
MARGIN = 200
"""Ranks searched on each side of a median in a sorted sample of ``SAMPLE`` values: over four standard deviations."""


class Statistic(NamedTuple):
    """Statistics of one metric, in base units; None if no value is finite.

    ``first`` and ``last`` are the first and last printed values of any window; the others are over the window.
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


def exact_mean(values: Values, ranges: Ranges = ()) -> float | None:
    """Return the correctly rounded sum divided by ``n``, or None for no values or a sum beyond float64."""
    if not len(values):
        return None
    try:
        return exact_sum(values, ranges) / len(values)
    except OverflowError:
        return None


def exact_sum(values: Values, ranges: Ranges = ()) -> float:
    """Return the correctly rounded sum. Raises ``OverflowError`` if it is beyond float64."""
    return _sum(_array(values), ranges) if len(values) >= FEW else math.fsum(_listed(values))


def exact_median(values: Values) -> float | None:
    """Return the middle value, or the mean of the two middle ones; None for no values. Values must not be NaN."""
    if not len(values):
        return None
    low, high = (len(values) - 1) // 2, len(values) // 2
    middle = _ranked(_array(values), low, high) if len(values) >= FEW else sorted(_listed(values))[low : high + 1]
    return middle[0] if low == high else exact_mean(middle)


def quantiles(values: Values, shares: Sequence[float]) -> list[float]:
    """Return the quantiles of finite ``values``, at least one, for ascending ``shares`` from 0 to 1.

    Linear between neighbouring ranks: type 7 of R. J. Hyndman and Y. Fan (1996), that of numpy.
    """
    places = [divmod(share * (len(values) - 1), 1.0) for share in shares]
    ranks = sorted({min(int(low) + more, len(values) - 1) for low, _ in places for more in (0, 1)})
    at = dict(zip(ranks, _at_ranks(_array(values), ranks), strict=True))
    return [at[int(low)] + (at[min(int(low) + 1, len(values) - 1)] - at[int(low)]) * rest for low, rest in places]


def describe(printed: Values, windowed: Values, window: str, *, scope: str | None, definition: str | None) -> Statistic:
    """Return the statistics of ``windowed``, with the first and last of ``printed`` (all values, in order).

    NaN and infinities are counted and otherwise ignored; a non-finite first or last value is None.
    """
    kept, ranges = _finite(windowed)
    lowest, highest = value_range(kept, ranges)
    first, last = float(printed[0]), float(printed[-1])
    return Statistic(
        window=window,
        scope=scope,
        definition=definition,
        record_count=len(windowed),
        nonfinite_count=len(windowed) - len(kept),
        first=first if math.isfinite(first) else None,
        last=last if math.isfinite(last) else None,
        min=lowest,
        max=highest,
        mean=exact_mean(kept, ranges),
        median=exact_median(kept),
    )


def _array(values: Values) -> Floats:
    """Return ``values`` as an array, without copying an ``array('d')``, which must not grow while the result is in use."""
    return np.asarray(values, np.float64)


def _listed(values: Values) -> Sequence[float]:
    return values.tolist() if isinstance(values, np.ndarray) else values


def finite(values: Values) -> Floats:
    """Return the values that are neither NaN nor infinite, in order."""
    return _finite(values)[0]


def _finite(values: Values) -> tuple[Floats, Ranges]:
    """Return the finite values, in order, and the ranges of their pieces if known."""
    array = _array(values)
    ranges = _ranges(array)
    if all(math.isfinite(low) and math.isfinite(high) for low, high in ranges):
        return array, ranges
    count = sum(int(np.count_nonzero(np.isfinite(piece))) for piece in pieces(array))
    return take(array, np.isfinite, count), ()


def _ranges(values: Floats) -> Ranges:
    return [(float(piece.min()), float(piece.max())) for piece in pieces(values)]


def count_above(values: Values, bound: float) -> tuple[int, float]:
    """Return the number of finite values above ``bound``, and the largest of them, or 0.0."""
    highest = [piece[piece > bound] for piece in pieces(finite(values))]
    return sum(map(len, highest)), max((float(high.max()) for high in highest if len(high)), default=0.0)


def value_range(values: Values, ranges: Ranges = ()) -> tuple[float | None, float | None]:
    """Return the smallest and largest of finite values, each the first of equals, because zero has two signs."""
    if not len(values):
        return None, None
    array = _array(values)
    ranges = ranges or _ranges(array)
    lowest, highest = min(low for low, _ in ranges), max(high for _, high in ranges)
    zero = 0.0
    if 0 in (lowest, highest):
        zero = next(float(zeros[0]) for piece in pieces(array) if len(zeros := piece[piece == 0]))
    return lowest or zero, highest or zero


def _sum(values: Floats, ranges: Ranges) -> float:
    """Return the correctly rounded sum of at least one value.

    As in the pre-rounded sums of J. Demmel and H. D. Nguyen (2013): each pass takes the leading bits of all values, few
    enough to add without rounding, and leaves the rest to the next pass; ``fsum`` adds the sums.
    """
    ranges = ranges or _ranges(values)
    lowest, highest = min(low for low, _ in ranges), max(high for _, high in ranges)
    if lowest == highest:
        return _product(lowest, len(values))
    largest = max(highest, -lowest)
    if not SUMMABLE[0] < largest < SUMMABLE[1]:
        return math.fsum(values.tolist())
    leading, rest = np.empty((2, min(2**PIECE_BITS, len(values))))
    parts: list[float] = []
    least = max(lowest, -highest)  # smallest magnitude if all signs are equal
    close = least > 0 and math.frexp(largest)[1] - math.frexp(least)[1] <= MANTISSA_BITS - 2 * PIECE_BITS
    for left in pieces(values, 2**PIECE_BITS):
        exponent = math.frexp(largest)[1]
        for number in range(MAX_PASSES):
            if number and close:  # the rest of the first pass adds up without rounding
                parts.append(float(left.sum()))
                break
            # All values are below 2**exponent: adding this rounds them to a unit of which the whole sum has under 2**52.
            constant = math.ldexp(1.5, exponent + PIECE_BITS)
            exponent += PIECE_BITS - MANTISSA_BITS + 1
            top = np.add(left, constant, out=leading[: len(left)])
            top -= constant
            left = np.subtract(left, top, out=rest[: len(left)])
            parts.append(float(top.sum()))
            if not close and not left.any():
                break
        else:
            parts += left[left != 0].tolist()
    return math.fsum(parts)


def _product(value: float, count: int) -> float:
    """Return the correctly rounded sum of ``count`` equal values."""
    product = value * count if value else 0.0  # fsum of negative zeros is 0.0 too
    if math.isinf(product) and math.isfinite(value):
        raise OverflowError("the sum is beyond float64")
    return product


def _ranked(values: Floats, low: int, high: int) -> list[float]:
    """Return the values of the neighbouring ranks ``low`` to ``high`` in a stable order of finite ``values``."""
    stride = max(1, len(values) // SAMPLE)
    samples = [values[part][-part.start % stride :: stride].copy() for part in slices(len(values))]
    sample = np.sort(np.concatenate(samples))
    floor = sample[max(0, low * len(sample) // len(values) - MARGIN)]
    ceiling = sample[min(len(sample) - 1, high * len(sample) // len(values) + MARGIN)]
    below, same, held = 0, 0, list[Floats]()
    for piece in pieces(values):
        less = piece < floor
        below += int(np.count_nonzero(less))
        if floor == ceiling:
            same += int(np.count_nonzero(piece == floor))
        else:
            held.append(piece[(piece <= ceiling) ^ less])
    if floor == ceiling and below <= low and high < below + same:
        found = [float(floor)] * (high + 1 - low)
    else:
        inside = np.concatenate(held) if held else values[values == floor]
        if not below <= low <= high < below + len(inside):
            below, inside = 0, values  # the sample does not represent all
        found = _at_ranks(inside, [rank - below for rank in range(low, high + 1)])
    if not all(found):
        zeros = np.concatenate([piece[piece == 0] for piece in pieces(values)])  # -0.0 and 0.0 in log order
        first = sum(int(np.count_nonzero(piece < 0)) for piece in pieces(values))
        found = [value or float(zeros[rank - first]) for rank, value in enumerate(found, low)]
    return found


def _at_ranks(values: Floats, ranks: Sequence[int]) -> list[float]:
    """Return the values of ascending ``ranks``, each searched after the last: one ``numpy.partition`` for two ranks takes ten
    times as long as for one.
    """
    found: list[float] = []
    begin = 0
    for rank in ranks:
        if found and rank == begin:
            found.append(float(values.min()))
            continue
        parted = np.partition(values, rank - begin)
        found.append(float(parted[rank - begin]))
        values, begin = parted[rank - begin + 1 :], rank + 1
    return found
