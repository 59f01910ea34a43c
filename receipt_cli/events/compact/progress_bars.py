"""Find progress bars that only show where a run is: they need no object each.

A log may hold many times more of them than of anything else; all that is asked of them is the step of the first bar
behind a record.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from receipt_cli.events.compact.frame import PLAN, STEP, Frame
from receipt_cli.events.rows import ProgressBars, Read, are_many
from receipt_cli.grammar.model import Grammar, Rule
from receipt_cli.numeric.array_types import Integers
from receipt_cli.numeric.arrays import distinct_values
from receipt_cli.numeric.spill import ascends, pieces
from receipt_cli.records.envelope import NO_RANK
from receipt_cli.scan.columns import RuleColumns


def find_bars(read: Sequence[Read], grammar: Grammar, rule: Rule, columns: RuleColumns) -> ProgressBars | None:
    """Return the bars of a rule, or None where its records print more than a step and a total, or are few.

    What prints nothing and is read in the place of step records shows no bar.
    """
    printed = {rule.fields[name].target for name in columns.numbers}
    if rule.event != "progress" or columns.texts or columns.unregistered or not are_many(columns):
        return None
    at = columns.at.whole()
    if printed not in (set(), {STEP, PLAN}) or not ascends(at) or any(g is grammar and r.repeats for g, r, _ in read):
        return None
    ranks = columns.rank.whole()
    named = frozenset(distinct_values(ranks[ranks != NO_RANK]).tolist())
    if not printed:
        none = np.empty(0, np.int64)
        steps = (c for g, r, c in read if g is grammar and r.event == "step")
        return ProgressBars(grammar.id, none, none, none, named) if any(_met(at, c.at) == len(at) for c in steps) else None
    frame = Frame(rule, columns, None)
    if frame.steps is None or frame.plan is None or frame.numbered is not None or frame.planned is not None:
        return None
    if any(_met(at, c.at) for _, _, c in read if c is not columns):
        return None
    return ProgressBars(grammar.id, at, frame.steps, frame.plan, named)


def _met(at: Integers, others: Sequence[int]) -> int:
    """Return how many of ``others`` are in the place of a bar: their order is then that of their rules."""
    asked = pieces(np.asarray(others, np.int64))
    return sum(int(np.count_nonzero(np.searchsorted(at, p, "left") != np.searchsorted(at, p, "right"))) for p in asked)
