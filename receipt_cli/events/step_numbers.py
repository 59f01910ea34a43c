"""Number step records that print no step, if the progress bar beside them proves the number.

A trainer that writes through its progress bar redraws the bar right after each record, with the step of the record. The log must
prove that both kept their order: after every record, before the next one, comes a bar with the total of the run, and the steps so
found rise by one constant stride, except at a restart and at the first step. Otherwise no record gets a number.
"""

from __future__ import annotations

from collections import Counter

import numpy as np

from receipt_cli.events.table import EventTable, not_nan, numbers_in, of_grammar, where
from receipt_cli.numeric.array_types import Floats
from receipt_cli.numeric.arrays import distinct_values
from receipt_cli.numeric.spill import gathered, rises, slices

MIN_RECORDS = 3


def number_steps(table: EventTable) -> EventTable:
    """Return the table without progress bars, and with the step of each record that prints none, if it is proven."""
    bars = table.by_source(lambda source: source.rule.event == "progress")
    if not bars.any():
        return table
    for grammar in sorted({source.grammar.id for source in table.sources}):
        mine = table.by_source(of_grammar(grammar))
        records = mine & table.by_source(lambda source: source.is_step) & ~not_nan(table.steps)
        total = _total(table.where(mine))
        if total is None or np.count_nonzero(records) < MIN_RECORDS:
            continue
        shown = table.where(mine & bars & (table.column("planned") == total) & ~np.isnan(table.steps))
        rows = numbers_in(where(records))
        steps = _numbers(table.chosen(rows), shown)
        if steps is not None:
            every, planned = (np.array(table.column(name)) for name in ("step", "planned"))
            every[rows], planned[rows] = steps, total
            table = table.having(step=every, planned=planned)
    return table.where(~bars)


def _numbers(records: EventTable, bars: EventTable) -> Floats | None:
    """Return the steps that the ``bars`` after the records show (float64 [n]).
    None if no bar is between a record and the next one, or if the steps do not rise by one stride."""
    at, places = records.at, bars.at

    def parts() -> list[Floats]:
        found: list[Floats] = []
        for part in slices(len(at)):
            after = np.searchsorted(places, at[part], "right")
            following = at[part.start + 1 : part.stop + 1]
            if after[-1] == len(places) or bool((places[after[: len(following)]] >= following).any()):
                return []
            found.append(bars.steps[after])
        return found

    steps = gathered(np.float64, len(at), parts() or [np.full(len(at), np.nan)])
    strides: set[float] = set()
    for _, each in rises(steps[1:]):
        strides |= set(distinct_values(each[each > 0]).tolist())
        if len(strides) > 1:
            return None
    if not strides or not (steps[1] - steps[0] in strides or steps[1] % min(strides) == 0):
        return None
    return steps


def _total(mine: EventTable) -> float | None:
    """Return the planned steps of a grammar: from its last header line, else the total that most progress bars show."""
    headers = mine.of_sources(lambda source: source.rule.event == "header").column("planned")
    stated = headers[~np.isnan(headers)]
    if len(stated):
        return float(stated[-1])
    shown = mine.of_sources(lambda source: source.rule.event == "progress").column("planned")
    totals, counts = np.unique(shown[~np.isnan(shown)], return_counts=True)
    known = Counter(dict(zip(totals.tolist(), counts.tolist(), strict=True)))
    return max(known, key=lambda total: (known[total], total), default=None)
