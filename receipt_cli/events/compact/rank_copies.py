"""Duplicate step records from non-leading ranks, kept as columns instead of ``Event`` objects.

The summary uses only the figures that each rank printed itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from receipt_cli.events.compact.frame import Frame, labels
from receipt_cli.events.rows import STEP_TIME, RankCopies, is_memory
from receipt_cli.grammar.model import COUNTERS, Grammar, Rule
from receipt_cli.numeric.array_types import Floats, Integers
from receipt_cli.records.envelope import NO_RANK
from receipt_cli.scan.columns import RuleColumns


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
    if not bool((at[1:] > at[:-1]).all()):
        return None
    frame = Frame(rule, columns, None)
    if frame.steps is None or frame.ranks is None:
        return None
    ranks, steps = frame.ranks, frame.steps
    labelled = ranks != NO_RANK
    if frame.numbered is not None:
        labelled &= frame.numbered
    names, counts = np.unique(ranks[labelled], return_counts=True)
    if len(names) < 2:
        return None
    leader = names[np.argmax(counts)]  # the first of equals, and so the lowest
    theirs = labelled & (ranks != leader)
    theirs[theirs] = np.isin(steps[theirs], steps[labelled & (ranks == leader)])
    sizes, times = _sizes(frame), _times(frame)
    copies: list[RankCopies] = []
    for rank in names.tolist():
        own = np.flatnonzero(theirs & (ranks == rank))
        if len(own):
            copies.append(RankCopies(rank, at[own], steps[own], sizes[own], times[own]))
    return np.flatnonzero(~theirs), copies


def _sizes(frame: Frame) -> Floats:
    """Return the largest finite memory figure of each row, NaN where it has none."""
    largest = np.full(len(frame.columns), math.nan)
    for name in {name for name, _ in frame.metrics if is_memory(name)}:
        values = frame.metric(name)
        values[~np.isfinite(values)] = math.nan
        largest = np.fmax(largest, values)
    return largest


def _times(frame: Frame) -> Floats:
    """Return the step time of each row, NaN where it has none."""
    if not any(name == STEP_TIME for name, _ in frame.metrics):
        return np.full(len(frame.columns), math.nan)
    return frame.metric(STEP_TIME)
