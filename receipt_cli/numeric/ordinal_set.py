"""Sets of record ordinals: a Python set of few; of many, window by window the members or a bitmap, whatever is less."""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from receipt_cli.numeric.arrays import distinct_values, is_large
from receipt_cli.numeric.ordinal_list import Listed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Integers: TypeAlias = NDArray[np.int64]
    Mark: TypeAlias = NDArray[np.bool_]

WINDOW = 2**20
"""Ordinals that are compared at a time, as a bitmap of one byte each: it stays in the second-level cache."""
SPARSE = WINDOW // 32
"""Members of a window, four bytes each, up to which they take no more than a bitmap of bits."""


@dataclass(frozen=True, slots=True)
class _Window:
    """``count`` members between two multiples of ``WINDOW``: uint32 from the lower one on, or bits in bytes (uint8)."""

    count: int
    data: NDArray[np.uint32] | NDArray[np.uint8]

    @classmethod
    def of(cls, mark: Mark) -> _Window:
        """Pack a bitmap (bool [WINDOW])."""
        import numpy as np

        count = int(np.count_nonzero(mark))
        return cls(count, np.flatnonzero(mark).astype(np.uint32) if count <= SPARSE else np.packbits(mark))

    @classmethod
    def holding(cls, members: Integers) -> _Window:
        """Pack members (int64 [n], 0 to WINDOW, in any order, some perhaps twice)."""
        import numpy as np

        if len(members) > SPARSE:
            mark = np.zeros(WINDOW, np.bool_)
            mark[members] = True
            return cls.of(mark)
        data = distinct_values(members.astype(np.uint32))
        return cls(len(data), data)

    def __or__(self, other: _Window) -> _Window:
        import numpy as np

        if self.count + other.count <= SPARSE:
            data = np.union1d(self.data, other.data)
            return _Window(len(data), data)
        return _Window.of(self.mark() | other.mark())

    def __sub__(self, other: _Window) -> _Window:
        import numpy as np

        if self.count > SPARSE:
            return _Window.of(self.mark() & ~other.mark())
        left = self.data[~(np.isin(self.data, other.data) if other.count <= SPARSE else other.mark()[self.data])]
        return _Window(len(left), left)

    def mark(self) -> Mark:
        """Return the bitmap (bool [WINDOW]), which is the caller's."""
        import numpy as np

        if self.count > SPARSE:
            return np.unpackbits(self.data).view(np.bool_)  # type: ignore[arg-type]
        marks = np.zeros(WINDOW, np.bool_)
        marks[self.data] = True
        return marks

    def members(self) -> Integers:
        """Return the members (int64 [count], ascending), from the window's beginning."""
        import numpy as np

        return self.data.astype(np.int64) if self.count <= SPARSE else np.flatnonzero(self.mark())


class Ordinals:
    """A set of record ordinals, which are not negative."""

    __slots__ = ("_few", "_many")

    def __init__(self, few: set[int] | None = None, many: dict[int, _Window] | None = None) -> None:
        """Exactly one of ``few`` and ``many``, windows by their number, ascending; neither is changed later."""
        self._few = few
        self._many = many

    @classmethod
    def of(cls, values: Sequence[int] | Listed, shift: int = 0, without: Collection[int] = ()) -> Ordinals:
        """Return the set of ``value >> shift``, but for the rows that ``without`` names. No view of ``values`` lives on."""
        if not is_large(len(values)):
            rows = set(without)
            return cls({value >> shift for row, value in enumerate(values) if row not in rows})
        if isinstance(values, Listed):
            return cls.collect(values.arrays(WINDOW))
        return cls.collect(_shifted(values, shift, without))

    @classmethod
    def collect(cls, pieces: Iterable[Integers]) -> Ordinals:
        """Return the set of all that ``pieces`` hold (int64 [n] each, in any order)."""
        found: dict[int, _Window] = {}
        for piece in pieces:
            windows = piece // WINDOW
            for window in distinct_values(windows).tolist():
                members = _Window.holding(piece[windows == window] - window * WINDOW)
                found[window] = found[window] | members if window in found else members
        return cls(many=dict(sorted(found.items())))

    @classmethod
    def union(cls, sets: Iterable[Ordinals]) -> Ordinals:
        """Return what is in any of ``sets``."""
        pieces = [piece for piece in sets if piece]
        if len(pieces) < 2:
            return pieces[0] if pieces else cls(set())
        few = [piece._few for piece in pieces if piece._few is not None]
        if len(few) == len(pieces):
            return cls(set().union(*few))
        found: dict[int, _Window] = {}
        for piece in pieces:
            for window, members in piece._windows().items():
                found[window] = found[window] | members if window in found else members
        return cls(many=dict(sorted(found.items())))

    def __len__(self) -> int:
        return len(self._few) if self._few is not None else sum(window.count for window in self._windows().values())

    def __sub__(self, other: Ordinals) -> Ordinals:
        if self._few is not None and other._few is not None:
            return Ordinals(self._few - other._few)
        if not self or not other:
            return self
        theirs = other._windows()
        left: dict[int, _Window] = {}
        for window, mine in self._windows().items():
            rest = mine - theirs[window] if window in theirs else mine
            if rest.count:
                left[window] = rest
        return Ordinals(many=left)

    def count_switches(self, other: Ordinals) -> int:
        """Return how often the owner changes along all members of both in order; ours go first where both have one."""
        if self._few is not None and other._few is not None:
            merged = sorted([(at, 0) for at in self._few] + [(at, 1) for at in other._few])
            return sum(1 for a, b in itertools.pairwise(merged) if a[1] != b[1])
        import numpy as np

        mine, theirs = self._windows(), other._windows()
        switches, last = 0, -1
        for window in sorted({*mine, *theirs}):
            parts = [own[window].members() << 1 | owner for owner, own in enumerate((mine, theirs)) if window in own]
            owners = np.sort(np.concatenate(parts), kind="stable") & 1
            switches += int(np.count_nonzero(np.diff(owners))) + (last not in (-1, int(owners[0])))
            last = int(owners[-1])
        return switches

    def __iter__(self) -> Iterator[int]:
        """Yield the members, ascending."""
        if self._few is not None:
            yield from sorted(self._few)
            return
        for window, members in self._windows().items():
            yield from (members.members() + window * WINDOW).tolist()

    def _windows(self) -> dict[int, _Window]:
        if self._many is not None:
            return self._many
        import numpy as np

        return Ordinals.collect([np.array(sorted(self._few or ()), np.int64)])._windows()


def _shifted(values: Sequence[int] | array[int], shift: int, without: Collection[int]) -> Iterator[Integers]:
    """Yield ``value >> shift`` of ``values``, a window's worth at a time, but for the rows that ``without`` names."""
    import numpy as np

    whole = np.asarray(values, np.int64)
    rows = np.asarray(without, np.int64)
    for start in range(0, len(whole), WINDOW):
        piece = whole[start : start + WINDOW] >> shift
        inside = rows[(rows >= start) & (rows < start + WINDOW)] if len(rows) else rows
        yield np.delete(piece, inside - start) if len(inside) else piece
