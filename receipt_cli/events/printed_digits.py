"""Count the decimals with which the values of a metric were printed; trailing zeros count, but stored numbers lack them."""

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
    """The fewest and the most decimals with which any record prints a metric, in base units."""

    least: int
    greatest: int

    @property
    def unit(self) -> float | None:
        """The value of the last printed decimal place (0.01 for two); None without decimals: whole numbers show no precision."""
        return float(f"1e{-self.greatest}") if self.greatest > 0 else None


class PrintedDigits:
    """Tells with how many decimals the records of a table print a metric.
    It knows what the scan counted for each rule: how many records show each number of decimals."""

    def __init__(self, columns: Callable[[Grammar, Rule], RuleColumns | None] = lambda grammar, rule: None) -> None:
        """``columns`` returns the columns of a rule, None if it read nothing."""
        self._columns = columns

    def of(self, table: EventTable, names: Iterable[str]) -> dict[str, Digits]:
        """Return the decimals of the metrics ``names`` in some records.

        A metric is left out if the decimals of a record are unknown, or if possibly only records outside the table show the
        fewest or the most: those of an earlier launch, or those that a law leaves out.
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
    """Return the positions in the log of the given rows of each source."""
    return np.concatenate([at_rows(source.columns.at.whole(), rows) for source, rows in parts])


def _may_show(shown: Shown, at: Integers) -> bool:
    """Return whether one of the records at the positions ``at`` lies between the first and the last that show these decimals."""
    return bool(shown.first < at.max(initial=-1) and at.min(initial=NONE_SHOWN.first) < shown.last)
