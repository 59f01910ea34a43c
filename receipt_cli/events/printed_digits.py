"""How many digits behind the point the values of a metric were printed with: trailing zeros count, as values do not tell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
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
            columns, own = self._columns(mine[0][0].grammar, rule), _Kept(mine)
            for field, printed in columns.printed.items() if columns is not None else ():
                kind, name = rule.fields[field].target if field in rule.fields else ("metric", field)
                if kind != "metric" or name not in wanted or columns is None:
                    continue
                for digits, shown in printed.items():
                    if len(printed) == 1 or own.show(shown, len(columns)):
                        sure.setdefault(name, set()).add(digits)
                    elif own.may_show(shown):
                        open_.setdefault(name, set()).add(digits)
        found: dict[str, Digits] = {}
        for name, certain in sure.items():
            known = [number for number in certain if number is not None]
            doubtful = open_.get(name, set())
            if len(known) == len(certain) and all(
                number is not None and min(known) <= number <= max(known) for number in doubtful
            ):
                found[name] = Digits(min(known), max(known))
        return found


class _Kept:
    """The records of one rule that are in a table: ``parts`` are its sources, with their rows."""

    def __init__(self, parts: Sequence[tuple[Source, Rows]]) -> None:
        self._parts = parts
        self.count = sum(size_of(rows) for _, rows in parts)

    @cached_property
    def at(self) -> Integers:
        """Their positions in the log."""
        return np.concatenate([at_rows(source.columns.at.whole(), rows) for source, rows in self._parts])

    def show(self, shown: Shown, count: int) -> bool:
        """Return whether one of them certainly shows these digits: the rule read ``count`` records."""
        return shown.number > count - self.count or bool(np.isin([shown.first, shown.last], self.at).any())

    def may_show(self, shown: Shown) -> bool:
        """Return whether one of them stands where records show these digits."""
        return bool(shown.first < self.at.max(initial=-1) and self.at.min(initial=NONE_SHOWN.first) < shown.last)
