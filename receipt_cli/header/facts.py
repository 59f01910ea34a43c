"""A header fact: one value, its place in the header and its source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from receipt_cli.header.values import checked

JsonValue: TypeAlias = "str | int | float | bool | Sequence[JsonValue] | Mapping[str, JsonValue] | None"
"""A JSON value."""


class HeaderFact(NamedTuple):
    """One value of the header and its origin.

    ``pointer`` is a JSON pointer inside the header (``/git/commit``); ``value`` is in base units (bytes, counts) and of the
    pointer's type; ``source`` is ``env:NAME``, ``blob``, ``file``, ``log:LINE``, ``host`` or ``git``.
    """

    pointer: str
    value: JsonValue
    source: str


@dataclass(slots=True)
class FactCollector:
    """Result of a collector that never fails: facts, and a note for each fact left unknown."""

    facts: list[HeaderFact] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, pointer: str, value: object, source: str) -> None:
        """Add ``value`` as a fact; skip None; turn a value of the wrong type into a note."""
        if value is None:
            return
        try:
            self.facts.append(HeaderFact(pointer, checked(pointer, value), source))
        except ValueError as error:
            self.notes.append(f"{source}: {pointer} left out: {error}")

    def note(self, text: str) -> None:
        """Add the reason why a fact is unknown (for stderr)."""
        self.notes.append(text)
