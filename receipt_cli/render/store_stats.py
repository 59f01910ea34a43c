"""The questions of a panel, answered for people: one table each, a group's course drawn beside it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

from receipt_cli.render.scale import byte_size, count, percent, si
from receipt_cli.render.terminal.page import Page, Span
from receipt_cli.render.terminal.spark import sparkline
from receipt_cli.render.terminal.style import Role, Style
from receipt_cli.render.terminal.table import Column, align

Row = Mapping[str, Any]
_NOTHING = "–"
_MOST = 12
"""Periods of a group that are shown: the latest, and behind them what has no time. A course is drawn of all with a time."""
_COURSE = 24
_NOISE = 0.01
"""Share of a figure below which a course draws no change."""
_TITLES = {
    "tokens": "Tokens per second over time, by preset",
    "goodput": "Goodput over time, by lane",
    "memory": "Memory over time, by preset",
    "checks": "Checks",
}
_GROUPS = {"tokens": ("preset", "source"), "goodput": ("lane",), "memory": ("preset", "metric")}
_SHOWN: Mapping[str, Callable[[float], str]] = {"tokens": si, "goodput": percent, "memory": byte_size}
_LENGTHS = {"run": 19, "day": 10, "week": 10, "month": 7}


def render_panel(panel: Row, style: Style) -> str:
    """Return one answer as ``receipt store stats --json`` has it: ``question``, ``by``, counts and ``rows``."""
    page = Page(style)
    page.heading(_TITLES[panel["question"]], Span(_counts(panel), "dim"))
    if not panel["rows"]:
        page.line("no run has a figure", indent=2)
    elif panel["question"] == "checks":
        page.rows(align(*_checks(page, panel["rows"]), style.width - 2))
    else:
        page.rows(align(*_trend(page, panel), style.width - 2))
    return page.text()


def _counts(panel: Row) -> str:
    told = [f"{'the last ' if panel['question'] == 'checks' else ''}{count(panel['run_count'])} runs"]
    if panel["without_figure"]:
        told.append(f"{count(panel['without_figure'])} without a figure")
    if panel["question"] != "checks" and len(panel["rows"]) > _MOST:
        told.append(f"the latest {_MOST} of each")
    if panel["without_time"]:
        told.append(f"{count(panel['without_time'])} without a time")
    return ", ".join(told)


def _checks(page: Page, rows: Sequence[Row]) -> tuple[list[Column], list[list[Span]]]:
    columns = [Column("check", least=8), *(Column(t, right=True) for t in ("passed", "of known", "failed", "unknown"))]
    lines = []
    for row in rows:
        ratio = row["pass_ratio"]
        role: Role = "plain" if ratio is None else "good" if ratio == 1 else "warn"
        rate = Span(_NOTHING if ratio is None else percent(ratio), role)
        told = [Span(count(row[key])) for key in ("passed", "failed", "unknown")]
        lines.append([Span(page.say(row["check"]), "strong"), told[0], rate, *told[1:]])
    return columns, lines


def _trend(page: Page, panel: Row) -> tuple[list[Column], list[list[Span]]]:
    groups, shown = _GROUPS[panel["question"]], _SHOWN[panel["question"]]
    single = panel["by"] == "run"
    columns = [*(Column(name, least=8) for name in groups), Column("run at (UTC)" if single else panel["by"])]
    columns += [Column("run", least=8)] if single else [Column("runs", right=True)]
    columns += [Column("median" if not single else panel["question"], right=True)]
    columns += [] if single else [Column("min", right=True, drop=2), Column("max", right=True, drop=2)]
    columns += [Column("course", drop=3)]
    lines: list[list[Span]] = []
    for group, members in groupby(panel["rows"], lambda row: [row[name] for name in groups]):
        rows = list(members)
        dated = [row for row in rows if row["period"] is not None]
        course = sparkline([row["median"] for row in dated], _COURSE, least_span=_NOISE) if len(dated) > 2 else ""
        undated = [row for row in rows if row["period"] is None]
        latest = [*dated[-_MOST:], *undated[: max(1, _MOST - len(dated))]]
        for number, row in enumerate(latest):
            texts = ["" if number else page.say(name or "") for name in group]
            head = [Span(texts[0], "strong"), *map(Span, texts[1:])]
            period = _NOTHING if row["period"] is None else row["period"].replace("T", " ")[: _LENGTHS[panel["by"]]]
            figures = [shown(row["median"])] if single else [shown(row[key]) for key in ("median", "min", "max")]
            whom = page.say(row["name"] or row["log_sha256"][:12]) if single else count(row["run_count"])
            lines.append([*head, *map(Span, [period, whom, *figures]), Span(course if not number else "", "accent")])
    return columns, lines
