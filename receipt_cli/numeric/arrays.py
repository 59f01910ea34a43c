"""Arrays of numbers: find distinct and last values, join several parts."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias, overload

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Part: TypeAlias = list[float] | NDArray[np.float64]


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


_LISTED = 1 << 16
"""Array entries converted to Python numbers at a time."""


class Joined(Sequence[float]):
    """All numbers of ``parts`` (lists or float64 arrays [n]) in order, as Python floats; a slice is a list."""

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
        """Return one number, or a list for a slice."""
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
        """Return whether the numbers and their order are equal; the division into parts does not matter."""
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
