"""Ordinals of records as they come, ascending: two bytes each, so that millions of them are no burden."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Integers: TypeAlias = NDArray[np.int64]

SPAN = 1 << 16
"""Ordinals of one part differ by less from its first."""
ENOUGH = 1 << 12
"""Ordinals of a part that is worth being one of its own."""
WORTH_CALL = 64
"""Ordinals from which on numpy, once it is loaded, is faster."""


class Listed:
    """A list of ordinals that grows at its end; ``array('H')`` of each part's distances from its first one."""

    __slots__ = ("_count", "_parts", "last")

    def __init__(self, ordinals: Iterable[int] = ()) -> None:
        self._parts: list[tuple[int, array[int]]] = []
        self._count = 0
        self.last = -1
        """The last ordinal, -1 where there is none."""
        self._take(list(ordinals))

    @classmethod
    def of(cls, ordinals: Integers) -> Listed:
        """Return the list of ``ordinals`` (int64 [n], ascending)."""
        made = cls()
        made._take_array(ordinals)
        return made

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[int]:
        for first, distances in self._parts:
            yield from (first + distance for distance in distances)

    def __eq__(self, other: object) -> bool:
        return list(self) == list(other) if isinstance(other, Listed) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def append(self, ordinal: int) -> None:
        """Add ``ordinal``, which is not below the last one."""
        self._take((ordinal,))

    def extend(self, other: Listed, shift: int) -> None:
        """Add what ``other`` holds, each plus ``shift``: all of it is behind ours. ``other`` is used up."""
        for first, distances in other._parts:
            if len(distances) >= ENOUGH:
                self._parts.append((first + shift, distances))
                self._count += len(distances)
                self.last = first + shift + distances[-1]
            elif len(distances) >= WORTH_CALL and "numpy" in sys.modules:
                import numpy as np

                self._take_array(np.frombuffer(distances, np.uint16).astype(np.int64) + (first + shift))
            else:
                self._take([first + shift + distance for distance in distances])

    def arrays(self, least: int) -> Iterator[Integers]:
        """Yield all ordinals (int64 [n]) in turn, ``least`` at a time or somewhat more."""
        import numpy as np

        waiting: list[Integers] = []
        count = 0
        for first, distances in self._parts:
            waiting.append(np.frombuffer(distances, np.uint16).astype(np.int64) + first)
            count += len(distances)
            if count >= least:
                yield np.concatenate(waiting)
                waiting, count = [], 0
        if waiting:
            yield np.concatenate(waiting)

    def _take(self, ordinals: Sequence[int]) -> None:
        for ordinal in ordinals:
            if not self._parts or not 0 <= ordinal - self._parts[-1][0] < SPAN:
                self._parts.append((ordinal, array("H")))
            first, distances = self._parts[-1]
            distances.append(ordinal - first)
            self.last = ordinal
        self._count += len(ordinals)

    def _take_array(self, ordinals: Integers) -> None:
        import numpy as np

        done = 0
        while done < len(ordinals):
            if not self._parts or not 0 <= int(ordinals[done]) - self._parts[-1][0] < SPAN:
                self._parts.append((int(ordinals[done]), array("H")))
            first, distances = self._parts[-1]
            end = int(np.searchsorted(ordinals, first + SPAN))
            distances.frombytes((ordinals[done:end] - first).astype(np.uint16).tobytes())
            done = end
        if len(ordinals):
            self.last = int(ordinals[-1])
        self._count += len(ordinals)
