"""What is wrong with the cells of one grammar's rules, and what was counted of them."""

from __future__ import annotations

from collections.abc import Sequence

from receipt_cli.events.model import Ledger
from receipt_cli.grammar.model import Grammar, Rule
from receipt_cli.numeric.column import Cells
from receipt_cli.problems import EXCERPT_BYTES, Problem


class Notes:
    """What is counted of the cells of one grammar's rules, and what is wrong with them."""

    def __init__(self, grammar: Grammar, ledger: Ledger, copied: Sequence[int]) -> None:
        """Lines that are ``copied`` are not between the rows of a block."""
        self.grammar, self.ledger, self.copied = grammar, ledger, copied
        self.found: list[Problem] = []
        self.orphans: dict[int, Problem] = {}
        self.joined: Cells[int] = Cells("q")
        """Positions of the rows that joined a block: what one rule has no block for may be a row of another's."""

    @property
    def problems(self) -> list[Problem]:
        """What is wrong, and the rows without a block."""
        joined = set(self.joined) if self.orphans else ()
        return [*self.found, *(problem for at, problem in self.orphans.items() if at not in joined)]

    def unreadable(self, rule: Rule, name: str, text: str, line: int) -> None:
        """Note a value of a field that cannot be read."""
        detail = f"{self.grammar.ref} {rule.name}.{name}: {text[:64]!r}"
        self.found.append(Problem("unreadable_value", line, detail, text[:EXCERPT_BYTES]))

    def without_header(self, rule: Rule, line: int) -> None:
        """Note a row of a table that does not fit the header before it."""
        self.found.append(Problem("table_row_without_header", line, f"{rule.name}: cells do not fit the header", ""))

    def orphan(self, rule: Rule, key: str, at: int, line: int) -> None:
        """Note a row at ``at`` that has no block of this rule."""
        self.orphans[at] = Problem("block_row_without_opening", line, f"{rule.name}: {key[:64]!r}", "")
