"""Match one record against rules, and add the outcome to the columns of a segment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from receipt_cli.definitions.failure_markers import Marker, MarkerHit
from receipt_cli.grammar.model import Grammar, Rule
from receipt_cli.problems import EXCERPT_BYTES, NearMiss, Problem
from receipt_cli.records.envelope import NO_RANK, before, read_clock, read_rank, starts
from receipt_cli.records.place import form_of, is_indented, read_host
from receipt_cli.scan.candidates import Tried
from receipt_cli.scan.columns import Shown, place
from receipt_cli.scan.extraction import read_record
from receipt_cli.scan.extraction.labelled import keep_labelled
from receipt_cli.scan.extraction.model import MAX_EVENTS, NOWHERE, Extraction, PatternTimeout, clean_text, convert, join_cells
from receipt_cli.scan.forms import JUDGED, note_forms, readable, without_absence, without_words
from receipt_cli.scan.number_forms import decimals_in
from receipt_cli.scan.segment import SegmentBody

PlacedProblems = list[tuple[int, Problem]]
NAN = float("nan")
MAX_VALUE = 64
"""Characters of an unreadable value that are kept."""
LAST_PLACE = (1 << 16) - 1
"""Highest offset of an event in its record; a record is cut there."""


@dataclass(slots=True)
class Outcome:
    """The rules' results for one record: events by rule, rules without a match, rules that timed out."""

    read: list[tuple[Grammar, Rule, list[Extraction]]] = field(default_factory=list)
    ignored: list[tuple[Grammar, Rule]] = field(default_factory=list)
    missed: list[tuple[Grammar, Rule]] = field(default_factory=list)
    late: list[tuple[Grammar, Rule]] = field(default_factory=list)
    marks: list[MarkerHit] = field(default_factory=list)

    def reread(self, record: bytes) -> Outcome:
        """Return the outcome for ``record``, which has the same events at the same offsets."""
        read = [(grammar, rule, [event.reread(record) for event in events]) for grammar, rule, events in self.read]
        return Outcome(read, self.ignored, self.missed, self.late, self.marks)

    @property
    def hit(self) -> bool:
        """Return whether a rule of any grammar explained the record."""
        return bool(self.read or self.ignored)

    @property
    def shows_bars(self) -> bool:
        """Return whether a text of an event may contain a bar."""
        return any(
            "%|" in text for _, _, events in self.read for event in events for text in (*event.texts.values(), *event.cells)
        )

    @property
    def crowded(self) -> list[tuple[Grammar, Rule]]:
        """The rules that found the most events allowed in one record; more may follow unread."""
        return [(grammar, rule) for grammar, rule, events in self.read if len(events) >= MAX_EVENTS]

    def near(self) -> list[tuple[Grammar, Rule]]:
        """Return for each grammar the first rule whose literal is in the record, if no rule explained it."""
        if self.hit:
            return []
        first: dict[str, tuple[Grammar, Rule]] = {}
        for grammar, rule in self.missed:
            if rule.event not in ("ignored", "progress"):
                first.setdefault(grammar.id, (grammar, rule))
        return list(first.values())


def examine(record: bytes, tried: Iterable[Tried]) -> Outcome:
    """Return the outcome of the rules ``tried`` (grammar, rule, whether it ignores) on ``record``."""
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
    for least, spell in ((1, without_absence), (1, readable), (2, without_words)):
        if (outcome.read or outcome.missed) and (spelled := spell(record)) != record:
            _read_as_spelled(outcome, record, spelled, least)
    _keep_labelled(outcome, record)
    return outcome


def _read_as_spelled(outcome: Outcome, record: bytes, spelled: bytes, least: int) -> None:
    """Read steps and evaluations of a record in which a value is printed in an unreadable form.

    ``spelled`` is the record with digits in place of such values, at the same offsets. A rule must read at least ``least``
    unchanged numbers; the events keep the texts as printed.
    """
    hit = outcome.ignored or any(rule.event in JUDGED for _, rule, _ in outcome.read)
    for number, (_, rule, events) in enumerate(outcome.read):
        found = _events_as_spelled(rule, record, spelled, least)
        if [event.start for event in found] == [event.start for event in events]:
            more = any(len(new.texts) > len(old.texts) for new, old in zip(found, events, strict=True))
            outcome.read[number] = (*outcome.read[number][:2], found) if more else outcome.read[number]
    read = (
        {}
        if hit
        else {id(rule): events for _, rule in outcome.missed if (events := _events_as_spelled(rule, record, spelled, least))}
    )
    outcome.read += [(grammar, rule, read[id(rule)]) for grammar, rule in outcome.missed if id(rule) in read]
    outcome.missed = [(grammar, rule) for grammar, rule in outcome.missed if id(rule) not in read]


def _events_as_spelled(rule: Rule, record: bytes, spelled: bytes, least: int) -> list[Extraction]:
    """Return the events of ``rule`` in ``spelled`` with the texts of ``record``; none if fewer than ``least`` numbers match."""
    if rule.event not in JUDGED or rule.bounds or rule.table is not None or rule.block is not None:
        return []
    try:
        events = read_record(rule, spelled)
    except PatternTimeout:
        return []
    same = (span for event in events for span in event.spans.values() if record[slice(*span)] == spelled[slice(*span)])
    if sum(any(48 <= byte <= 57 for byte in record[slice(*span)]) for span in same) < least:
        return []  # a horizontal line of a table, not a row
    for event in events:
        for name, span in event.spans.items():
            event.texts[name] = clean_text(record[slice(*span)]) if span != NOWHERE else event.texts[name]
        for key, span in [*event.unregistered_spans.items()]:
            if record[slice(*span)] != spelled[slice(*span)]:
                del event.unregistered[key], event.unregistered_spans[key]
    return events


def _keep_labelled(outcome: Outcome, record: bytes) -> None:
    """Keep the labelled numbers that the rules of each grammar left unread."""
    rules: dict[str, list[tuple[Rule, list[Extraction]]]] = {}
    for grammar, rule, events in outcome.read:
        rules.setdefault(grammar.ref, []).append((rule, events))
    for grammar, rule, _ in outcome.read:
        read = rules.pop(grammar.ref, None)
        try:
            if read is not None:
                keep_labelled(record, read)
                note_forms(record, read)
        except (TimeoutError, MemoryError):
            outcome.late.append((grammar, rule))


@dataclass(slots=True)
class Entry:
    """One record to be added to ``body`` and ``problems``; ``printed`` is the text that messages quote."""

    body: SegmentBody
    record: bytes
    printed: bytes
    ordinal: int
    line: int
    problems: PlacedProblems

    def book(self, outcome: Outcome) -> None:
        """Add the events, problems, near misses and marker hits of the record."""
        for grammar, rule in outcome.late:
            self._report(place(self.ordinal), "pattern_timeout", f"{grammar.ref} {rule.name} took too long")
        for grammar, rule, events in outcome.read:
            for event in events:
                self._add(grammar, rule, event)
        for grammar, rule in outcome.crowded:
            detail = f"{grammar.ref} {rule.name}: read {MAX_EVENTS} events of one record; further events were not read"
            self._report(place(self.ordinal), "events_dropped", detail)
        for grammar, _ in outcome.ignored:
            self.body.ignored[grammar.id].add(self.ordinal)
        for grammar, rule in outcome.near():
            miss(self.body, grammar.id, rule.name, self.printed, self.ordinal, self.line)
        for hit in outcome.marks:
            start = hit.start
            prefix, message = self.record[:start], self.record[start : start + EXCERPT_BYTES]
            found = place(self.ordinal, min(start, LAST_PLACE)), message, hit.exit_code
            hits = self.body.markers[hit.marker.id]
            hits.add(found, self.line, read_rank(prefix), form_of(self.record, start), read_host(prefix))

    def _add(self, grammar: Grammar, rule: Rule, event: Extraction) -> None:
        """Append one event to the columns of its rule; report values that cannot be read."""
        prefix = before(self.record, event.start)
        rank, clock = (read_rank(prefix), read_clock(prefix)) if prefix else (NO_RANK, NAN)
        at = place(self.ordinal, min(event.start, LAST_PLACE))
        columns = self.body.rules[self.body.key_of(grammar.ref, rule.name, event.form)]
        row = columns.open_row(at, self.line, rank, clock)
        if event.column:
            getattr(columns, event.column).append(row, join_cells(event.column, event.cells))
            return
        for name, text in event.texts.items():
            value, readable = convert(rule.fields[name], text)
            if not readable:
                self._report(at, "unreadable_value", f"{grammar.ref} {rule.name}.{name}: {text[:64]!r}")
                columns.unread[name].append(row, text[:MAX_VALUE])
            elif isinstance(value, str):
                columns.texts[name].append(row, value[:EXCERPT_BYTES])
            elif value is not None:
                columns.numbers[name].append(row, value)
        for key, number in event.unregistered.items():
            columns.unregistered[key].append(row, number)
        for name, digits in decimals_in(self.record, rule, event).items():
            columns.add_digits(name, digits, Shown(1, at, at))

    def _report(self, at: int, kind: str, detail: str) -> None:
        self.problems.append((at, Problem(kind, self.line, detail, excerpt(self.printed))))


def miss(body: SegmentBody, name: str, rule: str, record: bytes, ordinal: int, line: int) -> None:
    """Count a near miss of grammar ``name``; keep the record if it is among the first."""
    body.near[name].add(place(ordinal), NearMiss(name, rule, line, excerpt(record)))


def search_markers(markers: Iterable[Marker], record: bytes) -> list[MarkerHit]:
    """Return the hits of ``markers`` in one record, after any of its envelopes.

    Hits of a marker with a ``core`` that are indented like source code are dropped.
    """
    found = (marker.search(record, starts) for marker in markers)
    return [hit for hit in found if hit is not None and not (hit.marker.core is not None and is_indented(record, hit.start))]


def excerpt(record: bytes) -> str:
    """Return the beginning of a record as text."""
    return record[:EXCERPT_BYTES].decode("utf-8", "replace").strip()
