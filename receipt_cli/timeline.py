"""Columns of the chosen grammars → events in log order: one object for each record that counts, values named."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from receipt_cli.columns import NO_RANK, RuleColumns
from receipt_cli.grammar import Grammar, Rule
from receipt_cli.match import bind_cells, convert
from receipt_cli.model import MAX_EXCERPT, Problem
from receipt_cli.scan import Engine
from receipt_cli.stretch import Body

Meaning = tuple[str | None, str | None]
"""Scope and definition of a metric, as its grammar declares them."""


@dataclass(slots=True)
class Event:
    """One thing that a trainer printed.

    ``metrics`` and ``others`` hold numbers in base units; ``facts`` numbers or texts; ``texts`` what has no number.
    """

    at: int
    line: int
    rank: int
    clock: float
    grammar: Grammar
    rule: Rule
    step: int | None = None
    planned: int | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    others: dict[str, float] = field(default_factory=dict)
    facts: dict[str, float | str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    rules: tuple[str, ...] = ()
    meanings: Mapping[str, Meaning] = field(default_factory=dict)

    def join(self, other: Event) -> None:
        """Add what another line about the same step prints; what this one printed itself stands."""
        self.rules = (*self.rules, other.rule.name)
        self.fill(other)

    def fill(self, other: Event) -> None:
        """Add the values that ``other`` has and this event has not."""
        self.metrics = {**other.metrics, **self.metrics}
        self.others = {**other.others, **self.others}
        self.meanings = {**other.meanings, **self.meanings}

    def same_values(self, other: Event) -> bool:
        """True when both print the same numbers (NaN equals NaN)."""
        return _equal(self.metrics, other.metrics) and _equal(self.others, other.others) and self.facts == other.facts


def _equal(left: Mapping[str, float], right: Mapping[str, float]) -> bool:
    if left.keys() != right.keys():
        return False
    return all(value == right[name] or (math.isnan(value) and math.isnan(right[name])) for name, value in left.items())


def read_events(engine: Engine, body: Body, grammars: Sequence[Grammar]) -> tuple[list[Event], list[Problem]]:
    """Return the events of ``grammars`` in log order, and the problems of naming them (table rows without a header)."""
    events: list[Event] = []
    problems: list[Problem] = []
    for grammar in grammars:
        for rule in grammar.rules:
            columns = engine.columns(body, grammar, rule)
            if columns is None:
                continue
            made = _rows(columns, grammar, rule)
            if rule.table is not None:
                made = _name_rows(made, columns, rule, problems)
            events.extend(made)
    events.sort(key=lambda event: event.at)
    return _one_rank(events), problems


def _rows(columns: RuleColumns, grammar: Grammar, rule: Rule) -> list[Event]:
    printed = [spec for name, spec in rule.fields.items() if name in columns.numbers or rule.table is not None]
    meanings = {s.target[1]: (s.scope, s.definition) for s in reversed(printed) if s.target[0] == "metric"}
    events = [
        Event(at, line, rank, clock, grammar, rule, rules=(rule.name,), meanings=meanings)
        for at, line, rank, clock in zip(columns.at, columns.line, columns.rank, columns.clock, strict=True)
    ]
    for name, numbers in columns.numbers.items():
        for row, value in zip(numbers.rows, numbers.values, strict=True):
            _put(events[row], rule, name, value)
    for name, texts in columns.texts.items():
        if not name.startswith("\t"):
            for row, text in zip(texts.rows, texts.values, strict=True):
                _put(events[row], rule, name, text)
    for name, numbers in columns.others.items():
        for row, value in zip(numbers.rows, numbers.values, strict=True):
            events[row].others[name] = value
    return events


def _put(event: Event, rule: Rule, name: str, value: float | str) -> None:
    kind, target = rule.fields[name].target
    if isinstance(value, str):
        if kind == "fact":
            event.facts[target] = value
        else:
            event.texts[target] = value
    elif kind == "metric":
        event.metrics.setdefault(target, value)
    elif kind == "fact":
        event.facts[target] = value
    elif kind == "structural" and math.isfinite(value):
        if target == "step":
            event.step = int(value)
        elif target == "planned_steps":
            event.planned = int(value)
        elif target == "rank":
            event.rank = int(value)
    elif kind == "other":
        event.others[target] = value


def _name_rows(events: list[Event], columns: RuleColumns, rule: Rule, problems: list[Problem]) -> list[Event]:
    """Bind the cells of each row to the latest header row before it."""
    assert rule.table is not None
    texts = columns.texts
    headers = dict(zip(texts["\theader"].rows, texts["\theader"].values, strict=True)) if "\theader" in texts else {}
    cells = dict(zip(texts["\tcells"].rows, texts["\tcells"].values, strict=True)) if "\tcells" in texts else {}
    named: list[Event] = []
    header: tuple[str, ...] = ()
    for row, event in enumerate(events):
        if row in headers:
            header = tuple(headers[row].split("\t"))
            continue
        bound = bind_cells(rule.table, header, tuple(cells[row].split("\t"))) if row in cells else None
        if bound is None:
            problems.append(Problem("table_row_without_header", event.line, f"{rule.name}: cells do not fit the header", ""))
            continue
        for name, text in bound[0].items():
            value, readable = convert(rule.fields[name], text)
            if value is not None:
                _put(event, rule, name, value)
            elif not readable:
                detail = f"{event.grammar.ref} {rule.name}.{name}: {text[:64]!r}"
                problems.append(Problem("unreadable_value", event.line, detail, text[:MAX_EXCERPT]))
        event.others.update(bound[1])
        named.append(event)
    return named


def _one_rank(events: list[Event]) -> list[Event]:
    """Leave out step records of other ranks where the leading rank printed that step itself.

    The leader is the rank with most step records, the lowest on a tie; records without a rank always stay.
    """
    counts: dict[tuple[str, str], Counter[int]] = {}
    for event in events:
        if event.rule.event == "step" and event.rank != NO_RANK and event.step is not None:
            counts.setdefault((event.grammar.id, event.rule.name), Counter())[event.rank] += 1
    leaders = {key: min(c, key=lambda rank: (-c[rank], rank)) for key, c in counts.items() if len(c) > 1}
    if not leaders:
        return events
    led: dict[tuple[str, str], set[int | None]] = {key: set() for key in leaders}
    for event in _of(events, leaders):
        if event.rank == leaders[event.grammar.id, event.rule.name]:
            led[event.grammar.id, event.rule.name].add(event.step)
    return [e for e in events if not _follows(e, leaders, led)]


def _of(events: Iterable[Event], leaders: Mapping[tuple[str, str], int]) -> Iterable[Event]:
    return (e for e in events if (e.grammar.id, e.rule.name) in leaders)


def _follows(event: Event, leaders: Mapping[tuple[str, str], int], led: Mapping[tuple[str, str], set[int | None]]) -> bool:
    key = (event.grammar.id, event.rule.name)
    if key not in leaders or event.rank in (NO_RANK, leaders[key]):
        return False
    return event.step is not None and event.step in led[key]
