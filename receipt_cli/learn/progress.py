"""Rules for lines that only count: announcements of epochs, and progress bars that number records without a step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from receipt_cli.grammar.model import compile_pattern
from receipt_cli.learn.counters import Group
from receipt_cli.learn.counting import DRAWN_BAR, EPOCHS, FEW, drawn_steps, shows_share
from receipt_cli.learn.names import LOSS, PART
from receipt_cli.learn.patterns import REACH, chunks, counter_value, literal
from receipt_cli.learn.proofs import Induced
from receipt_cli.learn.readings import Reading
from receipt_cli.learn.rules import MIN_GATE
from receipt_cli.learn.shapes import Shape
from receipt_cli.learn.tokens import NUMBER, split


def induce_heading(group: Group) -> Induced | None:
    """Return the rule of the line that announces an epoch, where the records of ``group`` need it."""
    heading = group.main.counter.heading
    return heading_rule(heading) if heading is not None else None


def find_heading(readings: Iterable[Reading]) -> Induced | None:
    """Return the rule of the line that only counts epochs, where the log has one kind of it."""
    found = [r for r in readings if r.counter.mode == EPOCHS and r.counter.epoch == 0 and len(r.shape.columns) == 1]
    plain = [r for r in found if not r.roles and not r.evaluation and not r.bar]
    return heading_rule(plain[0].shape) if len(plain) == 1 else None


def heading_rule(heading: Shape) -> Induced | None:
    """Return the rule of lines that announce an epoch."""
    value, fields = counter_value(heading.columns[0], "epoch_number", "epochs_planned")
    gates = [g for g in chunks(heading.literals[0]) if len(g) >= MIN_GATE]
    if not gates:
        return None
    drawn = shows_share(heading)
    shown = (r"[ \t]*+100[ \t]?%", r"[ \t]*+0[ \t]?%") if drawn else ("",)  # of a bar that is redrawn, a full or an empty one
    for ends in shown if len(heading.columns) > 1 else (r"[ \t]*+$",):
        pattern = rf"^{literal(heading.literals[0])}[ \t]*+{value}{literal(heading.literals[1])}{ends}"
        compiled = compile_pattern(pattern)
        samples = [found.group() for core in heading.samples if (found := compiled.search(core)) is not None][:2]
        if samples:
            break
    if not samples:
        return None
    gate = max(gates, key=len).decode("utf-8")
    body: dict[str, Any] = {"event": "progress", "literal": gate, "pattern": pattern, "fields": fields}
    return Induced("epoch_begins", body, pattern, None, [core.strip() for core in samples], heading.count)


def induce_herald(group: Group) -> Induced | None:
    """Return the rule of the lines that announce an evaluation, where only they tell its records from those of ``group``."""
    lines = sorted(group.main.shape.heralds) if group.main.counter.heralded else []
    gates = [max(chunks(line), key=len) for line in lines]
    if not lines or any(len(gate) < MIN_GATE for gate in gates):
        return None
    pattern = rf"^[ \t]*+(?:{'|'.join(literal(line) for line in lines)})[ \t]*+$"
    texts = [gate.decode("utf-8") for gate in gates]
    body: dict[str, Any] = {"event": "progress", "repeats": 1, "literal": texts, "pattern": pattern, "fields": {}}
    return Induced("evaluation_begins", body, pattern, None, lines)


MIN_BARS = 3
_DRAWN = (
    rf"(?<![^\s\])]){DRAWN_BAR}(?P<step>\d++)/(?P<planned_steps>\d++)"
    r" \[[\d:]++<[\d:?]++,[ \t]*+(?:\d[\d.]*+|\?)(?:s/it|it/s)"
)
_BAR = _DRAWN + r"\]"


def induce_progress(readings: Iterable[Reading]) -> Induced | None:
    """Return the rule of a progress bar without metrics, which may number records without a step."""
    for reading in sorted(readings, key=lambda r: -r.shape.count):
        if not reading.bar or reading.roles or reading.shape.literals[0].strip() or reading.evaluation:
            continue
        samples = _found(_BAR, reading)
        if samples and reading.shape.count >= MIN_BARS:
            fields = {"step": {"type": "integer"}, "planned_steps": {"type": "integer"}}
            body: dict[str, Any] = {"event": "progress", "literal": ["s/it]", "it/s]"], "pattern": _BAR, "fields": fields}
            return Induced("progress_bar", body, _BAR, None, samples[-2:], 0)
    return None


def induce_steps(readings: Iterable[Reading]) -> Induced | None:
    """Return the rule of the steps of the only bar of the log that shows how training goes, and goes on to its end.

    Of the numbers in it nothing is read: a bar is drawn again with the next ones before it counts on.
    """
    bars = [r for r in readings if _shows_training(r)]
    if not bars or len({r.shape.literals[0] for r in bars}) > 1:
        return None
    reading = max(bars, key=lambda r: r.shape.count)
    if reading.counter.epoch is not None:
        return None
    drawn = [(at, reading.shape.columns[at]) for at in drawn_steps(reading.shape)]
    shown = [chunk for at in _moving(reading) for chunk in chunks(reading.shape.literals[at])[-1:] if len(chunk) >= MIN_GATE]
    if len(drawn) != 1 or drawn[0][1].drops or drawn[0][1].rises < FEW or not shown:
        return None
    gate = max(shown, key=len)
    pattern = rf"^(?=[^\n]*?{literal(gate)})[^\n]{{0,{REACH}}}?{_DRAWN}[^\n]*+"
    fields: dict[str, Any] = {"step": {"type": "integer", "at_least": 1}, "planned_steps": {"type": "integer"}}
    text = gate.decode("utf-8")
    body = {"event": "step", "redraw": True, "literal": text, "pattern": pattern, "fields": fields}
    done = [core for core in _found(pattern, reading) if b" 0/" not in core]
    return Induced("train_step", body, pattern, None, done[-2:], reading.shape.count) if done else None


def _shows_training(reading: Reading) -> bool:
    """True for a bar with two named numbers that move, or a loss, and no word of an evaluation."""
    kinds = {role.kind for role in reading.roles.values()}
    often = reading.shape.count >= FEW and bool(drawn_steps(reading.shape)) and not any(n.evaluation for n in reading.names)
    return reading.bar and often and (not kinds.isdisjoint((LOSS, PART)) or len(_moving(reading)) > 1)


def _moving(reading: Reading) -> list[int]:
    """Return the columns with a name before a separator whose numbers are seldom the same far apart."""
    columns = enumerate(zip(reading.shape.columns, reading.names, strict=True))
    named = [at for at, (c, n) in columns if c.kind == NUMBER and n.sure and n.text and not c.integer]
    rows = [parts for core in reading.shape.samples if len(parts := split(core)) == 2 * len(reading.shape.columns) + 1]
    return [at for at in named if len({row[2 * at + 1] for row in rows}) * 3 > len(rows)]


def _found(pattern: str, reading: Reading) -> list[bytes]:
    compiled = compile_pattern(pattern)
    return [found.group() for core in reading.shape.samples if (found := compiled.search(core)) is not None]
