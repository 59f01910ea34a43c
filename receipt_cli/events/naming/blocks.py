"""Which rows of blocks belong together, of many rows at once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from receipt_cli.grammar.model import Block, Rule
from receipt_cli.numeric.array_types import Array, Integers, Mask
from receipt_cli.records.envelope import NO_RANK
from receipt_cli.scan.columns import POSITION_BITS, RuleColumns


class Stretch(NamedTuple):
    """Rows of a rule: their positions, lines and ranks, which of them have a text, and numbers of the keys of these texts."""

    at: Integers
    line: Integers
    rank: Integers
    texts: Integers
    keys: Integers


def ranks_of(rule: Rule, columns: RuleColumns) -> Sequence[int]:
    """Return the rank of each row: as a field prints it, else the label of its line."""
    found: Sequence[int] = columns.rank
    for name, numbers in columns.numbers.items():
        if rule.fields[name].target == ("structural", "rank"):
            printed = {row: int(value) for row, value in zip(numbers.rows, numbers.values, strict=True) if math.isfinite(value)}
            found = [printed.get(row, rank) for row, rank in enumerate(found)]
    return found


def stretches(spec: Block, columns: RuleColumns, ranks: Integers, size: int) -> Iterator[tuple[slice, slice]]:
    """Yield rows of a rule that no block reaches out of, and their texts: about ``size`` each, or all where ranks differ."""
    texts, count, begin, first = columns.pairs.rows.whole(), len(columns), 0, 0
    end = count if spec.open is None or (ranks != ranks[0]).any() else min(size, count)
    while begin < count:
        last = int(np.searchsorted(texts, end))
        opening = np.ones(end - begin, np.bool_)
        opening[texts[first:last] - begin] = False
        cut = begin + int(opening.nonzero()[0][-1]) if end < count and opening[1:].any() else end
        if cut == end < count:  # a block of more rows
            end = min(count, end + size)
            continue
        last = int(np.searchsorted(texts, cut))
        yield slice(begin, cut), slice(first, last)
        begin, first, end = cut, last, min(count, cut + size)


def place_rows(spec: Block, rows: Stretch, copied: Sequence[int]) -> tuple[Integers, Integers]:
    """Return the block of each row, -1 for one that has none, and the rows that begin the blocks, ascending.

    ``copied`` as of ``Notes``.
    """
    labels, count = rows.rank, len(rows.at)
    order: Integers | None = None
    index: Array = np.arange(count, dtype=np.int32 if count < 1 << 31 else np.int64)
    key = np.full_like(index, -1)
    key[rows.texts] = rows.keys
    place = rows.at >> POSITION_BITS
    if len(copied):
        place = place - np.searchsorted(np.asarray(copied), rows.line)
    far = np.append(False, np.diff(place) > spec.gap + 1)
    breaks = index == 0
    if (labels != labels[0]).any():
        labels = labels if spec.open is None else _ranks_joined(index, key < 0, labels)
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
    return block, openings


def _ranks_joined(index: Array, opening: Mask, ranks: Integers) -> Integers:
    """Return the ranks; a row without one has that of the opening line before it, until an opening line without one comes."""
    latest = np.maximum.accumulate(np.where(opening, index, -1))
    bare = ranks == NO_RANK
    joins = bare & ~opening & (latest >= 0) & ~np.maximum.accumulate(bare & opening)
    return np.where(joins, ranks[latest], ranks)


def _opened(index: Array, opening: Mask, breaks: Mask, far: Mask) -> Array:
    """Return the opening line of each row; -1: none, or a row between is ``far`` from the one before it."""
    latest = np.maximum.accumulate(np.where(opening, index, -1))
    held = latest >= np.maximum.accumulate(np.where(breaks, index, 0))
    torn = np.cumsum(far & ~opening, dtype=index.dtype)
    held &= torn == torn[latest]
    return np.where(held, latest, -1)


def _bare(index: Array, key: Array, breaks: Mask) -> Array:
    """Return the row that begins the block of each: one behind a break, or with a key that the block before has."""
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
