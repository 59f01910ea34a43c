"""How many digits behind the point the values of a metric were printed with: trailing zeros count, as values do not tell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from receipt_cli.events.table import EventTable
from receipt_cli.grammar.model import Grammar, Rule
from receipt_cli.scan.columns import RuleColumns


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
        self._known: dict[tuple[str, str], Mapping[str, set[int | None]]] = {}

    def of(self, table: EventTable, names: Iterable[str]) -> dict[str, Digits]:
        """Return the digits of the metrics ``names`` of some records; a metric is left out if a record leaves them open."""
        read = [self._read(source.grammar, source.rule) for source in table.sources]
        found: dict[str, Digits] = {}
        for name in names:
            digits = set().union(*(one[name] for one in read if name in one))
            known = [number for number in digits if number is not None]
            if known and len(known) == len(digits):
                found[name] = Digits(min(known), max(known))
        return found

    def _read(self, grammar: Grammar, rule: Rule) -> Mapping[str, set[int | None]]:
        key = grammar.ref, rule.name
        if key not in self._known:
            columns, digits = self._columns(grammar, rule), dict[str, set[int | None]]()
            for name, shown in columns.printed.items() if columns is not None else ():
                target = rule.fields[name].target if name in rule.fields else ("metric", name)
                if target[0] == "metric":
                    digits.setdefault(target[1], set()).update(shown)
            self._known[key] = digits
        return self._known[key]
