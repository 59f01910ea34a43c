"""Sets of record ordinals: 64-bit Roaring bitmaps, which stay small for any number of records."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from pyroaring import BitMap, BitMap64

from receipt_cli.numeric.array_types import Integers
from receipt_cli.numeric.column import Cells
from receipt_cli.numeric.spill import show

OrdinalSet: TypeAlias = BitMap64
PIECE = 1 << 20
"""Ordinals added at a time, so that their arrays stay in the CPU cache."""


def ordinals_at(values: Cells[int], shift: int, without: Sequence[int] = ()) -> OrdinalSet:
    """Return the set of ``value >> shift``, except for the rows in ``without``, ascending."""
    whole, apart = values.whole(), np.asarray(without, np.int64)
    found = OrdinalSet()
    for start in range(0, len(whole), PIECE):
        piece = whole[start : start + PIECE]
        if len(apart):
            piece = np.delete(piece, apart[slice(*np.searchsorted(apart, [start, start + len(piece)]))] - start)
        found |= ordinals_in(piece >> shift)
        show(16 * PIECE)
    return found


def ordinals_from(data: bytes) -> OrdinalSet:
    """Return the set of the int64 numbers in ``data``, not negative, in any order."""
    return ordinals_in(np.frombuffer(data, np.int64))


def ordinals_in(ordinals: Integers) -> OrdinalSet:
    """Return the set of ``ordinals`` (int64 [n], not negative, in any order)."""
    high = int(ordinals.max()) >> 32 if len(ordinals) else 0
    if len(ordinals) and int(ordinals.min()) >> 32 < high:
        return OrdinalSet(array("Q", ordinals.tobytes()))
    low = BitMap(array("I", ordinals.astype(np.uint32).tobytes()))
    # A third of the time of 64 bits: one bucket of the 64-bit format is its number and a bitmap of 32 bits.
    return OrdinalSet.deserialize(struct.pack("<QI", 1, high) + low.serialize())


def count_switches(left: OrdinalSet, right: OrdinalSet, most: int) -> int:
    """Count how often the owner changes along all members of both sets in order, up to ``most``.

    A member of both counts for ``left`` first.
    """
    if not left or not right:
        return 0
    ours, theirs = (left, left.max(), 0), (right, right.max(), 1)
    if right.min() < left.min():
        ours, theirs = theirs, ours
    at = switches = 0
    while switches < most:
        owner, _, behind = ours
        at = owner.next_set_bit(at) + behind
        if theirs[1] < at:
            break
        ours, theirs, switches = theirs, ours, switches + 1
    return switches
