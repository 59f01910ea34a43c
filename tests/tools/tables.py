"""Tables of records that a test states, in the order of the log."""

from __future__ import annotations

import math
from collections.abc import Mapping

from receipt_cli.events.table import EventTable, Source, log_of
from receipt_cli.grammar.model import Grammar, Rule
from receipt_cli.records.envelope import NO_RANK
from receipt_cli.scan.columns import NumberColumn, RuleColumns, place

RULE = Rule("train_step", "step", ())
GRAMMAR = Grammar(
    id="toy", version=1, title="", upstream="", trainer="toy", layer="trainer", completion="none", rules=(RULE,), ignore=(),
    no_match=(), proves=(), excludes=(), sha256="", where="",
)  # fmt: skip


def column(values: Mapping[int, float]) -> NumberColumn:
    """Return a column of values by their rows."""
    made = NumberColumn()
    for row, value in values.items():
        made.append(row, value)
    return made


def table_of(
    *metrics: Mapping[str, float],
    lines: list[int] | None = None,
    clocks: list[float] | None = None,
    ranks: list[int] | None = None,
    rule: Rule = RULE,
) -> EventTable:
    """Return the table of records of one rule that print these metrics, each on a line of its own."""
    columns = RuleColumns()
    for row in range(len(metrics)):
        line = row + 1 if lines is None else lines[row]
        columns.open_row(place(line), line, NO_RANK if ranks is None else ranks[row], math.nan if clocks is None else clocks[row])
    names = dict.fromkeys(name for each in metrics for name in each)
    held = {name: [column({row: each[name] for row, each in enumerate(metrics) if name in each})] for name in names}
    return EventTable(log_of([Source(GRAMMAR, rule, columns, held, {}, {})]))
