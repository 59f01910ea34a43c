"""The values that a format's reader takes from a document, before they become a receipt."""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from receipt_cli.events.table import EventTable, Source, log_of
from receipt_cli.grammar.model import Field, Grammar, Rule
from receipt_cli.header.values import HeaderFact, checked
from receipt_cli.importers.text import Document, JsonText, Record, Value, at
from receipt_cli.importers.values import Meaning, ProblemCounter, RecordValues, python_value
from receipt_cli.records.envelope import NO_RANK
from receipt_cli.redaction.text import safe_text
from receipt_cli.scan.columns import NumberColumn, RuleColumns, place

FIGURES = ("first", "last", "min", "max", "mean", "median")


def _exact(number: int | None) -> float:
    """Return a count as float64; NaN if it is unknown or not exact there."""
    return float(number) if number is not None and abs(number) <= 1 << 53 else math.nan


@dataclass(frozen=True, slots=True)
class DeclaredStatistic:
    """A declared statistic: ``figures`` by name (of ``FIGURES``), in base units.

    ``record_count`` is None if the document does not give the number of values; ``window`` is ``steady`` if the producer
    excluded a warm-up.
    """

    figures: Mapping[str, float]
    record_count: int | None = None
    window: str = "all"
    scope: str | None = None
    definition: str | None = None


def single(value: float) -> DeclaredStatistic:
    """Return the statistic of a single value."""
    return DeclaredStatistic(dict.fromkeys(FIGURES, value), 1)


def last(value: float, *, scope: str | None = None, definition: str | None = None) -> DeclaredStatistic:
    """Return a statistic with only the last value."""
    return DeclaredStatistic({"last": value}, None, "all", scope, definition)


@dataclass(slots=True)
class DeclaredPhase:
    """One declared phase, without its records; ``records`` is the number of its step records."""

    name: str | None = None
    records: int = 0
    steady_records: int | None = None
    last: int | None = None
    planned: int | None = None
    parameter_count: int | None = None
    training_time_s: float | None = None
    metrics: dict[str, DeclaredStatistic] = field(default_factory=dict)
    others: dict[str, DeclaredStatistic] = field(default_factory=dict)

    def state(self, meaning: Meaning, value: float | None, *figures: str, count: int | None = None, window: str = "all") -> None:
        """Add ``value`` as ``figures`` of a metric; without these it is the only value, and None is ignored."""
        if value is not None:
            before = self.metrics.get(meaning.name, DeclaredStatistic({})).figures
            stated = {**before, **dict.fromkeys(figures or FIGURES, value)}
            known = count if figures else 1
            self.metrics[meaning.name] = DeclaredStatistic(stated, known, window, meaning.scope, meaning.definition)

    def add_last(self, values: RecordValues) -> None:
        """Add the values of the document's only record as last values."""
        for name, value in values.metrics.items():
            scope, definition = values.meanings.get(name, (None, None))
            self.metrics.setdefault(name, last(value, scope=scope, definition=definition))
        for name, value in values.others.items():
            self.others.setdefault(name, last(value))


@dataclass(frozen=True, slots=True)
class JsonFormat:
    """A format whose document is one JSON object."""

    name: str
    title: str
    recognise: Callable[[Value], bool]
    read: Callable[[JsonText, Value], ForeignRun]


@dataclass(frozen=True, slots=True)
class DeclaredFailure:
    """A declared failure: the document's message or None; ``tail`` are the last lines of the run's log."""

    message: str | None
    tail: Sequence[str] = ()


@dataclass
class Foreign:
    """The origin of a document; ``beside`` are other files that were read from its folder."""

    format: str
    format_version: str | None = None
    producer: str | None = None
    header: list[HeaderFact] = field(default_factory=list)
    beside: list[Document] = field(default_factory=list)
    problems: ProblemCounter = field(default_factory=ProblemCounter)

    def add_fact(self, pointer: str, value: object, source: str) -> None:
        """Add a fact to the header; None is ignored, and a value of the wrong type is a problem."""
        if value is not None:
            try:
                self.header.append(HeaderFact(pointer, checked(pointer, value), source))
            except ValueError as error:
                self.problems.add("header_value_left_out", None, f"{source}: {pointer} {error}")

    def origin(self) -> dict[str, Any]:
        """Return the origin as a document has it."""
        version, producer = shown(self.format_version, 100), shown(self.producer, 200)
        return {"kind": "import", "format": self.format, "format_version": version, "producer": producer}


def shown(value: str | None, limit: int = 500) -> str | None:
    """Return a text for a document, at most ``limit`` characters of it; None if nothing is left."""
    return (safe_text(value, limit) or None) if value is not None else None


@dataclass
class ForeignRun(Foreign):
    """The content of one document about one run: its records as a ``table``, its own statistics as ``declared``.

    ``name`` is the document's name in its format. ``checks`` are declared checks. ``completed`` is None if unknown.
    ``matched``, ``ignored`` and ``unmatched`` count its records: the elements of its array, or its lines, or one for
    the whole document. ``stated_first``: values of ``declared`` take precedence over the records, because the
    document has only a part of the records that it was made from.
    """

    name: str = ""
    trainer: str | None = None
    count: int = 0
    """How many records were added."""
    declared: list[DeclaredPhase] = field(default_factory=list)
    run: dict[str, Any] = field(default_factory=dict)
    checks: dict[str, bool | None] = field(default_factory=dict)
    stated_first: bool = False
    completed: bool | None = None
    cut: str | None = None
    """Message if the document, and therefore the run, is cut off."""
    failure: DeclaredFailure | None = None
    attachments: list[dict[str, Any]] = field(default_factory=list)
    matched: int = 0
    ignored: int = 0
    unmatched: int = 0

    def __post_init__(self) -> None:
        self._sources: dict[tuple[str | None, ...], Source] = {}
        self._steps, self._planned = array("d"), array("d")
        self.grammar = Grammar(
            id=self.format, version=1, title=self.format, upstream="", trainer=self.trainer or self.format, layer="trainer",
            completion="none", rules=(), ignore=(), no_match=(), proves=(), excludes=(), sha256="", where="",
        )  # fmt: skip

    def objects(self, records: Iterable[Record], pointer: str) -> Iterator[tuple[int, str, dict[str, Value]]]:
        """Yield (line, JSON pointer, object) of each record of the array at ``pointer``; a non-object is a problem."""
        for number, record in enumerate(records):
            if isinstance(record.value, dict):
                self.matched += 1
                yield record.line, f"{pointer}/{number}", record.value
            else:
                self.unmatched += 1
                self.problems.add("record_is_no_object", record.line, f"{pointer}/{number}: not an object")

    def add_event(self, kind: str, values: RecordValues, line: int, *, clock: float = math.nan, phase: str | None = None) -> None:
        """Append one record as an event of ``kind`` (an event name of grammars) on ``line``."""
        key = (kind, phase, *values.meanings, None, *values.facts)
        if key not in self._sources:
            facts = {name: Field(name, "text", None, frozenset(), None, None, None, ("fact", name)) for name in values.facts}
            rule = Rule(kind, kind, (), phase=phase, fields=facts)
            self._sources[key] = Source(self.grammar, rule, RuleColumns(), {}, {}, values.meanings)
        source = self._sources[key]
        row = source.columns.open_row(place(self.count), line, NO_RANK, clock)
        for held, figures in ((source.metrics, values.metrics), (source.others, values.others)):
            for name, value in figures.items():
                held.setdefault(name, (NumberColumn(),))[0].append(row, value)
        for name, fact in values.facts.items():
            if isinstance(fact, str):
                source.columns.texts[name].append(row, fact)
            else:
                source.columns.numbers[name].append(row, fact)
        self._steps.append(_exact(values.step))
        self._planned.append(_exact(values.planned))
        self.count += 1

    @property
    def table(self) -> EventTable:
        """The records."""
        return EventTable(log_of(self._sources.values())).having(step=self._steps, planned=self._planned)

    def add_from(self, document: Value, pointer: str, *path: str) -> None:
        """Add the text, number or truth value at ``path`` of the document as a fact; any other value is ignored."""
        value = at(document, *path)
        if isinstance(value, str | bool):
            self.add_fact(pointer, python_value(value), f"import:/{'/'.join(path)}")
