"""Sets of record ordinals: a Python set of few, a sorted numpy array of many."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeAlias

from receipt_cli.magnitude import is_large

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Sorted: TypeAlias = NDArray[np.int64]

WINDOW = 2**20
"""Ordinals that are compared at a time, as a bitmap of one byte each: it stays in the second-level cache."""


class Ordinals:
    """A set of record ordinals, which are not negative."""

    __slots__ = ("_few", "_many")

    def __init__(self, few: set[int] | None = None, many: Sorted | None = None) -> None:
        """Exactly one of ``few`` and ``many``, the latter (n,) strictly ascending; neither is changed later."""
        self._few = few
        self._many = many

    @classmethod
    def of(cls, values: array[int], shift: int = 0, without: Collection[int] = ()) -> Ordinals:
        """Return the set of ``value >> shift``, but for the rows that ``without`` names. No view of ``values`` lives on."""
        if not is_large(len(values)):
            rows = set(without)
            return cls({value >> shift for row, value in enumerate(values) if row not in rows})
        import numpy as np

        many = np.asarray(values, np.int64) >> shift
        if len(without):
            many = np.delete(many, np.asarray(without, np.int64))
        steps = np.diff(many)
        if (steps < 0).any():
            many.sort(kind="stable")
            steps = np.diff(many)
        return cls(many=many if steps.all() else many[np.append(True, steps > 0)])

    @classmethod
    def union(cls, sets: Iterable[Ordinals]) -> Ordinals:
        """Return what is in any of ``sets``."""
        pieces = [piece for piece in sets if piece]
        if len(pieces) < 2:
            return pieces[0] if pieces else cls(set())
        few = [piece._few for piece in pieces if piece._few is not None]
        if len(few) == len(pieces):
            return cls(set().union(*few))
        import numpy as np

        found = [np.flatnonzero(_mark(window)) + start for start, window in _windows([piece._array() for piece in pieces])]
        return cls(many=np.concatenate(found))

    def __len__(self) -> int:
        return len(self._array() if self._few is None else self._few)

    def __sub__(self, other: Ordinals) -> Ordinals:
        if self._few is not None and other._few is not None:
            return Ordinals(self._few - other._few)
        if not self or not other:
            return self
        import numpy as np

        left: list[Sorted] = [np.empty(0, np.int64)]
        for start, (mine, theirs) in _windows([self._array(), other._array()]):
            left.append((mine[~_mark([theirs])[mine]] if len(mine) and len(theirs) else mine) + start)
        return Ordinals(many=np.concatenate(left))

    def count_switches(self, other: Ordinals) -> int:
        """Return how often the owner changes along all members of both in order; ours go first where both have one."""
        if self._few is not None and other._few is not None:
            merged = sorted([(at, 0) for at in self._few] + [(at, 1) for at in other._few])
            return sum(1 for a, b in itertools.pairwise(merged) if a[1] != b[1])
        import numpy as np

        owners = np.concatenate([self._array() << 1, other._array() << 1 | 1])
        owners.sort(kind="stable")
        return int(np.count_nonzero(np.diff(owners & 1)))

    def _array(self) -> Sorted:
        if self._many is not None:
            return self._many
        import numpy as np

        return np.array(sorted(self._few or ()), np.int64)


def _windows(sets: Sequence[Sorted]) -> Iterator[tuple[int, list[Sorted]]]:
    """Yield where each window that any of ``sets`` has a member in begins, and the members in it relative to that."""
    import numpy as np

    lowest = min(int(members[0]) for members in sets) // WINDOW * WINDOW
    highest = max(int(members[-1]) for members in sets)
    edges = np.arange(lowest, highest + WINDOW + 1, WINDOW)
    cuts = [np.searchsorted(members, edges).tolist() for members in sets]
    for window, start in enumerate(edges[:-1].tolist()):
        inside = [members[cut[window] : cut[window + 1]] for members, cut in zip(sets, cuts, strict=True)]
        if any(map(len, inside)):
            yield start, [members - start for members in inside]


def _mark(members: Iterable[Sorted]) -> NDArray[np.bool_]:
    """Return the bitmap (WINDOW,) of all ``members``."""
    import numpy as np

    marks = np.zeros(WINDOW, np.bool_)
    for some in members:
        marks[some] = True
    return marks
