"""The ledger of numeric cells: each number of the records that rules read is read, kept as another metric, or dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from receipt_cli.lazy_dataclass import dataclass, field
from receipt_cli.scan.columns import RuleColumns


@dataclass(slots=True)
class Ledger:
    """Cells by key: ``read`` into fields of rules, kept under their label as ``other`` metrics, and ``dropped``."""

    read: Counter[str] = field(default_factory=Counter)
    other: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)

    def take(self, columns: Iterable[RuleColumns]) -> None:
        """Add the cells of the columns of rules. What only a header or an opening line names is added by who names it."""
        for one in columns:
            for name, numbers in one.numbers.items():
                self.read[name] += len(numbers.values)
            for name, numbers in one.unregistered.items():
                self.other[name] += len(numbers.values)
            self.dropped += one.dropped
