"""Find records that begin as training records do, with a counter that none of these has, but were not read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from receipt_cli.grammar.model import Grammar, Rule, compile_pattern
from receipt_cli.patterns import compile_later
from receipt_cli.problems import MAX_FIELDS, MAX_NAMED, NearMiss, Problem, pointer
from receipt_cli.records.envelope import behind_heads
from receipt_cli.scan.columns import RuleColumns
from receipt_cli.scan.engine import Engine
from receipt_cli.scan.segment import SegmentBody

if TYPE_CHECKING:
    from receipt_cli.learn.learned import Learned

COUNTERS = ("epoch", "epoch_number", "epoch_step", "step")
"""The fields that say where a record is, the slowest first."""
_FIGURE = compile_later(rb"(?i)(?:loss|\blr|learning[ _]rate|acc(?:uracy)?|ppl|/s(?:ec)?)\b[^\d\r\n]{0,12}\d")
BETWEEN = ("min", "max", "mean", "median")


def begun(engine: Engine, body: SegmentBody, grammar: Grammar, learned: Learned) -> Iterator[Problem]:
    """Yield a problem for each learned rule whose records begin as unread ones do that are at another step.

    How many steps there are is unknown then, and what the unread one printed. A rule of one of several stages names no field.
    """
    heads = {rule.name: rule.head for rule in learned.rules if rule.head}
    rules = [rule for rule in grammar.rules if rule.event == "step" and not rule.companion]
    for rule in [rule for rule in rules if rule.name in heads]:
        columns = engine.columns(body, grammar, rule)
        near = [miss for _, miss in body.near[grammar.id].first if miss.rule == rule.name]
        if columns is None or not near:
            continue
        read = _positions(columns)
        found = {place: miss for miss in near if (place := _position(miss, heads[rule.name])) is not None and place not in read}
        if found:
            first = next(iter(found.values()))
            fields = tuple(_fields(rule, columns, max(found) > max(read), min(found) < min(read))) if len(rules) == 1 else ()
            detail = f"{len(found)} records begin like those of steps, but were not read"
            lines = tuple(miss.line_number for miss in found.values())[:MAX_NAMED]
            yield Problem("training_unread", first.line_number, detail, first.excerpt, lines, (), fields[:MAX_FIELDS])


def _positions(columns: RuleColumns) -> set[tuple[int, ...]]:
    """Return the counters of each record of a rule."""
    counted = [columns.numbers[name].values for name in COUNTERS if name in columns.numbers]
    return set(zip(*(map(int, values) for values in counted), strict=False))


def _position(miss: NearMiss, head: str) -> tuple[int, ...] | None:
    """Return the counters of an unread record with a figure that begins as ``head`` says, or None."""
    text = behind_heads(miss.excerpt.encode())
    found = compile_pattern(head).search(text)
    named = found.groupdict() if found is not None and _FIGURE.search(text, found.end()) is not None else {}
    return tuple(int(named[name].replace(b",", b"")) for name in COUNTERS if name in named) or None


def _fields(rule: Rule, columns: RuleColumns, behind: bool, before: bool) -> Iterator[str]:
    """Yield the figures that an unread record inside the training changes, or ``behind`` or ``before`` it."""
    ends = [name for name, changes in (("last", behind), ("first", before)) if changes]
    yield from (pointer("summary", "steps", name) for name in ("record_count", *ends))
    for name in columns.numbers:
        block, metric = rule.fields[name].target if name in rule.fields else ("", "")
        if block in ("metric", "other"):
            part = "metrics" if block == "metric" else "other_metrics"
            yield from (pointer("summary", part, metric, key) for key in (*ends, *BETWEEN))
            if metric in ("loss", "val_loss"):
                yield "/checks/finite_losses"
