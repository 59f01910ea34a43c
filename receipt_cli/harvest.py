"""What the records of a block gave that were read together, until it is put in order beside the others."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from receipt_cli.columns import Bounded, RuleColumns, place
from receipt_cli.examine import Found, excerpt
from receipt_cli.listed import Listed
from receipt_cli.model import MAX_FIRST, NearMiss
from receipt_cli.order import in_order
from receipt_cli.stretch import Body, RuleKey
from receipt_cli.templates import Piece

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Integers = NDArray[np.int64]


@dataclass(slots=True)
class Harvest:
    """Events by rule, records that are ignored by grammar, near-misses, and problems, which go to ``found``."""

    found: Found
    pieces: dict[RuleKey, list[Piece]] = field(default_factory=dict)
    ignored: dict[str, list[Integers]] = field(default_factory=dict)
    near: dict[str, Bounded[NearMiss]] = field(default_factory=dict)

    def miss(self, name: str, count: int, first: Iterable[tuple[str, int, int, bytes]]) -> None:
        """Count near-misses of grammar ``name``; rule, ordinal, line and bytes of the ``first`` of them."""
        near = self.near.setdefault(name, Bounded(MAX_FIRST))
        near.count += count
        for rule, ordinal, line, record in first:
            near.first.append((place(ordinal), NearMiss(name, rule, line, excerpt(record))))
        near.first = sorted(near.first, key=lambda entry: entry[0])[:MAX_FIRST]

    def into(self, body: Body) -> None:
        """Put everything into ``body``, which has what was read one by one, in the order of the log."""
        import numpy as np

        for key, pieces in self.pieces.items():
            body.rules[key] = in_order(body.rules.get(key, RuleColumns()), pieces)
        for name, ordinals in self.ignored.items():
            single = body.ignored.get(name)
            both = [*ordinals, *single.arrays(len(single))] if single else ordinals
            body.ignored[name] = Listed.of(both[0] if len(both) == 1 else np.sort(np.concatenate(both), kind="stable"))
        for name, near in self.near.items():
            known = body.near.setdefault(name, near)
            if known is not near:
                known.count += near.count
                known.first = sorted([*known.first, *near.first], key=lambda entry: entry[0])[:MAX_FIRST]
