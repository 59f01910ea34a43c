"""Long columns are looked at in pieces, and gathered where there is room for them: see ``room``."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from receipt_cli.numeric.room import Room
from receipt_cli.numeric.room import show as count_shown

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from receipt_cli.numeric.array_types import Integers, Mask

Kind = TypeVar("Kind", bound="np.generic")

TOUCHED = 1 << 16
"""Bytes that the system maps where one is looked at."""
PIECE = 1 << 17
"""Numbers of a long column that are looked at together."""
_SHORT = 1 << 12
"""Numbers that are compared with those of another array, to spare a copy of many."""
_LARGE = 8 << 20
"""Bytes for a while that are worth a file."""


def scratch(dtype: type[Kind], count: int) -> NDArray[Kind]:
    """Return ``count`` numbers of eight bytes that are still to be written: in a file where they are many and would
    exceed the bound beside what all rooms, and other such numbers, hold."""
    return _scratch(dtype, count)[0]


def _scratch(dtype: type[Kind], count: int) -> tuple[NDArray[Kind], Room | None]:
    """Return as ``scratch``, and the room where it is in a file."""
    import numpy as np

    size = 8 * count
    if size < _LARGE:
        return np.empty(count, dtype), None

    room = Room(size)
    made = room.view(dtype, 0, count)
    if room.on_disk:
        return made, room
    room.lend()
    return made, None


def gathered(dtype: type[Kind], count: int, parts: Iterable[NDArray[Any]]) -> NDArray[Kind]:
    """Return the ``count`` numbers of all ``parts``, in order."""
    import numpy as np

    made, room = _scratch(dtype, count)
    at = 0
    for part in parts:
        if room is None:
            made[at : at + len(part)] = part
        elif len(part):
            room.write(8 * at, np.ascontiguousarray(part, dtype).data.cast("B"))
        at += len(part)
    if room is not None:
        room.settle()
    return made


def show(size: int = TOUCHED) -> None:
    """Count bytes that are looked at, by default at one place: where they are many, all pages of files are given back."""
    count_shown(size)


def pieces(values: NDArray[Kind], size: int = PIECE) -> Iterator[NDArray[Kind]]:
    """Yield ``values`` (of eight bytes) in pieces of ``size``; the pages of files are given back meanwhile."""
    for begin in range(0, len(values), size):
        yield values[begin : begin + size]
        show(8 * size)


def slices(count: int, before: int = 0) -> Iterator[slice]:
    """Yield ``count`` rows in pieces, each with so many rows ``before`` it; the pages of files are given back meanwhile."""
    for begin in range(0, count, PIECE):
        yield slice(max(0, begin - before), min(count, begin + PIECE))
        show(8 * PIECE)


def picked(values: NDArray[Kind], rows: Integers) -> NDArray[Kind]:
    """Return ``values`` (of eight bytes) at ``rows``, ascending; the pages of files are given back meanwhile."""
    if len(rows) <= PIECE:
        return values[rows]

    def parts() -> Iterator[NDArray[Kind]]:
        for begin in range(0, len(rows), PIECE):
            piece = rows[begin : begin + PIECE]
            yield values[piece]
            show(8 * int(piece[-1] - piece[0]))

    return gathered(values.dtype.type, len(rows), parts())


def joined(parts: Sequence[list[float] | NDArray[Any]], dtype: type[Kind]) -> NDArray[Kind]:
    """Return the numbers (of eight bytes) of all ``parts``, in order; no copy is made where one array has them in order."""
    import numpy as np

    filled = [part for part in map(np.asarray, parts) if len(part)]
    if len(filled) == 1 and filled[0].dtype == dtype:
        return filled[0]
    count = sum(map(len, filled))
    made = _in_place(filled, dtype) if 2 * max(map(len, filled), default=0) > count else None
    return gathered(dtype, count, (piece for part in filled for piece in pieces(part))) if made is None else made


def _in_place(parts: Sequence[NDArray[Any]], dtype: type[Kind]) -> NDArray[Kind] | None:
    """Return the part of an array where all ``parts`` follow one another; None where there is none.

    The array is the one that the longest part shows; the others are parts of it, or short and found there.
    """
    import numpy as np

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
    """True when each of ``values`` (of eight bytes) is larger than the one before."""
    last = None
    for piece in pieces(values):
        if not bool((piece[1:] > piece[:-1]).all()) or (last is not None and not piece[0] > last):
            return False
        last = piece[-1]
    return True


def rises(values: Integers) -> Iterator[tuple[int, Integers]]:
    """Yield the rises from one of ``values`` to the next in pieces, and how many precede each piece."""
    for part in slices(len(values) - 1):
        yield part.start, values[part.start + 1 : part.stop + 1] - values[part]


def take(values: NDArray[Kind], wanted: Callable[[NDArray[Kind]], Mask], count: int) -> NDArray[Kind]:
    """Return the ``count`` of ``values`` (of eight bytes) for which ``wanted`` is true, in order."""
    return gathered(values.dtype.type, count, (piece[wanted(piece)] for piece in pieces(values)))
