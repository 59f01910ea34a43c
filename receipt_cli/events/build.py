"""Build the events of a log, in log order, from the columns of the chosen grammars."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from receipt_cli.events.ledger import Ledger
from receipt_cli.events.model import Event, ReadEvents
from receipt_cli.events.rows import CompactRows, KeptRows, are_many
from receipt_cli.grammar.model import COUNTERS, Grammar, Rule
from receipt_cli.lazy_dataclass import dataclass, field
from receipt_cli.problems import EXCERPT_BYTES, Problem
from receipt_cli.records.envelope import NO_RANK
from receipt_cli.scan.columns import POSITION_BITS, NumberColumn, RuleColumns
from receipt_cli.scan.engine import Engine
from receipt_cli.scan.extraction import bind_cells, bind_row, convert, read_unregistered
from receipt_cli.scan.segment import SegmentBody, count_between


def read_events(
    engine: Engine, body: SegmentBody, grammars: Sequence[Grammar], *, runs: bool = False, copies: bool = False
) -> ReadEvents:
    """Return the events that ``grammars`` read.

    With ``runs``, records that need no event of their own stay rows (see ``events.rows``); with ``copies`` those of other
    ranks become events even so. Not for events that will be moved.
    """
    events: list[Event] = []
    problems: list[Problem] = []
    read = [(g, r, columns) for g in grammars for r in g.rules if (columns := engine.columns(body, g, r)) is not None]
    ledger = Ledger()
    ledger.take(columns for _, _, columns in read)
    rows = CompactRows(read)
    if runs and any(are_many(columns) for _, _, columns in read):
        from receipt_cli.events.compact.selection import compact  # small logs need nothing of it

        rows = compact(read, copies=copies)
    for grammar in grammars:
        orphans: dict[int, Problem] = {}
        joined: set[int] = set()
        for _, rule, columns in (entry for entry in rows.read if entry[0] is grammar):
            made = _events_of(columns, grammar, rule, rows)
            if rule.table is not None:
                made = _name_rows(made, columns, rule, problems, ledger)
            elif rule.block is not None:
                made = _fold_block(made, columns, rule, problems, orphans, joined, ledger, body.copied)
            events.extend(made)
        problems += [problem for at, problem in orphans.items() if at not in joined]  # a row may be another block's
    events.sort(key=lambda event: event.at)
    return ReadEvents(events, problems, rows.copies, rows.bars, ledger)


def _events_of(columns: RuleColumns, grammar: Grammar, rule: Rule, compacted: CompactRows) -> list[Event]:
    """Return the events of the rows of a rule: all, or those that are kept and the runs behind them."""
    kept = compacted.kept.get((grammar.id, rule.name))
    printed = [spec for name, spec in rule.fields.items() if name in columns.numbers or rule.table or rule.block]
    meanings = {s.target[1]: (s.scope, s.definition) for s in reversed(printed) if s.target[0] == "metric"}
    rows: Sequence[int] = range(len(columns)) if kept is None else kept.rows.tolist()
    every = zip(columns.at, columns.line, columns.rank, columns.clock, strict=True)
    places = every if kept is None else kept.places(columns)
    own = (rule.name,)
    events = [
        Event(at, line, rank, math.nan if math.isnan(clock) else clock, grammar, rule, rules=own, meanings=meanings)
        for at, line, rank, clock in places
    ]
    sought = kept is not None and (columns.texts or kept.runs)
    where = dict(zip(rows, events, strict=True)) if sought else None
    for companion, joined in compacted.companions(grammar, rule, rows):
        for place in joined:
            events[place].rules = (*events[place].rules, companion)
    for name, numbers in columns.numbers.items():
        kind, target = rule.fields[name].target
        pairs = _pairs(events, numbers, kept)
        if kind == "metric":
            for event, value in pairs:
                event.metrics.setdefault(target, value)
        else:
            for event, value in pairs:
                _put(event, rule, name, value)
    for name, texts in columns.texts.items():
        for row, text in zip(texts.rows, texts.values, strict=True):
            if where is None or row in where:
                _put(events[row] if where is None else where[row], rule, name, text)
    for name, numbers in columns.unregistered.items():
        for event, value in _pairs(events, numbers, kept):
            event.add_unregistered(name, value)
    if kept is not None:
        if where is not None:
            for row, run in kept.runs.items():
                where[row].run = run
        if kept.rank is not None:
            for event in events:
                event.rank = kept.rank
    return events


def _pairs(events: Sequence[Event], numbers: NumberColumn, kept: KeptRows | None) -> Iterable[tuple[Event, float]]:
    """Yield the events that have a value in a column, with the value; the events are of all rows, or of those kept."""
    if kept is None:
        if numbers.dense:
            return zip(events, numbers.values, strict=False)
        return ((events[row], value) for row, value in zip(numbers.rows, numbers.values, strict=True))
    index, values = kept.values(numbers)
    return zip((events[i] for i in index), values, strict=True)


def _put(event: Event, rule: Rule, name: str, value: float | str) -> None:
    kind, target = rule.fields[name].target
    if isinstance(value, str):
        if kind == "fact":
            event.facts = {**event.facts, target: value}
        else:
            event.texts = {**event.texts, target: value}
    elif kind == "metric":
        event.metrics.setdefault(target, value)
    elif kind == "fact":
        event.facts = {**event.facts, target: value}
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
        event.add_unregistered(target, value)


def _name_rows(events: list[Event], columns: RuleColumns, rule: Rule, problems: list[Problem], ledger: Ledger) -> list[Event]:
    """Bind the cells of each row to the latest header row before it."""
    assert rule.table is not None
    headers = dict(zip(columns.headers.rows, columns.headers.values, strict=True))
    cells = dict(zip(columns.cells.rows, columns.cells.values, strict=True))
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
            _put_text(event, rule, name, text, problems)
        for name, value in bound[1].items():
            event.add_unregistered(name, value)
        ledger.read.update(bound[0].keys())
        ledger.other.update(bound[1].keys())
        named.append(event)
    return named


@dataclass(slots=True)
class _Open:
    """A block that rows may still join: its event, the ordinal and the number of its last line, the keys it has."""

    event: Event
    last: int
    line: int
    keys: dict[str, str] = field(default_factory=dict)


def _fold_block(
    events: list[Event],
    columns: RuleColumns,
    rule: Rule,
    problems: list[Problem],
    orphans: dict[int, Problem],
    joined: set[int],
    ledger: Ledger,
    copied: Sequence[int],
) -> list[Event]:
    """Join the rows of each block to its opening line, or to the row that began it; a rank's rows stay its own.

    A row without a rank joins the block opened last where only opening lines have a rank. Rows that join no block go
    to ``orphans``, by their position; those that do go to ``joined``. Lines that are ``copied`` are not between its rows.
    """
    spec = rule.block
    assert spec is not None
    pairs = dict(zip(columns.pairs.rows, columns.pairs.values, strict=True))
    folded: list[Event] = []
    begun: dict[int, _Open] = {}
    latest: _Open | None = None
    named: dict[int, set[str]] = {}
    for row, event in enumerate(events):
        ordinal = event.at >> POSITION_BITS
        if row not in pairs:
            latest = begun[event.rank] = _Open(event, ordinal, event.line)
            folded.append(event)
            continue
        key, _, value = pairs[row].partition("\t")
        block = begun.get(event.rank)
        if block is None and event.rank == NO_RANK and spec.open is not None:
            block = latest
        if block is not None:
            between = count_between(copied, block.line, event.line)
            if ordinal - block.last - between > spec.gap + 1 or (spec.open is None and key in block.keys):
                block = None
        if block is None:
            if spec.open is not None:
                orphans[event.at] = Problem("block_row_without_opening", event.line, f"{rule.name}: {key[:64]!r}", "")
                continue
            block = begun[event.rank] = _Open(event, ordinal, event.line)
            folded.append(event)
        block.last, block.line = ordinal, event.line
        joined.add(event.at)
        again = key in block.keys
        same = block.keys.setdefault(key, value) == value  # a block may print a row twice
        bound = bind_row(spec, (key, value)) if same else None
        if bound is not None:
            if not again:
                known = {*block.event.metrics, *block.event.unregistered}
                _put_row(block.event, rule, *bound, problems, named)
                new = {*block.event.metrics, *block.event.unregistered} - known
                block.event.elsewhere = {**(block.event.elsewhere or {}), **dict.fromkeys(new, event.line)}
            (ledger.read if isinstance(bound[1], str) else ledger.other)[bound[0]] += 1
        elif key not in spec.ignore and read_unregistered(value) is not None:
            ledger.dropped[key] += 1
    return [e for e in folded if spec.requires <= named.get(id(e), set())]


def _put_row(
    event: Event, rule: Rule, name: str, value: str | float, problems: list[Problem], named: dict[int, set[str]]
) -> None:
    if isinstance(value, float):
        event.add_unregistered(name, value)
        return
    _put_text(event, rule, name, value, problems)
    named.setdefault(id(event), set()).add(name)


def _put_text(event: Event, rule: Rule, name: str, text: str, problems: list[Problem]) -> None:
    value, readable = convert(rule.fields[name], text)
    if value is not None:
        _put(event, rule, name, value)
    elif not readable:
        detail = f"{event.grammar.ref} {rule.name}.{name}: {text[:64]!r}"
        problems.append(Problem("unreadable_value", event.line, detail, text[:EXCERPT_BYTES]))
