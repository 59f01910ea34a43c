"""Columns of the chosen grammars → events in log order: one object for each record that counts, values named."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from receipt_cli.columns import NO_RANK, POSITION_BITS, RuleColumns
from receipt_cli.grammar import COUNTERS, Grammar, Rule
from receipt_cli.match import bind_cells, bind_row, convert
from receipt_cli.model import MAX_EXCERPT, Problem
from receipt_cli.scan import Engine
from receipt_cli.stretch import Body

Meaning = tuple[str | None, str | None]
"""Scope and definition of a metric, as its grammar declares them."""


@dataclass(slots=True)
class Event:
    """One thing that a trainer printed.

    ``metrics`` and ``others`` hold numbers in base units; ``facts`` numbers or texts; ``texts`` what has no number;
    ``counters`` what a trainer that counts by epoch printed (see ``grammar.COUNTERS``).
    """

    at: int
    line: int
    rank: int
    clock: float
    grammar: Grammar
    rule: Rule
    step: int | None = None
    planned: int | None = None
    counters: dict[str, int] | None = None
    metrics: dict[str, float] = field(default_factory=dict)
    others: dict[str, float] = field(default_factory=dict)
    facts: dict[str, float | str] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    rules: tuple[str, ...] = ()
    meanings: Mapping[str, Meaning] = field(default_factory=dict)

    @property
    def is_step(self) -> bool:
        """True for a step record; a companion only adds to one."""
        return self.rule.event == "step" and not self.rule.companion

    @property
    def position(self) -> float | None:
        """How far training is at a step record: its step, or where none is printed its epoch."""
        return float(self.step) if self.step is not None else self.metrics.get("epoch")

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
        orphans: dict[int, Problem] = {}
        joined: set[int] = set()
        for rule in grammar.rules:
            columns = engine.columns(body, grammar, rule)
            if columns is None:
                continue
            made = _rows(columns, grammar, rule)
            if rule.table is not None:
                made = _name_rows(made, columns, rule, problems)
            elif rule.block is not None:
                made = _fold_block(made, columns, rule, problems, orphans, joined)
            events.extend(made)
        problems += [problem for at, problem in orphans.items() if at not in joined]  # a row may be another block's
    events.sort(key=lambda event: event.at)
    return events, problems


def _rows(columns: RuleColumns, grammar: Grammar, rule: Rule) -> list[Event]:
    printed = [spec for name, spec in rule.fields.items() if name in columns.numbers or rule.table or rule.block]
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
        elif target in COUNTERS:
            event.counters = {**(event.counters or {}), target: int(value)}
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


@dataclass(slots=True)
class _Open:
    """A block that rows may still join: its event, the ordinal of its last line, the keys it has."""

    event: Event
    last: int
    keys: set[str] = field(default_factory=set)


def _fold_block(
    events: list[Event],
    columns: RuleColumns,
    rule: Rule,
    problems: list[Problem],
    orphans: dict[int, Problem],
    joined: set[int],
) -> list[Event]:
    """Join the rows of each block to its opening line, or to the row that began it; a rank's rows stay its own.

    A row without a rank joins the block opened last where only opening lines say a rank. Rows that join no block go
    to ``orphans``, by their position; those that do go to ``joined``.
    """
    spec = rule.block
    assert spec is not None
    rows = columns.texts.get("\trow")
    texts = dict(zip(rows.rows, rows.values, strict=True)) if rows is not None else {}
    folded: list[Event] = []
    begun: dict[int, _Open] = {}
    latest: _Open | None = None
    named: dict[int, set[str]] = {}
    for row, event in enumerate(events):
        ordinal = event.at >> POSITION_BITS
        if row not in texts:
            latest = begun[event.rank] = _Open(event, ordinal)
            folded.append(event)
            continue
        key, _, value = texts[row].partition("\t")
        block = begun.get(event.rank)
        if block is None and event.rank == NO_RANK and spec.open is not None:
            block = latest
        if block is not None and (ordinal - block.last > spec.gap + 1 or (spec.open is None and key in block.keys)):
            block = None
        if block is None:
            if spec.open is not None:
                orphans[event.at] = Problem("block_row_without_opening", event.line, f"{rule.name}: {key[:64]!r}", "")
                continue
            block = begun[event.rank] = _Open(event, ordinal)
            folded.append(event)
        block.last = ordinal
        joined.add(event.at)
        bound = bind_row(spec, (key, value)) if key not in block.keys else None
        block.keys.add(key)
        if bound is not None:
            _put_row(block.event, rule, *bound, problems, named)
    return [e for e in folded if spec.requires <= named.get(id(e), set())]


def _put_row(
    event: Event, rule: Rule, name: str, value: str | float, problems: list[Problem], named: dict[int, set[str]]
) -> None:
    if isinstance(value, float):
        event.others[name] = value
        return
    read, readable = convert(rule.fields[name], value)
    if read is not None:
        _put(event, rule, name, read)
    elif not readable:
        detail = f"{event.grammar.ref} {rule.name}.{name}: {value[:64]!r}"
        problems.append(Problem("unreadable_value", event.line, detail, value[:MAX_EXCERPT]))
    named.setdefault(id(event), set()).add(name)
