"""A header fact: one value, the place in the header that it fills, and where it was read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from receipt_cli.header.values import checked

JsonValue: TypeAlias = "str | int | float | bool | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
"""A JSON value."""


class HeaderFact(NamedTuple):
    """One value of the header and its origin.

    ``pointer`` is a JSON pointer inside the header (``/git/commit``); ``value`` is in base units (bytes,
    counts) and of the pointer's type; ``source`` is ``env:NAME``, ``blob``, ``file``, ``log:LINE``,
    ``host`` or ``git``.
    """

    pointer: str
    value: JsonValue
    source: str


@dataclass(slots=True)
class FactCollector:
    """The result of a collector that never fails: facts, and a note for each fact that stays unknown."""

    facts: list[HeaderFact] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, pointer: str, value: object, source: str) -> None:
        """Keep ``value`` as a fact; ``None`` is no knowledge, a value of the wrong type becomes a note."""
        if value is None:
            return
        try:
            self.facts.append(HeaderFact(pointer, checked(pointer, value), source))
        except ValueError as error:
            self.notes.append(f"{source}: {pointer} left out: {error}")

    def note(self, text: str) -> None:
        """Add the reason why a fact stays unknown (for stderr)."""
        self.notes.append(text)
