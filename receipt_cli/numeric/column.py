"""Append-only columns of 8-byte numbers: few in an array, many in a growable buffer, equal ones as one.

Readers see a sequence of Python numbers, or the whole as one numpy array without a copy.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, SupportsIndex, TypeVar, overload

from receipt_cli.numeric.arrays import is_large
from receipt_cli.numeric.spill import Room

if TYPE_CHECKING:
    import numpy as np

    from receipt_cli.numeric.array_types import Array

N = TypeVar("N", int, float)

FEW = 1 << 13
"""Entries up to which an array is as good as anything: what an array of the C library grows by is not worth a page."""
LEAD = 512
"""Entries left free before the others: the values of the first, open record of a piece go there."""
WORTH_CALL = 128
"""Entries from which on numpy, once it is loaded, adds faster."""
_LISTED = 1 << 16
"""Entries that become Python numbers at a time."""


class Cells(Sequence[N], Generic[N]):
    """A column of int64 (code ``q``) or float64 (code ``d``).

    In one of three states: ``_few``, an array that grows, or one of numpy's that does not; ``_count`` times ``_same``;
    ``_count`` entries of ``_room`` from ``_start`` on.
    """

    __slots__ = ("_code", "_count", "_few", "_room", "_same", "_start")

    def __init__(self, code: str, values: Iterable[N] = ()) -> None:
        self._code = code
        self._few: array[N] | Array | None = array(code, values)
        self._count = 0
        self._same: array[N] | None = None
        self._room: Room | None = None
        self._start = 0

    @classmethod
    def read(cls, code: str, data: Any) -> Cells[Any]:
        """Return the column whose bytes are ``data``: bytes, or what a pickler took apart."""
        made: Cells[Any] = cls(code)
        if len(memoryview(data).cast("B")) <= 8 * FEW:
            made._few = array(code)
            made._few.frombytes(data)
            return made
        import numpy as np

        made._few = np.frombuffer(data, np.int64 if code == "q" else np.float64)
        return made

    @classmethod
    def of(cls, values: Array) -> Cells[Any]:
        """Return a column that is ``values``, int64 or float64 [n], which nobody changes any more."""
        made: Cells[Any] = cls("q" if values.dtype.kind == "i" else "d")
        if _all_equal(values):
            made._few, made._same, made._count = None, array(made._code, values[:1].tobytes()), len(values)
        else:
            made._few = values
        return made

    def __len__(self) -> int:
        return self._count if self._few is None else len(self._few)

    @overload
    def __getitem__(self, index: SupportsIndex) -> N: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[N]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> N | Sequence[N]:
        """Return one number, or those of a slice as an array."""
        held = self._few if isinstance(self._few, array) else None
        if held is not None:
            return held[index]
        if isinstance(index, slice):
            return array(self._code, self.whole()[index].tobytes())
        return self.whole()[index].item()  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[N]:
        if isinstance(self._few, array):
            yield from self._few
            return
        whole = self.whole()
        for start in range(0, len(whole), _LISTED):
            yield from whole[start : start + _LISTED].tolist()

    def __eq__(self, other: object) -> bool:
        """True for the same numbers in the same order; NaN equals nothing."""
        return list(self) == list(other) if isinstance(other, Cells | array) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Cells({self._code!r}, {len(self)} entries)"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return what ``numpy.asarray`` wants: see ``whole``."""
        import numpy as np

        return np.array(self.whole(), dtype, copy=True) if copy else np.asarray(self.whole(), dtype)

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        """Let a pickler of protocol 5 take the bytes without a copy."""
        from pickle import PickleBuffer

        if self._same is not None:
            return _equal, (self._code, self._same.tobytes(), self._count)
        held: Any = self._few if self._few is not None else self.whole()
        data = PickleBuffer(held) if int(protocol) >= 5 and len(held) else held.tobytes()
        return Cells.read, (self._code, data)

    def whole(self) -> Array:
        """Return all entries (int64 or float64 [n]), not to be changed; the column must not grow while it lives."""
        import numpy as np

        if self._room is not None:
            return self._room.view(self._dtype, self._start, self._count)
        if self._same is not None:
            return np.broadcast_to(np.frombuffer(self._same, self._dtype), self._count)
        return np.frombuffer(self._few, self._dtype) if isinstance(self._few, array) else self._few  # type: ignore[return-value]

    def picked(self, rows: array[int]) -> Cells[N]:
        """Return the column of the entries at ``rows``."""
        if not is_large(rows):
            return Cells(self._code, [self[row] for row in rows])
        import numpy as np

        return Cells.of(self.whole()[np.frombuffer(rows, np.int64)])

    @property
    def _dtype(self) -> type[np.generic]:
        import numpy as np

        return np.int64 if self._code == "q" else np.float64

    @property
    def lasting(self) -> bool:
        """True when the memory is its own, and not one that somebody lent for as long as it takes to copy it."""
        return self._few is None or isinstance(self._few, array)

    def append(self, value: N) -> None:
        """Add one number."""
        few = self._few
        if isinstance(few, array):
            few.append(value)
        else:
            self.extend(array(self._code, [value]))

    def extend(self, other: Cells[N] | array[N], shift: int = 0) -> None:
        """Add the numbers of ``other``, each plus ``shift``."""
        count = len(self)
        if not len(other):
            return
        few = self._few
        if isinstance(few, array) and count + len(other) <= FEW:
            few.frombytes(_shifted(other, shift))
            return
        import numpy as np

        values = other.whole() if isinstance(other, Cells) else np.frombuffer(other, self._dtype)
        if not shift and self._grows_by(values):
            self._count += len(values)
            return
        room = self._roomy(count + len(values))
        end = room.view(self._dtype, self._start + count, len(values))
        if shift:
            np.add(values, shift, out=end)
        else:
            end[...] = values
        self._count += len(values)

    def prepend(self, other: Cells[N]) -> None:
        """Put the numbers of ``other``, which are few, before ours."""
        before = len(other)
        if not before:
            return
        if self._room is not None and before <= self._start:
            self._start -= before
            self._count += before
            self._room.view(self._dtype, self._start, before)[...] = other.whole()
            return
        after = Cells[N](self._code)
        after.extend(other)
        after.extend(self)
        for name in Cells.__slots__:
            setattr(self, name, getattr(after, name))

    def shift(self, by: int) -> None:
        """Add ``by`` to each number, in place."""
        if not by or not len(self):
            return
        if self._room is not None:
            moved = self.whole()
            moved += by
        else:
            self._few = array(self._code, _shifted(self, by))
            self._same, self._count = None, 0

    def _grows_by(self, values: Array) -> bool:
        """True when these and ``values`` are all the same: they are then only counted."""
        if self._room is not None or not _all_equal(values):
            return False
        ours = self._same or self._few
        first = values[:1].tobytes()
        if ours is not None and len(ours) and (ours[:1].tobytes() != first or not (self._same or _all_equal(self.whole()))):
            return False
        self._same, self._count, self._few = array(self._code, first), len(self), None
        return True

    def _roomy(self, count: int) -> Room:
        """Return room for ``count`` entries, with those that there are."""
        if self._room is None:
            held = self.whole()
            room = Room(8 * (LEAD + count))
            room.view(self._dtype, LEAD, len(held))[...] = held
            self._count, self._start, self._room = len(held), LEAD, room
            self._few = self._same = None
        self._room.grow(8 * (self._start + count))
        return self._room


def _equal(code: str, first: bytes, count: int) -> Cells[Any]:
    made: Cells[Any] = Cells(code)
    made._few, made._same, made._count = None, array(code, first), count
    return made


def shifted(values: array[int], by: int) -> array[int]:
    """Return ``values`` (int64) plus ``by``."""
    return array("q", _shifted(values, by)) if by and values else values


def _shifted(values: Cells[N] | array[N], by: int) -> bytes | memoryview:
    """Return the bytes of ``values`` plus ``by``."""
    few = values._few if isinstance(values, Cells) else values
    if isinstance(few, array) and not by:
        return memoryview(few).cast("B")
    if isinstance(few, array) and ("numpy" not in sys.modules or len(few) < WORTH_CALL):
        return struct.pack(f"{len(few)}q", *(value + by for value in few))
    import numpy as np

    whole = np.asarray(values)
    return (whole + by if by else whole).tobytes()  # zero has two signs


def _all_equal(values: Array) -> bool:
    """True for entries of the same eight bytes: one NaN may be another than the next, and zero has two signs."""
    if not len(values) or values.strides == (0,):
        return bool(len(values))
    bits = values.view("int64")
    return bool(bits[0] == bits[-1] and (bits == bits[0]).all())
