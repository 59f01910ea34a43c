"""Find progress bars that only show where a run is: they need no object each.

A log may hold many times more of them than of anything else; all that is asked of them is the step of the first bar
behind a record.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from receipt_cli.events.compact.frame import PLAN, STEP, Frame
from receipt_cli.events.rows import ProgressBars, are_many
from receipt_cli.grammar.model import Grammar, Rule
from receipt_cli.numeric.array_types import Integers
from receipt_cli.numeric.arrays import distinct_values
from receipt_cli.numeric.spill import ascends
from receipt_cli.records.envelope import NO_RANK
from receipt_cli.scan.columns import RuleColumns


def find_bars(
    read: Sequence[tuple[Grammar, Rule, RuleColumns]], grammar: Grammar, rule: Rule, columns: RuleColumns
) -> ProgressBars | None:
    """Return the bars of a rule, or None where its records print more than a step and a total, or are few."""
    plain = rule.event == "progress" and rule.table is None and rule.block is None and not columns.unregistered
    plain = plain and {rule.fields[name].target for name in columns.numbers} == {STEP, PLAN}
    if not plain or not are_many(columns):
        return None
    if columns.texts or any(g is grammar and r.repeats for g, r, _ in read):
        return None
    frame = Frame(rule, columns, None)
    if frame.steps is None or frame.plan is None or frame.numbered is not None or frame.planned is not None:
        return None
    at = columns.at.whole()
    if not ascends(at) or any(_meets(at, c.at) for _, r, c in read if c is not columns):
        return None
    ranks = columns.rank.whole()
    return ProgressBars(grammar.id, at, frame.steps, frame.plan, frozenset(distinct_values(ranks[ranks != NO_RANK]).tolist()))


def _meets(at: Integers, others: Sequence[int]) -> bool:
    """True when something is in the place of a bar: their order is then that of their rules."""
    places = np.asarray(others, np.int64)
    return bool((np.searchsorted(at, places, "left") != np.searchsorted(at, places, "right")).any())
