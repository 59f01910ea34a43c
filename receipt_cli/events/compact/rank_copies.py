"""Set aside the step records of other ranks that the leading rank prints, too: as rows instead of ``Event`` objects.

The summary uses only the figures that each rank printed itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from receipt_cli.events.compact.frame import LONGEST, Frame, labels
from receipt_cli.events.rows import MAX_EPOCHS, Read, RowRun
from receipt_cli.grammar.model import COUNTERS, Grammar, Rule
from receipt_cli.numeric.array_types import Integers
from receipt_cli.numeric.arrays import distinct_values
from receipt_cli.numeric.spill import ascends, gathered, picked, scratch, slices
from receipt_cli.records.envelope import NO_RANK
from receipt_cli.scan.columns import RuleColumns


def set_aside(
    read: Sequence[Read], grammar: Grammar, rule: Rule, columns: RuleColumns
) -> tuple[Integers, dict[int, RowRun]] | None:
    """Return the rows that stay (int64, ascending) and the others, by rank; None where all stay.

    The leader is the rank with most step records, the lowest on a tie, as ``ranks.leading_rank`` has it.
    """
    counted = [r for g, r, c in read if g is grammar and any(r.fields[name].target[1] in COUNTERS for name in c.numbers)]
    redrawn = any(r.redraw for g, r, _ in read if g is grammar)  # a bar is compared with the record before it
    if redrawn or (rule in counted and len(counted) > 1) or len(labels(rule, columns)) < 2:
        return None
    at = columns.at.whole()
    if not ascends(at):
        return None
    frame = Frame(rule, columns, None)
    steps, ranks = _counted(rule, frame) if rule in counted else frame.steps, frame.ranks
    if steps is None or ranks is None:
        return None
    labelled = np.concatenate([ranks[piece] != NO_RANK for piece in slices(len(ranks))])
    if frame.numbered is not None and rule not in counted:
        labelled &= frame.numbered
    counts: Counter[int] = Counter()
    for piece in slices(len(ranks)):
        names, times_seen = np.unique(ranks[piece][labelled[piece]], return_counts=True)
        counts.update(dict(zip(names.tolist(), times_seen.tolist(), strict=True)))
    if len(counts) < 2:
        return None
    leader = min(counts, key=lambda rank: (-counts[rank], rank))
    own = [steps[piece][labelled[piece] & (ranks[piece] == leader)] for piece in slices(len(ranks))]
    led = distinct_values(np.concatenate(own))
    theirs = labelled
    for piece in slices(len(ranks)):
        mine = steps[piece]
        theirs[piece] &= (ranks[piece] != leader) & (led[np.minimum(np.searchsorted(led, mine), len(led) - 1)] == mine)
    rows = scratch(np.int64, int(np.count_nonzero(theirs)))
    copies: dict[int, RowRun] = {}
    done = 0
    for rank in sorted(counts.keys() - {leader}):
        begin = done
        for piece in slices(len(ranks)):
            found = piece.start + np.flatnonzero(theirs[piece] & (ranks[piece] == rank))
            rows[done : done + len(found)] = found
            done += len(found)
        if begin < done:
            run = frame.run(rows[begin:done], done - begin)
            copies[rank] = replace(run, numbers=picked(steps, rows[begin:done])) if rule in counted else run
    return np.flatnonzero(~theirs), copies


def _counted(rule: Rule, frame: Frame) -> Integers | None:
    """Return the steps that counts inside of epochs of one length give, as ``epochs`` counts them; else None."""
    epochs, lengths, inside = frame.places()
    if frame.step or "epochs_planned" in frame.counters or epochs is None or inside is None or lengths is None:
        return None
    if not len(lengths) or not 0 < lengths[0] < LONGEST or bool((lengths != lengths[0]).any()):
        return None
    if any((epochs[part] >= MAX_EPOCHS).any() for part in slices(len(epochs))):
        return None
    first = rule.epochs_from if rule.epochs_from is not None else int(all(epochs[part].all() for part in slices(len(epochs))))
    counted = (np.maximum(epochs[part] - first, 0) * lengths[0] + inside[part] for part in slices(len(epochs)))
    return gathered(np.int64, len(epochs), counted)
