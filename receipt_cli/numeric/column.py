"""Append-only columns of 8-byte numbers: a small array, a growable buffer, or one repeated value.

Reads as a sequence of Python numbers, or as one numpy array without a copy.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from pickle import PickleBuffer
from typing import TYPE_CHECKING, Any, Generic, SupportsIndex, TypeVar, overload

import numpy as np

from receipt_cli.numeric.spill import SpillBuffer, picked

if TYPE_CHECKING:
    from receipt_cli.numeric.array_types import Array

N = TypeVar("N", int, float)

FEW = 1 << 13
"""Entries up to which a C array is used: its over-allocation stays below a page."""
_LISTED = 1 << 16
"""Entries converted to Python numbers at a time."""


class Cells(Sequence[N], Generic[N]):
    """A column of int64 (code ``q``) or float64 (code ``d``).

    It has one of three states: ``_few``, a growing array or a fixed numpy array; ``_count`` times the value ``_same``;
    or ``_count`` entries in ``_buffer``.
    """

    __slots__ = ("_buffer", "_code", "_count", "_few", "_same")

    def __init__(self, code: str, values: Iterable[N] = ()) -> None:
        self._code = code
        self._few: array[N] | Array | None = array(code, values)
        self._count = 0
        self._same: array[N] | None = None
        self._buffer: SpillBuffer | None = None

    @classmethod
    def read(cls, code: str, data: Any) -> Cells[Any]:
        """Return the column with the bytes ``data``, which may be a pickle's buffer."""
        made: Cells[Any] = cls(code)
        if len(memoryview(data).cast("B")) <= 8 * FEW:
            made.extend_bytes(data)
            return made
        made._few = np.frombuffer(data, np.int64 if code == "q" else np.float64)
        return made

    @classmethod
    def of(cls, values: Array) -> Cells[Any]:
        """Return a column of ``values``, int64 or float64 [n], which must not change any more."""
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
        """Return one number, or an array for a slice."""
        if self._same is not None:
            places = range(self._count)[index]
            return self._same[0] if isinstance(places, int) else self._same * len(places)
        held = self._held
        if isinstance(index, slice) and not isinstance(held, array):
            return array(self._code, held[index].tobytes())
        return held[index]

    def __iter__(self) -> Iterator[N]:
        return iter(self._few) if isinstance(self._few, array) else self._listed()

    def _listed(self) -> Iterator[N]:
        for start in range(0, len(self), _LISTED):
            yield from self[start : start + _LISTED]

    def __eq__(self, other: object) -> bool:
        """Return whether the numbers and their order are equal; NaN equals nothing."""
        return list(self) == list(other) if isinstance(other, Cells | array) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Cells({self._code!r}, {len(self)} entries)"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Implement ``numpy.asarray``: see ``whole``."""
        return np.array(self.whole(), dtype, copy=True) if copy else np.asarray(self.whole(), dtype)

    def __reduce_ex__(self, protocol: SupportsIndex) -> tuple[Any, ...]:
        """Let pickle protocol 5 take the bytes without a copy."""
        if self._same is not None:
            return _equal, (self._code, self._same.tobytes(), self._count)
        held: Any = self._few if self._few is not None else self.whole()
        data = PickleBuffer(held) if int(protocol) >= 5 and len(held) else held.tobytes()
        return Cells.read, (self._code, data)

    def whole(self) -> Array:
        """Return all entries (int64 or float64 [n]), read-only; the column must not grow while the array is in use."""
        if self._buffer is not None:
            return self._buffer.view(self._dtype, 0, self._count)
        if self._same is not None:
            return np.broadcast_to(np.frombuffer(self._same, self._dtype), self._count)
        return np.frombuffer(self._few, self._dtype) if isinstance(self._few, array) else self._few  # type: ignore[return-value]

    def picked(self, rows: Cells[int]) -> Cells[N]:
        """Return the column of the entries at ascending ``rows``."""
        if self._same is not None:
            return _equal(self._code, self._same.tobytes(), len(rows))
        return Cells.of(picked(self.whole(), rows.whole()))

    @property
    def _held(self) -> array[N] | memoryview:
        """All entries as Python numbers; not for a repeated value."""
        if self._buffer is not None:
            return self._buffer.numbers(self._code, 0, self._count)
        return self._few if isinstance(self._few, array) else memoryview(self._few)  # type: ignore[arg-type]

    def _bytes(self) -> bytes | memoryview:
        if self._same is not None:
            return self._same.tobytes() * self._count
        return memoryview(self._few).cast("B") if isinstance(self._few, array) else memoryview(self._held).tobytes()

    @property
    def _dtype(self) -> type[np.generic]:
        return np.int64 if self._code == "q" else np.float64

    def append(self, value: N) -> None:
        """Add one number."""
        few = self._few
        if isinstance(few, array):
            few.append(value)
        else:
            self.extend(array(self._code, [value]))

    def extend_bytes(self, data: bytes | memoryview) -> None:
        """Add the numbers whose bytes are ``data``."""
        few, count = self._few, len(data) // 8
        if isinstance(few, array) and len(few) + count <= FEW:
            few.frombytes(data)
        elif count:
            if not self._grows_by(np.frombuffer(data, self._dtype)):
                self._buffer_for(len(self) + count).write(8 * self._count, data)
            self._count += count

    def extend_array(self, values: Array) -> None:
        """Add an array, int64 or float64 [n] like the column."""
        self.extend_bytes(values.tobytes())

    def extend(self, other: Cells[N] | array[N], shift: int = 0) -> None:
        """Add the numbers of ``other``, each plus ``shift``."""
        count = len(self)
        if not len(other):
            return
        if count + len(other) <= FEW:
            self.extend_bytes(_shifted(other, shift))
            return
        values = other.whole() if isinstance(other, Cells) else np.frombuffer(other, self._dtype)
        if not shift and self._grows_by(values):
            self._count += len(values)
            return
        buffer = self._buffer_for(count + len(values))
        end = buffer.view(self._dtype, count, len(values))
        if shift:
            np.add(values, shift, out=end)
        else:
            end[...] = values
        self._count += len(values)

    def _grows_by(self, values: Array) -> bool:
        """Store the column and ``values`` as one repeated value; return whether they are all equal."""
        if self._buffer is not None or not _all_equal(values):
            return False
        ours = self._same or self._few
        first = values[:1].tobytes()
        if ours is not None and len(ours) and (ours[:1].tobytes() != first or not (self._same or _all_equal(self.whole()))):
            return False
        self._same, self._count, self._few = array(self._code, first), len(self), None
        return True

    def _buffer_for(self, count: int) -> SpillBuffer:
        """Return a buffer that holds the entries and has room for ``count``."""
        if self._buffer is None:
            held = self._bytes()
            buffer = SpillBuffer(8 * count)
            buffer.write(0, held)
            self._count, self._buffer = len(held) // 8, buffer
            self._few = self._same = None
        self._buffer.grow(8 * count)
        return self._buffer


def _equal(code: str, first: bytes, count: int) -> Cells[Any]:
    made: Cells[Any] = Cells(code)
    made._few, made._same, made._count = None, array(code, first), count
    return made


def shifted(values: array[int], by: int) -> array[int]:
    """Return ``values`` (int64) plus ``by``."""
    return array("q", _shifted(values, by)) if by and values else values


def _shifted(values: Cells[N] | array[N], by: int) -> bytes | memoryview:
    """Return the bytes of ``values`` plus ``by``."""
    if not by:  # adding 0 would change -0.0
        return values._bytes() if isinstance(values, Cells) else memoryview(values).cast("B")
    return (np.asarray(values) + by).tobytes()


def _all_equal(values: Array) -> bool:
    """Return whether all entries have the same eight bytes: NaNs may differ, and zero has two signs."""
    if not len(values) or values.strides == (0,):
        return bool(len(values))
    bits = values.view("int64")
    return bool(bits[0] == bits[-1] and (bits == bits[0]).all())
