"""Problems and losses of a stream: all counted, the first problems kept."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from receipt_cli.problems import MAX_EXCERPT, MAX_FIRST, Problem
from receipt_cli.redaction.text import safe_text

_OF_A_KIND = 5
"""Most problems of one kind among those kept, so that the first twenty differ."""
_LOOKED_AT = 4 * MAX_EXCERPT


@dataclass(slots=True)
class StreamProblems:
    """``count`` problems, the ``first`` of them, and the number ``lost`` of each kind (None: an unknown number)."""

    count: int = 0
    first: list[Problem] = field(default_factory=list)
    lost: dict[str, int | None] = field(default_factory=dict)
    _kinds: Counter[str] = field(default_factory=Counter)

    def add(self, kind: str, detail: str, *, line: int | None = None, excerpt: bytes | str = "", count: int = 1) -> None:
        """Count a problem (``count`` similar ones); ``detail`` names the file, ``line`` is the line in it."""
        self.count += count
        self._kinds[kind] += 1
        if len(self.first) >= MAX_FIRST or self._kinds[kind] > _OF_A_KIND:
            return
        head = excerpt[:_LOOKED_AT]
        text = head.decode("utf-8", "replace") if isinstance(head, bytes) else head
        reason = safe_text(detail[:_LOOKED_AT]) or kind
        self.first.append(Problem(kind, line, reason, safe_text(text)))

    def add_loss(self, kind: str, count: int | None = 1) -> None:
        """Count known losses; None: an unknown number."""
        before = self.lost.get(kind, 0)
        self.lost[kind] = None if before is None or count is None else before + count
