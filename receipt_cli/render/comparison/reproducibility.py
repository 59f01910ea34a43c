"""A reproducibility document → what a person reads: the answer first, then what each part of it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from receipt_cli.render.comparison.words import field_name, field_value, reason_text
from receipt_cli.render.receipt.metrics import metric_label
from receipt_cli.render.scale import count
from receipt_cli.render.terminal.page import Page, Span
from receipt_cli.render.terminal.style import Role, Style
from receipt_cli.render.terminal.table import Column, align

_ANSWERS: dict[str, tuple[str, Role]] = {
    "yes": ("✓ reproduced", "good"),
    "no": ("✗ not reproduced", "bad"),
    "unknown": ("! not shown to be reproduced", "warn"),
}
_SAME: dict[bool | None, tuple[str, Role]] = {True: ("same", "good"), False: ("differs", "bad"), None: ("unknown", "warn")}
_PARTS = {"configuration": "configuration", "seeds": "seeds", "resume": "resume point"}
_MAX_FIELDS = 20


def render_reproducibility(document: Mapping[str, Any], style: Style) -> str:
    """Return the answer (``reproducibility/1.0``), each line ended by a newline."""
    page = Page(style)
    for side in ("a", "b"):
        page.line(Span(f"{side}  ", "dim"), Span(page.say(document[side]), "strong"))
    words, role = _ANSWERS[document["reproduced"]]
    page.gap()
    page.line(Span(words, role))
    rows = [_row(page, label, document[name]) for name, label in _PARTS.items()]
    rows += [_row(page, metric_label(curve["metric"]), curve) for curve in document["curves"]]
    page.gap()
    page.rows(align([Column("part", least=13), Column(""), Column("because", least=20)], rows, page.style.width - 2))
    _fields(page, document["configuration"])
    if document["notes"]:
        page.gap()
    for note in document["notes"]:
        page.prose(page.say(reason_text(note)), "dim", bullet="· ")
    return page.text()


def _row(page: Page, label: str, part: Mapping[str, Any]) -> list[Span]:
    words, role = _SAME[part["same"]]
    return [Span(page.say(label)), Span(words, role), Span(page.say(reason_text(part["because"])))]


def _fields(page: Page, configuration: Mapping[str, Any]) -> None:
    fields = [*configuration["differences"], *configuration["unknown"]]
    if not fields:
        return
    page.heading("fields")
    rows = [
        [Span(page.say(field_name(f["pointer"]))), *(Span(page.say(field_value(f[side]))) for side in ("a", "b"))]
        for f in fields[:_MAX_FIELDS]
    ]
    page.rows(align([Column("field", least=12), Column("a", least=8), Column("b", least=8)], rows, page.style.width - 2))
    if len(fields) > _MAX_FIELDS:
        page.line(Span(f"… {count(len(fields) - _MAX_FIELDS)} more", "dim"), indent=2)
