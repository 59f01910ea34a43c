"""Which rows of blocks belong together, of many rows at once."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from receipt_cli.grammar.model import Block, Rule
from receipt_cli.lazy_dataclass import NamedTuple
from receipt_cli.records.envelope import NO_RANK
from receipt_cli.scan.columns import POSITION_BITS, RuleColumns

if TYPE_CHECKING:
    from receipt_cli.numeric.array_types import Array, Integers, Mask


class Placed(NamedTuple):
    """The block of each row, -1 for one that has none, and the rows that begin the blocks, ascending."""

    block: Integers
    openings: Integers


def ranks_of(rule: Rule, columns: RuleColumns) -> Sequence[int]:
    """Return the rank of each row: as a field prints it, else the label of its line."""
    found: Sequence[int] = columns.rank
    for name, numbers in columns.numbers.items():
        if rule.fields[name].target == ("structural", "rank"):
            printed = {row: int(value) for row, value in zip(numbers.rows, numbers.values, strict=True) if math.isfinite(value)}
            found = [printed.get(row, rank) for row, rank in enumerate(found)]
    return found


def place_rows(spec: Block, columns: RuleColumns, ranks: Sequence[int], keys: Integers, copied: Sequence[int]) -> Placed | None:
    """Return the blocks of the rows of a rule; ``keys`` are numbers of those of the texts, ``copied`` as of ``Naming``.

    None where only some rows have a rank and others may join what these opened.
    """
    import numpy as np

    labels = np.asarray(ranks)
    order: Integers | None = None
    index: Array = np.arange(len(columns), dtype=np.int32 if len(columns) < 1 << 31 else np.int64)
    key = np.full_like(index, -1)
    key[columns.pairs.rows.whole()] = keys
    place = columns.at.whole() >> POSITION_BITS
    if len(copied):
        place = place - np.searchsorted(np.asarray(copied), columns.line.whole())
    far = np.append(False, np.diff(place) > spec.gap + 1)
    breaks = index == 0
    if (labels != labels[0]).any():
        if spec.open is not None and (labels == NO_RANK).any():
            return None
        order = np.argsort(labels, kind="stable")
        key, labels = key[order], labels[order]
        far = np.append(False, np.diff(place[order]) > spec.gap + 1)
        breaks[1:] = labels[1:] != labels[:-1]
    del place
    start = _opened(index, key < 0, breaks, far) if spec.open is not None else _bare(index, key, breaks | far)
    begins = start == index
    openings = np.flatnonzero(begins)
    number = np.cumsum(begins, dtype=index.dtype) - 1
    if order is not None:
        openings = order[openings]
        number = np.append(np.argsort(np.argsort(openings)), -1)[number]
        openings.sort()
    block = np.where(start >= 0, number[start], -1)
    if order is not None:
        block[order] = block.copy()
    return Placed(block, openings)


def _opened(index: Array, opening: Mask, breaks: Mask, far: Mask) -> Array:
    """Return the opening line of each row; -1: none, or a row between is ``far`` from the one before it."""
    import numpy as np

    latest = np.maximum.accumulate(np.where(opening, index, -1))
    held = latest >= np.maximum.accumulate(np.where(breaks, index, 0))
    torn = np.cumsum(far & ~opening, dtype=index.dtype)
    held &= torn == torn[latest]
    return np.where(held, latest, -1)


def _bare(index: Array, key: Array, breaks: Mask) -> Array:
    """Return the row that begins the block of each: one behind a break, or with a key that the block before has."""
    import numpy as np

    order = np.argsort(key, kind="stable")
    again = key[order[1:]] == key[order[:-1]]
    before = np.full_like(index, -1)
    before[order[1:][again]] = order[:-1][again]
    repeats = np.searchsorted(np.maximum.accumulate(before), index)  # the first row with a key that is behind each row
    places = np.append(np.flatnonzero(breaks), len(key))
    following = np.minimum(repeats, places[np.searchsorted(places[:-1], index, side="right")]).tolist()
    start = np.zeros_like(index)
    at = 0
    while at < len(following):
        start[at] = at
        at = following[at]
    return np.maximum.accumulate(start)
