"""How many digits behind the point the values of a metric were printed with: trailing zeros count, as values do not tell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from receipt_cli.events.table import EventTable, Rows, Source, at_rows, size_of
from receipt_cli.grammar.model import Grammar, Rule
from receipt_cli.numeric.array_types import Integers
from receipt_cli.scan.columns import NONE_SHOWN, RuleColumns, Shown


class Digits(NamedTuple):
    """The fewest and the most digits of any record, in base units."""

    least: int
    greatest: int

    @property
    def unit(self) -> float | None:
        """The unit of the last digit; None for whole numbers, whose trailing zeros may be exact."""
        return float(f"1e{-self.greatest}") if self.greatest > 0 else None


class PrintedDigits:
    """The digits that the rules of a log read, by the metric that they read it for."""

    def __init__(self, columns: Callable[[Grammar, Rule], RuleColumns | None] = lambda grammar, rule: None) -> None:
        """``columns`` returns what a rule read."""
        self._columns = columns

    def of(self, table: EventTable, names: Iterable[str]) -> dict[str, Digits]:
        """Return the digits of the metrics ``names`` of some records.

        A metric is left out if a record leaves them open, or if only records that are not in the table may show the fewest or
        the most: what a launch before prints, or a record that a law leaves out.
        """
        wanted = frozenset(names)
        kept: dict[tuple[str, str], list[tuple[Source, Rows]]] = {}
        for source, _, rows in table.parts:
            kept.setdefault((source.grammar.ref, source.rule.name), []).append((source, rows))
        sure: dict[str, set[int | None]] = {}
        open_: dict[str, set[int | None]] = {}
        for mine in kept.values():
            rule = mine[0][0].rule
            columns, own = self._columns(mine[0][0].grammar, rule), cache(partial(_positions, mine))
            left_out = len(columns or ()) - sum(size_of(rows) for _, rows in mine)
            for field, printed in columns.printed.items() if columns is not None else ():
                kind, name = rule.fields[field].target if field in rule.fields else ("metric", field)
                if kind != "metric" or name not in wanted or columns is None:
                    continue
                for digits, shown in printed.items():
                    certain = len(printed) == 1 or shown.number > left_out
                    if certain or np.isin([shown.first, shown.last], own()).any():
                        sure.setdefault(name, set()).add(digits)
                    elif _may_show(shown, own()):
                        open_.setdefault(name, set()).add(digits)
        found: dict[str, Digits] = {}
        for name, every in sure.items():
            known = [number for number in every if number is not None]
            doubtful = open_.get(name, set())
            if len(known) == len(every) and all(number is not None and min(known) <= number <= max(known) for number in doubtful):
                found[name] = Digits(min(known), max(known))
        return found


def _positions(parts: Sequence[tuple[Source, Rows]]) -> Integers:
    """Return the positions in the log of some rows of each source."""
    return np.concatenate([at_rows(source.columns.at.whole(), rows) for source, rows in parts])


def _may_show(shown: Shown, at: Integers) -> bool:
    """Return whether a record at one of the positions ``at`` stands where records show these digits."""
    return bool(shown.first < at.max(initial=-1) and at.min(initial=NONE_SHOWN.first) < shown.last)
