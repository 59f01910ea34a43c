"""Rules for lines that only count: announcements of epochs, and progress bars that number records without a step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from receipt_cli.grammar.model import compile_pattern
from receipt_cli.learn.counters import Group
from receipt_cli.learn.patterns import chunks, counter_value, literal
from receipt_cli.learn.proofs import Induced
from receipt_cli.learn.readings import Reading
from receipt_cli.learn.rules import MIN_GATE


def induce_heading(group: Group) -> Induced | None:
    """Return the rule of the line that announces an epoch, where the records of ``group`` need it."""
    heading = group.main.counter.heading
    if heading is None:
        return None
    value, fields = counter_value(heading.columns[0], "epoch_number", "epochs_planned")
    gates = [g for g in chunks(heading.literals[0]) if len(g) >= MIN_GATE]
    if not gates:
        return None
    ends = r"[ \t]*+$" if len(heading.columns) == 1 else ""
    pattern = rf"^{literal(heading.literals[0])}[ \t]*+{value}{literal(heading.literals[1])}{ends}"
    compiled = compile_pattern(pattern)
    samples = [found.group() for core in heading.samples if (found := compiled.search(core)) is not None][:2]
    if not samples:
        return None
    gate = max(gates, key=len).decode("utf-8", "surrogateescape")
    body: dict[str, Any] = {"event": "progress", "literal": gate, "pattern": pattern, "fields": fields}
    return Induced("epoch_begins", body, pattern, None, [core.strip() for core in samples], heading.count)


MIN_BARS = 3
_BAR = (
    r"(?<![^\s\])])\d{1,3}+%\|[^|\r\n]{0,400}+\|[ \t]*+(?P<step>\d++)/(?P<planned_steps>\d++)"
    r" \[[\d:]++<[\d:?]++,[ \t]*+(?:\d[\d.]*+|\?)(?:s/it|it/s)\]"
)


def induce_progress(readings: Iterable[Reading]) -> Induced | None:
    """Return the rule of a progress bar without metrics, which may number records without a step."""
    compiled = compile_pattern(_BAR)
    for reading in sorted(readings, key=lambda r: -r.shape.count):
        if not reading.bar or reading.roles or reading.shape.literals[0].strip() or reading.evaluation:
            continue
        samples = [found.group() for core in reading.shape.samples if (found := compiled.search(core)) is not None]
        if samples and reading.shape.count >= MIN_BARS:
            body: dict[str, Any] = {
                "event": "progress",
                "literal": ["s/it]", "it/s]"],
                "pattern": _BAR,
                "fields": {"step": {"type": "integer"}, "planned_steps": {"type": "integer"}},
            }
            return Induced("progress_bar", body, _BAR, None, samples[-2:], 0)
    return None
