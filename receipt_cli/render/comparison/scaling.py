"""Render how throughput grows with devices: a table, and the curve beside the ideal one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from receipt_cli.render.comparison.words import reason_text
from receipt_cli.render.console import Column, Page, Span, figure_columns, write_table
from receipt_cli.render.plot import Curve, OverlaidRun, render_overlay
from receipt_cli.render.scale import count, measure, percent, some
from receipt_cli.render.style import Style

_KINDS = {"strong": "strong scaling: the same global batch", "weak": "weak scaling: the same batch on each device", "unknown": ""}
_HEIGHT = 10


def render_scaling(document: Mapping[str, Any], style: Style) -> str:
    """Return the answer (``scaling/1.0``), each line ended by a newline."""
    page, points = Page(style), document["points"]
    comparable = document["verdict"] == "comparable"
    page.line(Span("✓ comparable", "good") if comparable else Span("? not comparable", "warn"))
    page.prose(reason_text(document["because"]), indent=2)
    if _KINDS[document["kind"]]:
        page.prose(_KINDS[document["kind"]], "dim", indent=2)
    if points:
        metric = document["metric"]
        page.gap()
        _, *columns = figure_columns("", "devices", "throughput", "per device", "speedup", "efficiency")
        rows = [
            [
                count(point["devices"]),
                measure(metric, point["rate"]),
                measure(metric, point["rate_per_device"]),
                f"{point['speedup']:.3g} ×",
                Span(percent(point["efficiency"]), "strong"),
                some(point["runs"], 2),
            ]
            for point in points
        ]
        write_table(page, [*columns, Column("runs", least=8, drop=1)], rows)
        page.paste(_plot(metric, points, style))
    page.gap()
    for note in document["notes"]:
        page.prose(reason_text(note), "dim", bullet="· ")
    return page.text()


def _plot(metric: str, points: list[Mapping[str, Any]], style: Style) -> str:
    devices = [point["devices"] for point in points]
    lines = {"measured": [point["rate"] for point in points], "ideal": [points[0]["rate_per_device"] * n for n in devices]}
    runs = [OverlaidRun(name, {metric: Curve(metric, devices, values)}, {}) for name, values in lines.items()]
    return render_overlay(runs, [metric], _HEIGHT, style, "devices")
