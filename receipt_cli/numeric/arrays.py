"""Arrays of numbers: when numpy pays (small logs never import it), distinct and last values, several parts as one."""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence, Sized
from itertools import accumulate
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias, overload

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Part: TypeAlias = list[float] | NDArray[np.float64]


WORTH_IMPORT = 16_384
"""Entries from which on numpy saves more time than its import takes (about a tenth of a second)."""
WORTH_CALL = 2048
"""Entries from which on it is faster once it is loaded."""


def is_large(values: Sized, weight: int = 1, without: int = 0) -> bool:
    """True for numpy's arrays, and for so many entries, each of ``weight``, that they are worth becoming one.

    ``without``: what each weighs more as long as numpy is not imported, for what will be done with it. The choice never shows in
    a result: both ways give the same bits.
    """
    if "numpy" in sys.modules:
        return hasattr(values, "dtype") or weight * len(values) >= WORTH_CALL
    return (weight + without) * len(values) >= WORTH_IMPORT


def distinct_values(values: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct ones of ``values`` (one dimension, no NaN), ascending: ``numpy.unique`` takes 8 ms to begin."""
    import numpy as np

    ordered = np.sort(values)
    first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=first[1:])
    return ordered[first]


def last_of_each(places: NDArray[Any], values: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """Return the distinct ``places``, ascending, and the last of ``values`` at each."""
    import numpy as np

    distinct, at = np.unique(places[::-1], return_index=True)  # the first of the reversed is the last
    return distinct, values[::-1][at]


_LISTED = 1 << 16
"""Numbers of an array that become Python's at a time."""


class Joined(Sequence[float]):
    """The numbers of all ``parts`` (lists, or float64 arrays [n]) in order, as Python floats; a slice is a list."""

    def __init__(self, parts: Sequence[Part]) -> None:
        self._parts = [part for part in parts if len(part)]
        self._ends = list(accumulate(map(len, self._parts)))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    @overload
    def __getitem__(self, index: SupportsIndex) -> float: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[float]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> float | Sequence[float]:
        """Return one number, or a list of those in a slice."""
        places = range(len(self))[index]
        if isinstance(places, int):
            return self._at(places)
        if places.step < 0 or len(places) < len(self._parts):
            return [self._at(place) for place in places]
        found: list[float] = []
        for part, end in zip(self._parts, self._ends, strict=True):
            start = end - len(part)
            inside = places[bisect_left(places, start) : bisect_left(places, end)]
            found += map(float, part[inside.start - start : inside.stop - start : inside.step] if inside else ())
        return found

    def __eq__(self, other: object) -> bool:
        """True for the same numbers in the same order, however they are divided into parts."""
        return list(self) == list(other) if isinstance(other, Joined) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __iter__(self) -> Iterator[float]:
        for part in self._parts:
            for start in range(0, len(part), _LISTED):
                yield from map(float, part[start : start + _LISTED])

    def _at(self, place: int) -> float:
        number = bisect_right(self._ends, place)
        part = self._parts[number]
        return float(part[place - self._ends[number] + len(part)])
