"""Duplicate step records from non-leading ranks, kept as columns instead of ``Event`` objects.

The summary uses only the figures that each rank printed itself.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from receipt_cli.events.compact.frame import Frame, labels
from receipt_cli.events.rows import STEP_TIME, RankCopies, is_memory
from receipt_cli.grammar.model import COUNTERS, Grammar, Rule
from receipt_cli.numeric.array_types import Floats, Integers
from receipt_cli.numeric.spill import ascends, scratch
from receipt_cli.records.envelope import NO_RANK
from receipt_cli.scan.columns import RuleColumns

if TYPE_CHECKING:
    from numpy.typing import NDArray

Kind = TypeVar("Kind", bound="np.generic")
PIECE = 1 << 20
"""Rows that are compared at a time."""


def set_aside(
    read: Sequence[tuple[Grammar, Rule, RuleColumns]], grammar: Grammar, rule: Rule, columns: RuleColumns
) -> tuple[Integers, list[RankCopies]] | None:
    """Return the rows that stay (int64, ascending) and the others, by rank; None where all stay.

    The leader is the rank with most step records, the lowest on a tie, as ``ranks.leading_rank`` has it.
    """
    counted = any(field.target[1] in COUNTERS for field in (rule.fields[name] for name in columns.numbers))
    redrawn = any(r.redraw for g, r, _ in read if g is grammar)  # a bar is compared with the record before it
    if counted or redrawn or len(labels(rule, columns)) < 2:
        return None
    at = columns.at.whole()
    if not ascends(at):
        return None
    frame = Frame(rule, columns, None)
    if frame.steps is None or frame.ranks is None:
        return None
    ranks, steps = frame.ranks, frame.steps
    labelled = ranks != NO_RANK
    if frame.numbered is not None:
        labelled &= frame.numbered
    pieces = [slice(begin, begin + PIECE) for begin in range(0, len(ranks), PIECE)]
    counts: Counter[int] = Counter()
    for piece in pieces:
        names, times_seen = np.unique(ranks[piece][labelled[piece]], return_counts=True)
        counts.update(dict(zip(names.tolist(), times_seen.tolist(), strict=True)))
    if len(counts) < 2:
        return None
    leader = min(counts, key=lambda rank: (-counts[rank], rank))
    led = steps[labelled & (ranks == leader)]
    theirs = labelled & (ranks != leader)
    for piece in pieces:
        theirs[piece][theirs[piece]] = np.isin(steps[piece][theirs[piece]], led)
    rows = {rank: np.flatnonzero(theirs & (ranks == rank)) for rank in sorted(counts)}
    places, numbers = _by_rank(at, rows), _by_rank(steps, rows)
    sizes, times = _by_rank(_sizes(frame), rows), _by_rank(_times(frame), rows)
    copies = [RankCopies(n, places[n], numbers[n], sizes[n], times[n]) for n, own in rows.items() if len(own)]
    return np.flatnonzero(~theirs), copies


def _by_rank(values: NDArray[Kind], rows: Mapping[int, Integers]) -> dict[int, NDArray[Kind]]:
    """Return the ``values`` (of eight bytes) of the rows of each rank; they share one room."""
    kept = scratch(values.dtype.type, sum(map(len, rows.values())))
    ends = accumulate(map(len, rows.values()))
    made = {rank: kept[end - len(own) : end] for (rank, own), end in zip(rows.items(), ends, strict=True)}
    for rank, own in rows.items():
        np.take(values, own, out=made[rank], mode="clip")  # it would be buffered otherwise
    return made


def _sizes(frame: Frame) -> Floats:
    """Return the largest finite memory figure of each row, NaN where it has none."""
    names = {name for name, _ in frame.metrics if is_memory(name)}
    if not names:
        return np.broadcast_to(math.nan, len(frame.columns))
    largest = scratch(np.float64, len(frame.columns))
    largest[...] = math.nan
    for name in names:
        values = frame.metric(name)
        np.fmax(largest, values, out=largest, where=np.isfinite(values))
    return largest


def _times(frame: Frame) -> Floats:
    """Return the step time of each row, NaN where it has none."""
    if not any(name == STEP_TIME for name, _ in frame.metrics):
        return np.broadcast_to(math.nan, len(frame.columns))
    return frame.metric(STEP_TIME)
