"""Render what a run needed to reach a target, and whether a run continues another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from receipt_cli.render.comparison.words import field_name, field_value
from receipt_cli.render.fields import UNKNOWN
from receipt_cli.render.receipt.metrics import metric_label
from receipt_cli.render.scale import count, duration, significant
from receipt_cli.render.terminal.page import Page, Span
from receipt_cli.render.terminal.style import Role, Style
from receipt_cli.render.terminal.table import Column, write_table

TARGET_HEAD = ("run", "reached", "step", "held from", "tokens", "samples", "time", "best")
_ANSWERS: dict[str, tuple[str, Role]] = {
    "yes": ("✓ continues", "good"),
    "no": ("✗ does not continue", "bad"),
    "unknown": ("! not shown to continue", "warn"),
}
_REACHED = {True: "yes", False: "no", None: UNKNOWN}


def target_title(target: Mapping[str, Any]) -> str:
    """Return a target as a heading: ``val loss 2.5``."""
    return f"{metric_label(target['metric'])} {target['value']:g}"


def target_rows(target: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield the cells of each run under ``TARGET_HEAD``."""
    for run in target["runs"]:
        counts = (UNKNOWN if run[key] is None else count(run[key]) for key in ("step", "held_step", "tokens", "samples"))
        time = UNKNOWN if run["time_s"] is None else duration(run["time_s"])
        best = UNKNOWN if run["best"] is None else significant(run["best"], 4)
        yield [run["run"], _REACHED[run["reached"]], *counts, time, best]


def write_targets(page: Page, targets: Sequence[Mapping[str, Any]]) -> None:
    """Add a table for each target."""
    for target in targets:
        page.heading(page.say(target_title(target)))
        columns = [Column("run", least=8), Column("reached"), *(Column(name, right=True) for name in TARGET_HEAD[2:])]
        write_table(page, columns, [[Span(page.say(cell)) for cell in row] for row in target_rows(target)])


def render_resumption(document: Mapping[str, Any], style: Style) -> str:
    """Return the answer (``resumption/1.0``), each line ended by a newline."""
    page = Page(style)
    for side in ("a", "b"):
        page.line(Span(f"{side}  ", "dim"), Span(page.say(document[side]), "strong"))
    words, role = _ANSWERS[document["continues"]]
    page.gap()
    page.line(Span(words, role))
    for name, facts in (("steps", _steps(document)), ("loss", _loss(document["loss"])), ("joined", _joined(document["joined"]))):
        page.flow(name, [[Span(page.say(fact))] for fact in facts], label_width=8)
    for field in document["differences"]:
        values = f"{field_value(field['a'])} → {field_value(field['b'])}"
        page.prose(page.say(f"{field_name(field['pointer'])}: {values}"), "warn", indent=2, bullet="! ")
    return page.text()


def _steps(document: Mapping[str, Any]) -> list[str]:
    steps = document["steps"]
    if steps["in_reach"] is None:
        return ["unknown"]
    facts = [f"a ends at {count(steps['a_last'])}", f"b begins at {count(steps['b_first'])}"]
    if steps["saved"] is not None:
        facts.append(f"last checkpoint of a {count(steps['saved'])}")
    facts += [f"{count(steps[key])} {key}" for key in ("repeated", "missing") if steps[key]]
    return [*facts, *([f"pause {duration(document['pause_s'])}"] if document["pause_s"] is not None else [])]


def _loss(loss: Mapping[str, Any] | None) -> list[str]:
    if loss is None:
        return ["too few records on one side"]
    facts = [f"{significant(loss['before'], 4)} before, {significant(loss['after'], 4)} behind"]
    if loss["deviations"] is not None:
        facts.append(f"{significant(loss['deviations'], 2)} standard deviations apart")
    if loss["common_count"]:
        facts.append(f"{count(loss['equal_count'])} of {count(loss['common_count'])} common records are equal")
    return facts


def _joined(joined: Mapping[str, Any]) -> list[str]:
    facts = [f"{count(joined['record_count'])} records, {count(joined['superseded_count'])} of a superseded"]
    if joined["loss_first"] is not None:
        facts.append(f"loss {significant(joined['loss_first'], 4)} → {significant(joined['loss_last'], 4)}")
    return [*facts, *([f"wall {duration(joined['wall_time_s'])}"] if joined["wall_time_s"] is not None else [])]
