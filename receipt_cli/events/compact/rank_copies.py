"""Set aside the step records of other ranks that the leading rank prints, too: as rows instead of ``Event`` objects.

The summary uses only the figures that each rank printed itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from receipt_cli.events.compact.frame import Frame, labels
from receipt_cli.events.rows import RowRun
from receipt_cli.grammar.model import COUNTERS, Grammar, Rule
from receipt_cli.numeric.arrays import distinct_values
from receipt_cli.numeric.spill import ascends, scratch, show
from receipt_cli.records.envelope import NO_RANK
from receipt_cli.scan.columns import RuleColumns

if TYPE_CHECKING:
    from receipt_cli.numeric.array_types import Integers

PIECE = 1 << 18
"""Rows that are compared at a time."""


def set_aside(
    read: Sequence[tuple[Grammar, Rule, RuleColumns]], grammar: Grammar, rule: Rule, columns: RuleColumns
) -> tuple[Integers, dict[int, RowRun]] | None:
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
    own = [steps[piece][labelled[piece] & (ranks[piece] == leader)] for piece in _shown(pieces)]
    led = distinct_values(np.concatenate(own))
    theirs = labelled
    for piece in _shown(pieces):
        mine = steps[piece]
        theirs[piece] &= (ranks[piece] != leader) & (led[np.minimum(np.searchsorted(led, mine), len(led) - 1)] == mine)
    rows = scratch(np.int64, int(np.count_nonzero(theirs)))
    copies: dict[int, RowRun] = {}
    done = 0
    for rank in sorted(counts.keys() - {leader}):
        begin = done
        for piece in _shown(pieces):
            found = piece.start + np.flatnonzero(theirs[piece] & (ranks[piece] == rank))
            rows[done : done + len(found)] = found
            done += len(found)
        if begin < done:
            copies[rank] = frame.run(rows[begin:done], done - begin)
    return np.flatnonzero(~theirs), copies


def _shown(pieces: Iterable[slice]) -> Iterator[slice]:
    """Yield the ``pieces``; the pages of files are given back meanwhile."""
    for piece in pieces:
        yield piece
        show(16 * PIECE)
