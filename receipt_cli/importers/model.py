"""The nouns of an import: what a format reads out of a document, before it becomes a receipt."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from receipt_cli.events.model import Event, Meaning
from receipt_cli.grammar.model import Grammar, Rule
from receipt_cli.header.facts import HeaderFact
from receipt_cli.header.values import checked
from receipt_cli.importers.text import Document
from receipt_cli.importers.values import Doubts, Taken
from receipt_cli.records.envelope import NO_RANK
from receipt_cli.scan.columns import place


@dataclass(frozen=True, slots=True)
class Stated:
    """A statistic as a document states it: ``figures`` by name (first, last, min, max, mean, median), in base units.

    ``record_count`` is None where the document does not say of how many values it is; ``window`` is ``steady`` where the
    producer left out a warm-up of its own.
    """

    figures: Mapping[str, float]
    record_count: int | None = None
    window: str = "all"
    scope: str | None = None
    definition: str | None = None


def single(value: float, *, scope: str | None = None, definition: str | None = None) -> Stated:
    """Return the statistic of the only value that there is."""
    figures = dict.fromkeys(("first", "last", "min", "max", "mean", "median"), value)
    return Stated(figures, 1, "all", scope, definition)


def last(value: float, *, scope: str | None = None, definition: str | None = None) -> Stated:
    """Return the statistic of which only the last value is known."""
    return Stated({"last": value}, None, "all", scope, definition)


@dataclass(slots=True)
class Part:
    """One phase as a document states it without its records. ``records`` counts the step records that it tells of."""

    phase: str | None = None
    records: int = 0
    steady_records: int | None = None
    last: int | None = None
    planned: int | None = None
    parameter_count: int | None = None
    training_time_s: float | None = None
    metrics: dict[str, Stated] = field(default_factory=dict)
    others: dict[str, Stated] = field(default_factory=dict)

    def hold(self, taken: Taken) -> None:
        """Keep each value of a record of which the document holds no other: the last ones of the run."""
        for name, value in taken.metrics.items():
            scope, definition = taken.meanings.get(name, (None, None))
            self.metrics.setdefault(name, last(value, scope=scope, definition=definition))
        for name, value in taken.others.items():
            self.others.setdefault(name, last(value))


@dataclass(frozen=True, slots=True)
class Failed:
    """That a run failed, in the document's words (None: it gives none); ``tail`` are the last lines of its log."""

    message: str | None
    tail: Sequence[str] = ()


@dataclass
class Found:
    """Everything that one document says of one run: its records as ``events``, or what it states of them as ``parts``.

    ``name`` is what its format calls the document, whatever it is called here; ``beside`` are files that stand with it and
    that were read too. ``checks`` are those that it states. ``completed`` is None where it does not say. ``matched``,
    ``ignored`` and ``unmatched`` count its records: the elements of its array, or its lines; one where it is one record as a
    whole.
    """

    format: str
    name: str = ""
    format_version: str | None = None
    producer: str | None = None
    trainer: str | None = None
    events: list[Event] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    header: list[HeaderFact] = field(default_factory=list)
    run: dict[str, Any] = field(default_factory=dict)
    checks: dict[str, bool | None] = field(default_factory=dict)
    completed: bool | None = None
    cut: str | None = None
    """What shows that the document breaks off, and with it the run."""
    failed: Failed | None = None
    attachments: list[dict[str, Any]] = field(default_factory=list)
    beside: list[Document] = field(default_factory=list)
    doubts: Doubts = field(default_factory=Doubts)
    matched: int = 0
    ignored: int = 0
    unmatched: int = 0

    def __post_init__(self) -> None:
        self._rules: dict[str, Rule] = {}
        self._meanings: dict[tuple[str, ...], Mapping[str, Meaning]] = {}
        self.grammar = Grammar(
            id=self.format, version=1, title=self.format, upstream="", trainer=self.trainer or self.format, layer="trainer",
            completion="none", rules=(), ignore=(), no_match=(), proves=(), excludes=(), sha256="", where="",
        )  # fmt: skip

    def tell(self, kind: str, taken: Taken, line: int, *, clock: float = math.nan) -> Event:
        """Add what one record says as an event of ``kind`` (``grammar.EVENTS``) on ``line``, behind those before it."""
        rule = self._rules.setdefault(kind, Rule(kind, kind, ()))
        event = Event(place(len(self.events)), line, NO_RANK, clock, self.grammar, rule, rules=(kind,))
        event.step, event.planned = taken.step, taken.planned
        event.metrics, event.others, event.facts = taken.metrics, taken.others, taken.facts
        event.meanings = self._meanings.setdefault((kind, *taken.meanings), taken.meanings)  # one for all of a kind
        self.events.append(event)
        return event

    def know(self, pointer: str, value: object, source: str) -> None:
        """Keep a fact of the header; one of the wrong type becomes a problem, None is no knowledge."""
        if value is None:
            return
        try:
            self.header.append(HeaderFact(pointer, checked(pointer, value), source))
        except ValueError as error:
            self.doubts.add("header_value_left_out", None, f"{source}: {pointer} {error}")
