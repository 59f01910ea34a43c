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
    from receipt_cli.numeric.array_types import Integers, Mask


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
    key = np.full(len(columns), -1)
    key[columns.pairs.rows.whole()] = keys
    place = columns.at.whole() >> POSITION_BITS
    if len(copied):
        place = place - np.searchsorted(np.asarray(copied), columns.line.whole())
    order = np.arange(len(labels))
    if (labels != labels[0]).any():
        if spec.open is not None and (labels == NO_RANK).any():
            return None
        order = np.argsort(labels, kind="stable")
        place, key, labels = place[order], key[order], labels[order]
    begins = np.append(True, np.diff(labels) != 0)
    far = np.append(False, np.diff(place) > spec.gap + 1)
    start = _opened(key < 0, begins, far) if spec.open is not None else _bare(key, begins | far)
    openings = np.sort(order[start[start == np.arange(len(start))]])
    block = np.empty_like(order)
    block[order] = np.where(start >= 0, np.searchsorted(openings, order[start]), -1)
    return Placed(block, openings)


def _opened(opening: Mask, begins: Mask, far: Mask) -> Integers:
    """Return the opening line of each row; -1: none, or a row between is ``far`` from the one before it."""
    import numpy as np

    index = np.arange(len(opening))
    latest = np.maximum.accumulate(np.where(opening, index, -1))
    rank = np.maximum.accumulate(np.where(begins, index, 0))
    torn = np.cumsum(far & ~opening)
    return np.where((latest >= rank) & (torn == torn[latest]), latest, -1)


def _bare(key: Integers, breaks: Mask) -> Integers:
    """Return the row that begins the block of each: one behind a break, or with a key that the block before has."""
    import numpy as np

    index = np.arange(len(key))
    order = np.argsort(key, kind="stable")
    again = key[order[1:]] == key[order[:-1]]
    before = np.full(len(key), -1)
    before[order[1:][again]] = order[:-1][again]
    repeats = np.searchsorted(np.maximum.accumulate(before), index)  # the first row with a key that is behind each row
    places = np.append(np.flatnonzero(breaks), len(key))
    following = np.minimum(repeats, places[np.searchsorted(places[:-1], index, side="right")]).tolist()
    start = np.zeros(len(key), np.int64)
    at = 0
    while at < len(following):
        start[at] = at
        at = following[at]
    return np.maximum.accumulate(start)
