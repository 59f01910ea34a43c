"""Render lists of the documents of a store besides receipts, a table for each kind."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from receipt_cli.render.console import Column, Page, Span, write_texts
from receipt_cli.render.fields import NONE, or_dash
from receipt_cli.render.metrics import metric_label
from receipt_cli.render.scale import count, duration, many, measure, number, percent
from receipt_cli.render.style import Role, Style

_LABELS = {
    "duration_s": "session",
    "busy_s": "busy time",
    "busy_ratio": "share busy",
    "kernel_time_s": "time in kernels",
    "launch_count": "launches",
    "kernel_count": "names of kernels",
    "count": "copies",
    "total_s": "time",
    "total_bytes": "bytes",
    "bytes_per_s": "speed",
    "step_count": "steps",
}
"""Name of a figure that is no metric → its label."""
Row = Mapping[str, Any]
CHANGES: Mapping[str | None, tuple[str, Role]] = {
    "better": ("✓ better", "good"), "worse": ("✗ worse", "bad"), "different": ("▸ differs", "plain"),
    "noise": ("within noise", "dim"), "equal": ("equal", "dim"), "not_judged": ("no error known", "dim"),
}  # fmt: skip
"""Outcome of the last score against the one before → words."""
NOUNS = {"ablation": "ablation", "evaluation": "evaluation", "gpu_profile": "GPU profile", "golden": "golden document"}
"""Kind → its name in words."""


def tally_documents(rows: Sequence[Row]) -> str:
    """Return the number of documents of each kind in words, and of those that cannot be read; empty without any."""
    counted = Counter(row["kind"] for row in rows if row["refusal"] is None)
    parts = [many(counted[kind], noun) for kind, noun in NOUNS.items() if counted[kind]]
    broken = sum(row["refusal"] is not None for row in rows)
    return ", ".join([*parts, *([f"{many(broken, 'document')} unreadable"] if broken else [])])


def render_documents(rows: Sequence[Row], kind: str, style: Style, limit: int = 0) -> str:
    """Return the first ``limit`` documents of one kind (0: all) as ``list_documents`` gives them, a line each."""
    page = Page(style)
    shown = rows[:limit] if limit else rows
    page.line(tally_documents(rows) or f"no {NOUNS[kind]}")
    columns, cells = _TABLES[kind]
    plan = [Column("document"), Column("when", drop=2), *columns, Column("run", least=12, drop=1)]
    lines = []
    for row in shown:
        if row["refusal"] is None:
            rest = [(row["run_at"] or NONE).replace("T", " ")[:16], *cells(row), run_of(row)]
        else:
            rest = [NONE, Span("unreadable", "bad"), *[NONE] * len(columns)]
        lines.append([row["sha256"][:8], *rest])
    write_texts(page, plan, lines, indent=0)
    if len(shown) < len(rows):
        page.line(Span(f"{count(len(rows) - len(shown))} more: --limit 0", "dim"))
    return page.text()


def cells_of(kind: str, rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Return the titles of the columns of a kind, and the cells of each valid document."""
    columns, cells = _TABLES[kind]
    return [column.title for column in columns], [cells(row) for row in rows]


def series_cells(kind: str, one: Row) -> list[str]:
    """Return a series of ``document_history``: its name, first and last value, and the verdict since the one before."""
    values, of = one["values"], one["of"]
    figure = of.get("figure") or ""
    shown = [measure(figure, value) if figure else number(value) for value in (values[0], values[-1])]
    error = one["stderrs"][-1]
    if kind == "evaluation":
        name = score_name(of)
    else:
        name = f"{of['label']} {figure_label(figure)}" if figure else f"{of['variant']} {figure_label(of['metric'])} (median)"
    last = shown[1] + ("" if error is None else f" ± {number(error, 2)}")
    return [name, shown[0] if len(values) > 1 else "", last, CHANGES.get(one["outcome"], ("", "plain"))[0]]


def run_of(row: Row) -> str:
    """Return what the run of a document is called: its name, else the digits of its log; ``NAME?`` if it is not in the store."""
    if row["run_id"] is None:
        return f"{row['name']}?" if row["name"] else NONE
    return row["run_name"] or f"{row['run_id'][:8]}{row['run_id'][64:]}"


def figure_label(name: str) -> str:
    """Return what a figure of a document is called: a metric by its label, others by their own."""
    return _LABELS.get(name) or metric_label(name)


def score_text(score: Row) -> str:
    """Return a score with its standard error: ``0.3240 ± 0.0049``."""
    if score["value"] is None:
        return NONE
    error = "" if score["stderr"] is None else f" ± {number(score['stderr'], 2)}"
    return f"{number(score['value'])}{error}"


def score_name(score: Row) -> str:
    """Return what a score is of: task, subset and split, metric, filter and shots."""
    parts = [
        score["task"],
        score["subset"],
        score["split"] if score["split"] != "test" else None,
        score["metric"],
        score["filter"],
    ]
    shots = score["shots"]
    return " ".join([*(part for part in parts if part), *([f"{shots}-shot"] if shots else [])])


def _ablation(row: Row) -> list[str]:
    changes = json.loads(row["changes"])
    settings = ", ".join(f"{name}={value}" for name, value in changes.items())
    return [row["study"].replace("_", " "), row["variant"], row["baseline"] or NONE, settings or NONE]


def _evaluation(row: Row) -> list[str]:
    scores = row["scores"] or []
    steps = {score["step"] for score in scores} if scores else {row["checkpoint_step"]}
    step = steps.pop() if len(steps) == 1 else None
    first = next((f"{score_name(s)} {score_text(s)}" for s in scores if s["value"] is not None), NONE)
    model = "/".join(row["title"].replace("\\", "/").split("/")[-2:])  # the end of a path tells checkpoints apart
    return [model, or_dash(step, str, NONE), count(len(scores)) if scores else NONE, first]


def _gpu_profile(row: Row) -> list[str]:
    busy, launches, spent = row["busy_ratio"], row["launch_count"], row["kernel_time_s"]
    return [
        row["label"], row["device_name"] or NONE, or_dash(busy, percent, NONE), or_dash(launches, count, NONE),
        or_dash(spent, duration, NONE),
    ]  # fmt: skip


def _golden(row: Row) -> list[str]:
    curves = row["golden_curves"] or []
    metrics = list(dict.fromkeys(curve["metric"] for curve in curves))
    return [row["title"], count(len(row["golden_runs"] or [])), count(len(curves)), ", ".join(metrics)]


_TABLES: Mapping[str, tuple[Sequence[Column], Callable[[Row], list[str]]]] = {
    "ablation": (
        (Column("study", least=8, drop=3), Column("variant", least=10), Column("against", least=8), Column("changes", least=10)),
        _ablation,
    ),
    "evaluation": (
        (Column("model", least=20), Column("step", right=True), Column("scores", right=True), Column("first score", least=16)),
        _evaluation,
    ),
    "gpu_profile": (
        (
            Column("profile", least=10), Column("device", least=8, drop=3), Column("busy", right=True),
            Column("launches", right=True), Column("in kernels", right=True),
        ),
        _gpu_profile,
    ),
    "golden": (
        (Column("system", least=10), Column("runs", right=True), Column("curves", right=True), Column("figures", least=10)),
        _golden,
    ),
}  # fmt: skip
"""Kind → columns between the time and the run, and the cells of a row."""
