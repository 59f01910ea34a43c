"""The distinct numbers of an array, without the masked arrays that ``numpy.unique`` loads to ask whether it has one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray


def distinct_values(values: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct ones of ``values`` (one dimension, no NaN), ascending: ``numpy.unique`` takes 8 ms to begin."""
    import numpy as np

    ordered = np.sort(values)
    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]
