"""Match one record against rules, and add the outcome to the columns of a segment."""

from __future__ import annotations

from collections.abc import Iterable

from receipt_cli.definitions.failure_markers import Marker, MarkerHit
from receipt_cli.definitions.units import read_number
from receipt_cli.grammar.model import Grammar, Rule
from receipt_cli.lazy_dataclass import dataclass, field
from receipt_cli.numeric.ordinals import OrdinalSet
from receipt_cli.problems import EXCERPT_BYTES, MAX_EXCERPT, MAX_FIRST, NearMiss, Problem
from receipt_cli.records.envelope import NO_RANK, before, read_clock, read_rank, starts
from receipt_cli.records.place import form_of, is_indented, read_host
from receipt_cli.scan.candidates import Tried
from receipt_cli.scan.columns import Bounded, NumberColumn, RuleColumns, TextColumn, place
from receipt_cli.scan.extraction import (
    MAX_EVENTS,
    NOWHERE,
    Extraction,
    PatternTimeout,
    convert,
    keep_labelled,
    read_record,
    read_unregistered,
)
from receipt_cli.scan.layout import Layout, Value
from receipt_cli.scan.segment import Hits, SegmentBody

PlacedProblems = list[tuple[int, Problem]]
NAN = float("nan")


@dataclass(slots=True)
class Outcome:
    """What the patterns made of one record: events by rule, the rules that found nothing, and those that took too long."""

    read: list[tuple[Grammar, Rule, list[Extraction]]] = field(default_factory=list)
    ignored: list[tuple[Grammar, Rule]] = field(default_factory=list)
    missed: list[tuple[Grammar, Rule]] = field(default_factory=list)
    late: list[tuple[Grammar, Rule]] = field(default_factory=list)
    marks: list[MarkerHit] = field(default_factory=list)

    @property
    def hit(self) -> bool:
        """True when a rule of any grammar explained the record."""
        return bool(self.read or self.ignored)

    @property
    def shows_bars(self) -> bool:
        """True when a text of it may contain a bar."""
        return any("%|" in text for _, _, events in self.read for event in events for text in event.shown)

    @property
    def crowded(self) -> list[tuple[Grammar, Rule]]:
        """The rules that found as many events as are read of one record: there may be more."""
        return [(grammar, rule) for grammar, rule, events in self.read if len(events) >= MAX_EVENTS]

    def near(self) -> list[tuple[Grammar, Rule]]:
        """Return for each grammar the first rule whose literal the record contains, though no rule explained it."""
        if self.hit:
            return []
        first: dict[str, tuple[Grammar, Rule]] = {}
        for grammar, rule in self.missed:
            if rule.event not in ("ignored", "progress"):
                first.setdefault(grammar.id, (grammar, rule))
        return list(first.values())


def examine(record: bytes, tried: Iterable[Tried]) -> Outcome:
    """Return what the rules ``tried`` (each with whether it is one to ignore records by) find in ``record``."""
    outcome = Outcome()
    for grammar, rule, ignored in tried:
        try:
            events = read_record(rule, record)
        except PatternTimeout:
            outcome.late.append((grammar, rule))
            continue
        if not events:
            outcome.missed.append((grammar, rule))
        elif ignored:
            outcome.ignored.append((grammar, rule))
        else:
            outcome.read.append((grammar, rule, events))
    _keep_labelled(outcome, record)
    return outcome


def _keep_labelled(outcome: Outcome, record: bytes) -> None:
    """Keep the labelled numbers of a record that the rules of a grammar leave over, grammar by grammar."""
    rules: dict[str, list[tuple[Rule, list[Extraction]]]] = {}
    for grammar, rule, events in outcome.read:
        rules.setdefault(grammar.ref, []).append((rule, events))
    for grammar, rule, _ in outcome.read:
        read = rules.pop(grammar.ref, None)
        try:
            if read is not None:
                keep_labelled(record, read)
        except (TimeoutError, MemoryError):
            outcome.late.append((grammar, rule))


def book(
    body: SegmentBody, outcome: Outcome, record: bytes, printed: bytes, ordinal: int, line: int, problems: PlacedProblems
) -> None:
    """Add the outcome of one record to ``body``, and its problems to ``problems``; ``printed`` is what they quote."""
    for grammar, rule in outcome.late:
        problem = Problem("pattern_timeout", line, f"{grammar.ref} {rule.name} took too long", excerpt(printed))
        problems.append((place(ordinal), problem))
    for grammar, _ in outcome.ignored:
        ignore(body, grammar.id, ordinal)
    for grammar, rule, events in outcome.read:
        columns = body.rules.setdefault((grammar.ref, rule.name), RuleColumns())
        for event in events:
            _store(problems, columns, grammar, rule, record, printed, event, ordinal, line)
    for grammar, rule in outcome.crowded:
        detail = f"{grammar.ref} {rule.name}: {MAX_EVENTS} events of one record are read, and what follows them is not"
        problems.append((place(ordinal), Problem("events_dropped", line, detail, excerpt(printed))))
    for grammar, rule in outcome.near():
        miss(body, grammar.id, rule.name, printed, ordinal, line)
    for hit in outcome.marks:
        mark(body, hit.marker.id, hit.start, hit.exit_code, record, ordinal, line)


def replay(
    body: SegmentBody, layout: Layout, record: bytes, printed: bytes, ordinal: int, line: int, problems: PlacedProblems
) -> None:
    """Add the events of a record of ``layout`` to ``body``, and its problems to ``problems``; ``printed`` is what they quote."""
    for name in layout.ignored:
        ignore(body, name, ordinal)
    for event in layout.events:
        columns = body.rules.get(event.key)
        if columns is None:
            columns = body.rules.setdefault(event.key, RuleColumns())
        rank, clock = event.prefix.read(record) if event.prefix is not None else (NO_RANK, NAN)
        at = place(ordinal, event.offset)
        row = columns.open_row(at, line, rank, clock)
        if event.parts is not None:
            getattr(columns, event.parts.column).append(row, event.parts.read(record))
        for value in event.values:
            if value.direct:
                digits = record[value.start : value.end]
                numbers = columns.numbers.get(value.name)
                if numbers is None:
                    numbers = columns.numbers.setdefault(value.name, NumberColumn())
                numbers.append(row, float(digits + value.shift) if value.shift else float(digits))
            elif value.spec is not None and value.number != NOWHERE:
                number = read_number(record[slice(*value.number)].decode("ascii"), value.spec.unit)
                if number is not None:
                    columns.numbers.setdefault(value.name, NumberColumn()).append(row, number)
                else:
                    text = value_text(value, record)
                    problems.append((at, unreadable(event.grammar, event.rule, value.name, text, line, printed)))
            else:
                text = value_text(value, record)
                _put(problems, columns, event.grammar, event.rule, value.name, text, row, at, line, printed)
        for value in event.unregistered:
            number = read_value(value, record[value.start : value.end])
            if number is not None:
                columns.unregistered.setdefault(value.name, NumberColumn()).append(row, number)
    for name, rule in layout.near:
        miss(body, name, rule, printed, ordinal, line)
    for one in layout.marks:
        rank = one.prefix.read(record)[0] if one.prefix is not None else NO_RANK
        host = read_host(record[: one.start]) if one.host is not None else None
        hits = body.markers.setdefault(one.marker, Hits())
        hits.add(place(ordinal, min(one.start, 65535)), line, mark_text(record, one.start), one.code, rank, one.form, host)


def value_text(value: Value, record: bytes) -> str:
    """Return the text of one value that is no plain number, as in an extraction."""
    return value.constant if value.constant is not None else record[value.start : value.end].decode("utf-8", "replace")


def read_value(value: Value, text: bytes) -> float | None:
    """Return the number of an undeclared key in base units, or None."""
    return float(text) if value.direct else read_unregistered(text.decode("utf-8", "replace"))


def ignore(body: SegmentBody, name: str, ordinal: int) -> None:
    """Count a record that grammar ``name`` ignores, once."""
    body.ignored.setdefault(name, OrdinalSet()).add(ordinal)


def miss(body: SegmentBody, name: str, rule: str, record: bytes, ordinal: int, line: int) -> None:
    """Count a record that a rule of grammar ``name`` nearly matches, and keep it if it is one of the first."""
    near = body.near.setdefault(name, Bounded(MAX_FIRST))
    if len(near.first) < MAX_FIRST:
        near.add(place(ordinal), NearMiss(name, rule, line, excerpt(record)))
    else:
        near.count += 1


def search_markers(markers: Iterable[Marker], record: bytes) -> list[MarkerHit]:
    """Return the hit of each of ``markers`` in one record, if it has one: behind any envelope, where a head may stand.

    A head does not end with the blanks of a line of a source, behind an envelope as without one.
    """
    found = (marker.search(record, starts) for marker in markers)
    return [hit for hit in found if hit is not None and not (hit.marker.core is not None and is_indented(record, hit.start))]


def mark(body: SegmentBody, name: str, start: int, code: int | None, record: bytes, ordinal: int, line: int) -> None:
    """Book the hit of a marker whose message begins at ``start`` of a record."""
    text = mark_text(record, start)
    hits = body.markers.setdefault(name, Hits())
    prefix = record[:start]
    hits.add(place(ordinal, min(start, 65535)), line, text, code, read_rank(prefix), form_of(record, start), read_host(prefix))


def mark_text(record: bytes, start: int) -> str:
    """Return the text of a marker's message that begins at ``start`` of a record."""
    return record[start : start + EXCERPT_BYTES].decode("utf-8", "replace")


def excerpt(record: bytes) -> str:
    """Return the beginning of a record for people to read."""
    return record[:EXCERPT_BYTES].decode("utf-8", "replace").strip()


def _store(
    problems: PlacedProblems,
    columns: RuleColumns,
    grammar: Grammar,
    rule: Rule,
    record: bytes,
    printed: bytes,
    event: Extraction,
    ordinal: int,
    line: int,
) -> None:
    """Append one event to its columns; values that cannot be read become problems."""
    prefix = before(record, event.start)
    rank, clock = (read_rank(prefix), read_clock(prefix)) if prefix else (NO_RANK, NAN)
    at = place(ordinal, min(event.start, 65535))
    row = columns.open_row(at, line, rank, clock)
    if event.header is not None:
        columns.headers.append(row, "\t".join(event.header))
        return
    if event.cells is not None:
        columns.cells.append(row, "\t".join(event.cells))
        return
    if event.row is not None:
        columns.pairs.append(row, "\t".join(event.row)[:MAX_EXCERPT])
        return
    for name, text in event.texts.items():
        _put(problems, columns, grammar, rule, name, text, row, at, line, printed)
    for key, number in event.unregistered.items():
        columns.unregistered.setdefault(key, NumberColumn()).append(row, number)


def _put(
    problems: PlacedProblems,
    columns: RuleColumns,
    grammar: Grammar,
    rule: Rule,
    name: str,
    text: str,
    row: int,
    at: int,
    line: int,
    record: bytes,
) -> None:
    value, readable = convert(rule.fields[name], text)
    if not readable:
        problems.append((at, unreadable(grammar, rule, name, text, line, record)))
    elif isinstance(value, str):
        columns.texts.setdefault(name, TextColumn()).append(row, value[:EXCERPT_BYTES])
    elif value is not None:
        columns.numbers.setdefault(name, NumberColumn()).append(row, value)


def unreadable(grammar: Grammar, rule: Rule, name: str, text: str, line: int, record: bytes) -> Problem:
    """Return the problem of a value that cannot be read."""
    return Problem("unreadable_value", line, f"{grammar.ref} {rule.name}.{name}: {text[:64]!r}", excerpt(record))
