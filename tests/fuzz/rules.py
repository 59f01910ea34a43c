"""One record and one shipped rule: what is found stands in the record, where it is said to stand."""

import math
from collections.abc import Callable
from functools import cache

from receipt_cli.authoring.lint import read_sample
from receipt_cli.grammar.catalog import shipped
from receipt_cli.grammar.model import Grammar, Rule
from receipt_cli.scan.book import Entry, examine
from receipt_cli.scan.candidates import Candidates
from receipt_cli.scan.extraction import extract, extract_behind, read_record
from receipt_cli.scan.extraction.model import MAX_EVENTS, NOWHERE, Extraction, convert
from receipt_cli.scan.extraction.table import bind_cells, bind_row
from receipt_cli.scan.layout import learn_layout
from receipt_cli.scan.segment import SegmentBody
from tests.fuzz.feed import Feed, choice


@cache
def rules_of(kind: str) -> list[tuple[Grammar, Rule]]:
    """Return the shipped rules of one kind."""
    grammars = shipped(with_samples=True)
    return [(grammar, rule) for grammar in grammars for rule in (*grammar.rules, *grammar.ignore) if rule.kind == kind]


def rule_target(kind: str) -> tuple[Callable[[bytes], None], Callable[[], list[bytes]]]:
    """Return the target and the seeds of the rules of one kind: two bytes choose the rule, the rest is the record."""

    def target(data: bytes) -> None:
        feed = Feed(data)
        grammar, rule = rules_of(kind)[feed.below(1 << 16) % len(rules_of(kind))]
        record = feed.rest().replace(b"\n", b" ").replace(b"\r", b" ")
        events = extract(rule, record)
        assert len(events) <= max(MAX_EVENTS, 1)
        for event in (*events, *extract_behind(rule, record)):
            check(rule, record, event)
        candidates = Candidates([(grammar, rule, rule.event == "ignored")], [])
        outcome = examine(record, candidates.rules)
        assert not outcome.late
        Entry(SegmentBody(), record, record, 0, 1, []).book(outcome)
        if record.isascii():
            learn_layout(record, outcome, candidates, frozenset())
        assert bool(read_record(rule, record)) == bool(outcome.read or outcome.ignored)
        read_sample(rule, record.decode("utf-8", "replace"))

    def seeds() -> list[bytes]:
        found = []
        for number, (_, rule) in enumerate(rules_of(kind)):
            lines = [sample.line.encode().split(b"\n")[-1] for sample in rule.samples[:2]]
            found += [choice(number, 1 << 16) + line for line in lines]
        return found

    return target, seeds


def check(rule: Rule, record: bytes, event: Extraction) -> None:
    """Raise where ``event`` is not in ``record``, or holds what no receipt can."""
    assert 0 <= event.start <= event.end <= len(record), (event.start, event.end)
    spans = [*event.spans.items(), *event.unregistered_spans.items()]
    for name, (start, end) in spans:
        assert (start, end) == NOWHERE or 0 <= start <= end <= len(record), (name, start, end)
    for start, end in (*event.keys, *event.unread):
        assert (start, end) == NOWHERE or 0 <= start <= end <= len(record)
    for name, text in event.texts.items():
        text.encode()
        place = event.spans.get(name, NOWHERE)
        if place != NOWHERE and record.isascii() and not event.column:
            assert record[slice(*place)].decode().strip() == text, (name, text, record[slice(*place)])
        value, readable = convert(rule.fields[name], text)
        assert value is None or readable
        assert not isinstance(value, float) or math.isnan(value) or abs(value) <= math.inf
    for key, number in event.unregistered.items():
        key.encode()
        assert 0 < len(key) <= 256 and isinstance(number, float)
    if event.column == "pairs" and rule.block is not None:
        bind_row(rule.block, event.cells)
    if event.column == "cells" and rule.table is not None:
        bind_cells(rule.table, tuple(f"c{n}" for n in range(len(event.cells) - rule.table.skip_cells)), event.cells)
        bind_cells(rule.table, tuple(rule.table.keys), event.cells)
