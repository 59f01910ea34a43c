"""Arrays of numbers: find distinct and last values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def distinct_values(values: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct ``values`` [n] (no NaN), ascending; ``numpy.unique`` needs 8 ms for its first call."""
    ordered = np.sort(values)
    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


def last_of_each(places: NDArray[Any], values: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return the distinct ``places``, ascending, and the last of ``values`` at each."""
    distinct, at = np.unique(places[::-1], return_index=True)  # the first of the reversed is the last
    return distinct, values[::-1][at]
