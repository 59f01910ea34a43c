"""Render how throughput grows with devices: a table, and the curve beside the ideal one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from receipt_cli.render.comparison.words import reason_text
from receipt_cli.render.console import Column, Page, Span, write_table
from receipt_cli.render.plot import Curve, OverlaidRun, render_overlay
from receipt_cli.render.scale import count, measure, percent
from receipt_cli.render.style import Style

_KINDS = {"strong": "strong scaling: the same global batch", "weak": "weak scaling: the same batch on each device", "unknown": ""}
_HEIGHT = 10


def render_scaling(document: Mapping[str, Any], style: Style) -> str:
    """Return the answer (``scaling/1.0``), each line ended by a newline."""
    page, points = Page(style), document["points"]
    comparable = document["verdict"] == "comparable"
    page.line(Span("✓ comparable", "good") if comparable else Span("? not comparable", "warn"))
    page.prose(page.say(reason_text(document["because"])), indent=2)
    if _KINDS[document["kind"]]:
        page.prose(_KINDS[document["kind"]], "dim", indent=2)
    if points:
        metric = document["metric"]
        page.gap()
        columns = [Column("devices", right=True), Column("throughput", right=True), Column("per device", right=True)]
        columns += [Column("speedup", right=True), Column("efficiency", right=True), Column("runs", least=8, drop=1)]
        rows = [
            [
                Span(count(point["devices"])),
                Span(measure(metric, point["rate"])),
                Span(measure(metric, point["rate_per_device"])),
                Span(f"{point['speedup']:.3g} ×"),
                Span(percent(point["efficiency"]), "strong"),
                Span(
                    page.say(
                        ", ".join(point["runs"][:2]) + (f" and {len(point['runs']) - 2} more" if len(point["runs"]) > 2 else "")
                    )
                ),
            ]
            for point in points
        ]
        write_table(page, columns, rows)
        page.paste(_plot(metric, points, style))
    if document["notes"]:
        page.gap()
    for note in document["notes"]:
        page.prose(page.say(reason_text(note)), "dim", bullet="· ")
    return page.text()


def _plot(metric: str, points: list[Mapping[str, Any]], style: Style) -> str:
    """Return the throughput over the devices, and that of ideal scaling."""
    devices = [point["devices"] for point in points]
    lines = {"measured": [point["rate"] for point in points], "ideal": [points[0]["rate_per_device"] * n for n in devices]}
    runs = [OverlaidRun(name, {metric: Curve(metric, devices, values)}, {}) for name, values in lines.items()]
    return render_overlay(runs, [metric], _HEIGHT, style, "devices")
