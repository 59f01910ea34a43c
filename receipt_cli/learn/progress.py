"""Rules for lines that only count: announcements of epochs, and progress bars that number records without a step."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from receipt_cli.grammar.model import compile_pattern
from receipt_cli.learn.counting import DRAWN_BAR, EPOCHS, FEW, drawn_steps, shows_share
from receipt_cli.learn.emit import Cell, Induced, chunks, counter_cell, literal, rule
from receipt_cli.learn.headings import counts_bars
from receipt_cli.learn.names import LOSS, PART
from receipt_cli.learn.reading import Reading
from receipt_cli.learn.series import Group
from receipt_cli.learn.shapes import Shape
from receipt_cli.learn.tokens import BAR, NUMBER, split

MIN_BARS = 3
_BAR = (
    rf"(?<![^\s\])]){DRAWN_BAR}(?P<step>\d++)/(?P<planned_steps>\d++)"
    r" \[[\d:]++<[\d:?]++,[ \t]*+(?:\d[\d.]*+|\?)(?:s/it|it/s)\]"
)


def find_heading(readings: Iterable[Reading]) -> Induced | None:
    """Return the rule of the line that only counts epochs, where the log has one kind of it."""
    found = [r for r in readings if r.counter.mode == EPOCHS and r.counter.epoch == 0 and len(r.shape.columns) == 1]
    plain = [r for r in found if not r.roles and not r.evaluation and not r.bar]
    return heading_rule(plain[0].shape) if len(plain) == 1 else None


def heading_rule(heading: Shape) -> Induced | None:
    """Return the rule of lines that announce an epoch; of a bar that is redrawn, of the full or of the empty ones."""
    at = next(at for at, column in enumerate(heading.columns) if column.kind != BAR)
    cells = {at: counter_cell(heading.columns[at], "epoch_number", "epochs_planned")}
    for share in (r"100[ \t]?%", r"0[ \t]?%") if shows_share(heading) else ("",):
        made = rule("epoch_begins", "progress", [(heading, {**cells, **({at + 1: Cell(share, {})} if share else {})})])
        if made is not None:
            return made
    return None


def induce_herald(group: Group) -> Induced | None:
    """Return the rule of the lines that announce an evaluation, where only they tell its records from those of ``group``."""
    lines = sorted(group.main.shape.heralds) if group.main.counter.heralded else []
    if not lines:
        return None
    pattern = rf"^[ \t]*+(?:{'|'.join(literal(line) for line in lines)})[ \t]*+$"
    texts = [max(chunks(line), key=len).decode("utf-8") for line in lines]
    body: dict[str, Any] = {"event": "progress", "repeats": 1, "literal": texts, "pattern": pattern, "fields": {}}
    return Induced("evaluation_begins", body, pattern, None, lines)


def induce_progress(readings: Iterable[Reading]) -> Induced | None:
    """Return the rule of progress bars without metrics, which may number records without a step, and stand before these."""
    for reading in sorted(readings, key=lambda r: -r.shape.count):
        plain = reading.bar and not reading.roles and not reading.shape.literals[0].strip() and not reading.evaluation
        plain = plain or counts_bars(reading)
        compiled = compile_pattern(_BAR)
        found = [found.group() for core in reading.shape.samples if (found := compiled.search(core)) is not None]
        if plain and found and reading.shape.count >= MIN_BARS:
            fields = {"step": {"type": "integer"}, "planned_steps": {"type": "integer"}}
            body: dict[str, Any] = {"event": "progress", "literal": ["s/it]", "it/s]"], "pattern": _BAR, "fields": fields}
            return Induced("progress_bar", body, _BAR, None, found[-2:], 0)
    return None


def induce_steps(readings: Iterable[Reading]) -> Induced | None:
    """Return the rule of the steps of the only bar of the log that shows how training goes, and goes on to its end.

    Of the numbers in it nothing is read: a bar is drawn again with the next ones before it counts on.
    """
    bars = [r for r in readings if _shows_training(r)]
    bars.sort(key=lambda r: -r.shape.count)
    if not bars or len({r.shape.literals[0] for r in bars}) > 1 or bars[0].counter.epoch is not None:
        return None
    drawn = [(r.shape, drawn_steps(r.shape)[0]) for r in bars]
    column = drawn[0][0].columns[drawn[0][1]]
    if column.drops or column.rises < FEW:
        return None
    members = [(shape, {at: counter_cell(shape.columns[at], "step", "planned_steps", done=True)}) for shape, at in drawn]
    return rule("train_step", "step", members, redraw=True)


def _shows_training(reading: Reading) -> bool:
    """Return whether a bar shows a loss, or two named numbers that move, or is called ``Training``; no evaluation's bar does."""
    kinds = {role.kind for role in reading.roles.values()}
    drawn = len(drawn_steps(reading.shape)) == 1 and not any(name.evaluation for name in reading.names)
    said = {*reading.names[0].spelled}
    told = not kinds.isdisjoint((LOSS, PART)) or _moving(reading) > 1 or bool(said and said <= reading.vocabulary.training)
    return reading.bar and reading.shape.count >= FEW and drawn and told


def _moving(reading: Reading) -> int:
    """Return how many columns have a name before a separator, and numbers without a unit that are seldom the same far apart."""
    columns = enumerate(zip(reading.shape.columns, reading.names, strict=True))
    named = [at for at, (c, n) in columns if c.kind == NUMBER and n.sure and n.text and not (c.integer or n.unit or n.follows)]
    rows = [parts for core in reading.shape.samples if len(parts := split(core)) == 2 * len(reading.shape.columns) + 1]
    return sum(len({row[2 * at + 1] for row in rows}) * 3 > len(rows) for at in named)
