"""Render a store for the terminal: its receipts, the panels of ``store stats``, and the rows of an SQL query."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

from receipt_cli.render.console import Column, Page, Span, render_table, write_table
from receipt_cli.render.fields import UNKNOWN
from receipt_cli.render.scale import byte_size, count, percent, si
from receipt_cli.render.spark import sparkline
from receipt_cli.render.style import Role, Style

Row = Mapping[str, Any]
_DIGITS = 6
_MOST = 12
"""Periods of a group that are shown: the latest, then the undated. The trend is drawn over all dated ones."""
_COURSE = 24
_NOISE = 0.01
"""Share of a figure below which the trend draws no change."""
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
        write_table(page, *_checks(page, panel["rows"]))
    else:
        write_table(page, *_trend(page, panel))
    return page.text()


def _counts(panel: Row) -> str:
    parts = [f"{'the last ' if panel['question'] == 'checks' else ''}{count(panel['run_count'])} runs"]
    if panel["without_figure"]:
        parts.append(f"{count(panel['without_figure'])} without a figure")
    if panel["question"] != "checks" and len(panel["rows"]) > _MOST:
        parts.append(f"the latest {_MOST} of each")
    if panel["without_time"]:
        parts.append(f"{count(panel['without_time'])} without a time")
    return ", ".join(parts)


def _checks(page: Page, rows: Sequence[Row]) -> tuple[list[Column], list[list[Span]]]:
    columns = [Column("check", least=8), *(Column(t, right=True) for t in ("passed", "of known", "failed", "unknown"))]
    lines = []
    for row in rows:
        ratio = row["pass_ratio"]
        role: Role = "plain" if ratio is None else "good" if ratio == 1 else "warn"
        rate = Span(UNKNOWN if ratio is None else percent(ratio), role)
        counts = [Span(count(row[key])) for key in ("passed", "failed", "unknown")]
        lines.append([Span(page.say(row["check"]), "strong"), counts[0], rate, *counts[1:]])
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
            period = UNKNOWN if row["period"] is None else row["period"].replace("T", " ")[: _LENGTHS[panel["by"]]]
            figures = [shown(row["median"])] if single else [shown(row[key]) for key in ("median", "min", "max")]
            whom = page.say(row["name"] or row["log_sha256"][:12]) if single else count(row["run_count"])
            lines.append([*head, *map(Span, [period, whom, *figures]), Span(course if not number else "", "accent")])
    return columns, lines


def render_receipts(rows: Sequence[Mapping[str, object]], style: Style) -> str:
    """Return the runs of a store as ``list_runs`` gives them, a line each."""
    page = Page(style)
    columns = [
        Column("run"), Column("name", least=12), Column("time (UTC)", drop=2), Column("path", least=16, drop=1),
        Column("lane", least=6, drop=3), Column("grammar", least=12), Column("last step", right=True),
        Column("outcome", least=10),
    ]  # fmt: skip
    shown = [
        [
            Span(str(row["run_id"])[:12] + str(row["run_id"])[64:], "strong"),
            Span(page.say(str(row["name"] or ""))),
            Span(str(row["run_at"] or "").replace("T", " ")[:16] + ("?" if str(row["run_at_source"]).endswith("_local") else "")),
            Span(page.say(str(row["log_path"] or ""))),
            Span(page.say(str(row["lane"] or ""))),
            Span(page.say(str(row["grammar"] or ""))),
            Span(count(row["last_step"]) if isinstance(row["last_step"], int) else UNKNOWN),
            _outcome(page, row),
        ]
        for row in rows
    ]
    if shown:
        write_table(page, columns, shown, indent=0)
    page.line(Span(f"{count(len(shown))} {'receipt' if len(shown) == 1 else 'receipts'}", "dim"))
    return page.text()


def _outcome(page: Page, row: Mapping[str, object]) -> Span:
    word = str(row["outcome"] or "unreadable")
    roles: Mapping[str, Role] = {"failed": "bad", "finished": "good", "running": "accent", "unknown": "magenta"}
    reason = row["failure"] if word in ("failed", "stopped") else None
    return Span(page.say(f"{word}: {reason}" if reason else word), roles.get(word, "warn"))


def render_answer(columns: Sequence[str], rows: Sequence[Mapping[str, Any]], style: Style) -> str:
    """Return ``rows`` of JSON values as a table of ``columns``; floats with six significant digits. Empty without rows."""
    numbers = {name for name in columns if all(_is_number(row[name]) for row in rows)}
    return render_table([{name: _text(row[name]) for name in columns} for row in rows], columns, style, numbers=numbers)


def render_meanings(meanings: Mapping[str, str], style: Style) -> str:
    """Return each name with what it means beside it, in as many lines as that needs."""
    page = Page(style)
    width = max(map(len, meanings), default=0) + 2
    for name, meaning in meanings.items():
        page.prose(page.say(meaning), bullet=name.ljust(width))
    return page.text()


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.{_DIGITS}g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
