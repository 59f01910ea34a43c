"""Build the events of a log, in log order, from the columns of the chosen grammars."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from receipt_cli.events.model import NOTHING, Event, Ledger, ReadEvents
from receipt_cli.events.naming import Notes, name_cells
from receipt_cli.events.ranks import sole_rank
from receipt_cli.events.rows import CompactRows, KeptRows, Read, are_many, indices_of, values_at
from receipt_cli.grammar.model import COUNTERS, MOMENTS, Grammar, Rule
from receipt_cli.problems import Problem
from receipt_cli.scan.columns import NumberColumn, RuleColumns
from receipt_cli.scan.engine import Engine
from receipt_cli.scan.segment import SegmentBody

_NUMBERS = {"step": "step", "planned_steps": "planned", "rank": "rank"}
"""What of an event each structural field is that counts nothing."""


def read_events(engine: Engine, body: SegmentBody, grammars: Sequence[Grammar], *, runs: bool = False) -> ReadEvents:
    """Return the events that ``grammars`` read.

    With ``runs``, records that need no event of their own stay rows (see ``events.rows``); not for events that will be moved.
    """
    events: list[Event] = []
    problems: list[Problem] = []
    read: list[Read] = []
    ledger = Ledger()
    for grammar in grammars:
        notes = Notes(grammar, ledger, body.copied)
        scanned = [(rule, columns) for rule in grammar.rules if (columns := engine.columns(body, grammar, rule)) is not None]
        ledger.take(columns for _, columns in scanned)
        read += [(grammar, rule, name_cells(notes, rule, columns)) for rule, columns in scanned]
        problems += notes.problems
    rows = CompactRows(read)
    if runs and any(are_many(columns) for _, _, columns in read):
        from receipt_cli.events.compact.selection import compact  # small logs need nothing of it

        rows = compact(read)
    for grammar, rule, columns in rows.read:
        events += _events_of(columns, grammar, rule, rows)
    events.sort(key=lambda event: event.at)
    events = sole_rank(events, rows.ranks) if rows.ranks else events
    return ReadEvents(events, problems, rows.copies, rows.bars, ledger, rows.ranks)


def _events_of(columns: RuleColumns, grammar: Grammar, rule: Rule, compacted: CompactRows) -> list[Event]:
    """Return the events of the rows of a rule: all, or those that are kept and the runs behind them."""
    kept = compacted.kept.get((grammar.id, rule.name))
    printed = [spec for name, spec in rule.fields.items() if name in columns.numbers or rule.table or rule.block]
    meanings = {s.target[1]: (s.scope, s.definition) for s in reversed(printed) if s.target[0] == "metric"}
    rows: Sequence[int] = range(len(columns)) if kept is None else kept.rows.tolist()
    parts = (columns.at, columns.line, columns.rank, columns.clock)
    places = zip(*(parts if kept is None else [part.whole()[kept.rows].tolist() for part in parts]), strict=True)
    own, nan, no = (rule.name,), math.nan, NOTHING  # given one by one: to fill in what is left out takes as long again
    events = [
        Event(at, line, rank, clock if clock == clock else nan, grammar, rule, None, None, None, {}, no, no, no, own, meanings)
        for at, line, rank, clock in places
    ]
    by_row = dict(zip(rows, events, strict=True)) if kept is not None or columns.texts else {}
    for companion, joined in indices_of(compacted.attached.get((grammar.id, rule.name), {}), rows):
        for place in joined:
            events[place].rules = (*events[place].rules, companion)
    for name, numbers in columns.numbers.items():
        kind, target = rule.fields[name].target
        _note_lines(events, target, numbers, kept)
        pairs = _pairs(events, numbers, kept)
        if kind == "metric":
            for event, value in pairs:
                event.metrics.setdefault(target, value)
        elif kind == "other":
            for event, value in pairs:
                event.add_unregistered(target, value)
        elif (attribute := _NUMBERS.get(target) if kind == "structural" else None) is not None:
            for event, value in pairs:
                if math.isfinite(value):
                    setattr(event, attribute, int(value))
        else:
            for event, value in pairs:
                _put(event, rule, name, value)
    for name, texts in columns.texts.items():
        for row, text in zip(texts.rows, texts.values, strict=True):
            if row in by_row:
                _put(by_row[row], rule, name, text)
    for name, numbers in columns.unregistered.items():
        _note_lines(events, name, numbers, kept)
        for event, value in _pairs(events, numbers, kept):
            event.add_unregistered(name, value)
    if kept is not None:
        for row, run in kept.runs.items():
            by_row[row].run = run
    return events


def _note_lines(events: Sequence[Event], name: str, numbers: NumberColumn, kept: KeptRows | None) -> None:
    """Note the lines that print the values of a column, where events have no such value yet."""
    if numbers.printed is not None:
        for event, line in _pairs(events, numbers.printed, kept):
            if line and name not in event.metrics and name not in event.unregistered:
                event.elsewhere = {**(event.elsewhere or {}), name: int(line)}


def _pairs(events: Sequence[Event], numbers: NumberColumn, kept: KeptRows | None) -> Iterable[tuple[Event, float]]:
    """Yield the events that have a value in a column, with the value; the events are of all rows, or of those kept."""
    if kept is None:
        if numbers.dense:
            return zip(events, numbers.values, strict=False)
        return ((events[row], value) for row, value in zip(numbers.rows, numbers.values, strict=True))
    index, values = values_at(numbers, kept.rows)
    return zip(events if index is None else [events[i] for i in index.tolist()], values.tolist(), strict=True)


def _put(event: Event, rule: Rule, name: str, value: float | str) -> None:
    """Add a text, a fact, or a number that counts something."""
    kind, target = rule.fields[name].target
    if kind == "fact" or target in MOMENTS:
        event.facts = {**event.facts, target: value}
    elif isinstance(value, str):
        event.texts = {**event.texts, target: value}
    elif target in COUNTERS and math.isfinite(value):
        event.counters = {**(event.counters or {}), target: int(value)}
