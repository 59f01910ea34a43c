"""The result of one check or gate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

State = Literal["passed", "failed", "unknown", "noted"]


@dataclass(frozen=True, slots=True)
class Ruling:
    """Result of one check or gate.

    ``answer`` is None if the receipt lacks the data; ``fails``: this ruling fails the job. ``wanted`` and ``found`` are words for
    people; ``reason`` explains a missing answer or why a no does not fail.
    """

    kind: Literal["check", "gate"]
    name: str
    answer: bool | None
    fails: bool
    wanted: str
    found: str
    reason: str | None = None

    @property
    def state(self) -> State:
        """The state; ``noted`` means that the answer is no, but a yes is not required."""
        if self.fails:
            return "failed"
        return "unknown" if self.answer is None else "passed" if self.answer else "noted"

    @property
    def sentence(self) -> str:
        """The ruling in one line."""
        wanted = f", wanted {self.wanted}" if self.wanted else ""
        return f"{self.found}{wanted}{f' ({self.reason})' if self.reason else ''}"
