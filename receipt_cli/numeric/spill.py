"""Process long columns in pieces, and build new ones in buffers that may spill to disk (see ``spill_buffer``)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from receipt_cli.numeric.spill_buffer import SpillBuffer
from receipt_cli.numeric.spill_buffer import show as count_shown

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from receipt_cli.numeric.array_types import Integers, Mask

Kind = TypeVar("Kind", bound="np.generic")

TOUCHED = 1 << 16
"""Bytes that the system maps at one access."""
PIECE = 1 << 17
"""Numbers of a long column processed together."""
_SHORT = 1 << 12
"""Most numbers compared with those of another array, to avoid copying many."""
_LARGE = 8 << 20
"""Fewest bytes of a temporary column that are worth a file."""


def scratch(dtype: type[Kind], count: int) -> NDArray[Kind]:
    """Return ``count`` eight-byte numbers, uninitialised: in a file if they are many and would exceed the memory limit of all
    buffers."""
    return _scratch(dtype, count)[0]


def _scratch(dtype: type[Kind], count: int) -> tuple[NDArray[Kind], SpillBuffer | None]:
    """Return as ``scratch``, and the buffer if it is in a file."""
    size = 8 * count
    if size < _LARGE:
        return np.empty(count, dtype), None

    buffer = SpillBuffer(size)
    made = buffer.view(dtype, 0, count)
    if buffer.on_disk:
        return made, buffer
    buffer.lend()
    return made, None


def gathered(dtype: type[Kind], count: int, parts: Iterable[NDArray[Any]]) -> NDArray[Kind]:
    """Return the ``count`` numbers of all ``parts``, in order."""
    made, buffer = _scratch(dtype, count)
    at = 0
    for part in parts:
        if buffer is None:
            made[at : at + len(part)] = part
        elif len(part):
            buffer.write(8 * at, np.ascontiguousarray(part, dtype).data.cast("B"))
        at += len(part)
    if buffer is not None:
        buffer.flush()
    return made


def show(size: int = TOUCHED) -> None:
    """Count bytes read from files, by default one access; pages of files are released after many."""
    count_shown(size)


def pieces(values: NDArray[Kind], size: int = PIECE) -> Iterator[NDArray[Kind]]:
    """Yield ``values`` (eight bytes each) in pieces of ``size``; release pages of files meanwhile."""
    for begin in range(0, len(values), size):
        yield values[begin : begin + size]
        show(8 * size)


def slices(count: int, before: int = 0) -> Iterator[slice]:
    """Yield slices of ``count`` rows, each with ``before`` more rows at its start; release pages of files meanwhile."""
    for begin in range(0, count, PIECE):
        yield slice(max(0, begin - before), min(count, begin + PIECE))
        show(8 * PIECE)


def picked(values: NDArray[Kind], rows: Integers) -> NDArray[Kind]:
    """Return ``values`` (eight bytes each) at ascending ``rows``; release pages of files meanwhile."""
    if len(rows) <= PIECE:
        return values[rows]

    def parts() -> Iterator[NDArray[Kind]]:
        for begin in range(0, len(rows), PIECE):
            piece = rows[begin : begin + PIECE]
            yield values[piece]
            show(8 * int(piece[-1] - piece[0]))

    return gathered(values.dtype.type, len(rows), parts())


def joined(parts: Sequence[list[float] | NDArray[Any]], dtype: type[Kind]) -> NDArray[Kind]:
    """Return the numbers (eight bytes each) of all ``parts``, in order; without a copy if one array holds them in order."""
    filled = [part for part in map(np.asarray, parts) if len(part)]
    if len(filled) == 1 and filled[0].dtype == dtype:
        return filled[0]
    count = sum(map(len, filled))
    made = _in_place(filled, dtype) if 2 * max(map(len, filled), default=0) > count else None
    return gathered(dtype, count, (piece for part in filled for piece in pieces(part))) if made is None else made


def _in_place(parts: Sequence[NDArray[Any]], dtype: type[Kind]) -> NDArray[Kind] | None:
    """Return the slice of one array in which all ``parts`` follow one another, or None.

    The array is the base of the longest part; the other parts are slices of it, or short and equal to its content.
    """
    longest = max(parts, key=len)
    whole = longest.base
    if not isinstance(whole, np.ndarray) or whole.strides != (8,) or longest.strides != (8,):
        return None

    def place(part: NDArray[Any]) -> int:
        return (part.ctypes.data - whole.ctypes.data) // 8

    at = start = place(longest) - sum(len(part) for part in itertools.takewhile(lambda part: part is not longest, parts))
    end = start + sum(map(len, parts))
    if start < 0 or end > len(whole) or whole.dtype != dtype:
        return None
    for part in parts:
        shown, at = whole[at : at + len(part)], at + len(part)
        if part.base is whole and part.strides == (8,) and place(part) == at - len(part):
            continue
        if len(part) > _SHORT or part.astype(dtype).tobytes() != shown.tobytes():
            return None
    return whole[start:end]


def ascends(values: Integers) -> bool:
    """Return whether each of ``values`` (eight bytes) is larger than the one before."""
    last = None
    for piece in pieces(values):
        if not bool((piece[1:] > piece[:-1]).all()) or (last is not None and not piece[0] > last):
            return False
        last = piece[-1]
    return True


def rises(values: Integers) -> Iterator[tuple[int, Integers]]:
    """Yield (offset, differences of successive ``values``) in pieces."""
    for part in slices(len(values) - 1):
        yield part.start, values[part.start + 1 : part.stop + 1] - values[part]


def take(values: NDArray[Kind], wanted: Callable[[NDArray[Kind]], Mask], count: int) -> NDArray[Kind]:
    """Return the ``count`` entries of ``values`` (eight bytes each) for which ``wanted`` is true, in order."""
    return gathered(values.dtype.type, count, (piece[wanted(piece)] for piece in pieces(values)))
