"""Render a store for the terminal: its receipts and other documents, ``store stats``, and the rows of an SQL query."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import groupby
from typing import Any

from receipt_cli.analysis.checks import ENDED_BADLY, Outcome
from receipt_cli.render.card import REASONS
from receipt_cli.render.console import Column, Page, Span, render_table, write_table, write_texts
from receipt_cli.render.fields import NONE, UNKNOWN, or_dash
from receipt_cli.render.metrics import metric_label, sparkline
from receipt_cli.render.scale import byte_size, count, duration, many, measure, number, percent, si, significant
from receipt_cli.render.style import Role, Style

Row = Mapping[str, Any]
OUTCOMES: tuple[Outcome, ...] = ("finished", "failed", "stopped", "cut off", "running", "unknown")
_CAUSE = 48
"""Least characters of a cause that is cut."""
_ROLES: Mapping[str, Role] = {"failed": "bad", "finished": "good", "running": "accent", "unknown": "magenta"}
_SAYS_LITTLE = ("traceback", "import_error", "child_failed", "unknown", "no_grammar_match")
"""Failure reasons that say less than the type of the exception."""
_DIGITS = 6
_MOST = 12
"""Most periods shown of a group: the latest, then the undated. The trend is drawn over all dated ones."""
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
    """Return one answer of ``receipt store stats``: ``panel`` has ``question``, ``by``, counts and ``rows``."""
    page = Page(style)
    page.heading(_TITLES[panel["question"]], Span(_counts(panel), "dim"))
    if not panel["rows"]:
        page.line("no run has a figure", indent=2)
    elif panel["question"] == "checks":
        write_table(page, *_checks(panel["rows"]))
    else:
        write_table(page, *_trend(panel))
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


def _checks(rows: Sequence[Row]) -> tuple[list[Column], list[list[str]]]:
    columns = [Column("check", least=8), *(Column(t, right=True) for t in ("passed", "of known", "failed", "unknown"))]
    lines = []
    for row in rows:
        ratio = row["pass_ratio"]
        role: Role = "plain" if ratio is None else "good" if ratio == 1 else "warn"
        passed, *rest = (count(row[key]) for key in ("passed", "failed", "unknown"))
        lines.append([Span(row["check"], "strong"), passed, Span(or_dash(ratio, percent), role), *rest])
    return columns, lines


def _trend(panel: Row) -> tuple[list[Column], list[list[str]]]:
    groups, shown = _GROUPS[panel["question"]], _SHOWN[panel["question"]]
    single = panel["by"] == "run"
    columns = [*(Column(name, least=8) for name in groups), Column("run at (UTC)" if single else panel["by"])]
    columns += [Column("run", least=8)] if single else [Column("runs", right=True)]
    columns += [Column("median" if not single else panel["question"], right=True)]
    columns += [] if single else [Column("min", right=True, drop=2), Column("max", right=True, drop=2)]
    columns += [Column("course", drop=3)]
    lines: list[list[str]] = []
    for group, members in groupby(panel["rows"], lambda row: [row[name] for name in groups]):
        rows = list(members)
        dated = [row for row in rows if row["period"] is not None]
        course = sparkline([row["median"] for row in dated], _COURSE, least_span=_NOISE) if len(dated) > 2 else ""
        undated = [row for row in rows if row["period"] is None]
        latest = [*dated[-_MOST:], *undated[: max(1, _MOST - len(dated))]]
        for index, row in enumerate(latest):
            first, *texts = ("" if index else name or UNKNOWN for name in group)
            period = UNKNOWN if row["period"] is None else row["period"].replace("T", " ")[: _LENGTHS[panel["by"]]]
            figures = [shown(row["median"])] if single else [shown(row[key]) for key in ("median", "min", "max")]
            whom = (row["name"] or row["log_sha256"][:12]) if single else count(row["run_count"])
            lines.append([Span(first, "strong"), *texts, period, whom, *figures, Span(course if not index else "", "accent")])
    return columns, lines


def tally(rows: Sequence[Row], chosen: Collection[str] = OUTCOMES) -> str:
    """Return the number of runs with each ``chosen`` outcome in words; excluded runs are counted apart."""
    counted = Counter(row["outcome"] or "unreadable" for row in rows if not row.get("excluded"))
    each = [f"{count(counted[word])} {word}" for word in (*OUTCOMES, "unreadable") if counted[word] and word in chosen]
    some = "" if set(counted) <= set(chosen) else f"{count(sum(counted[word] for word in chosen))} of "
    left_out = sum(bool(row.get("excluded")) for row in rows)
    runs = many(counted.total(), "run")
    return f"{some}{runs}{': ' if each else ''}{', '.join(each)}{f'; {count(left_out)} excluded' if left_out else ''}"


def cause(row: Row) -> str:
    """Return the cause of a bad end in words, else nothing. ``row`` is one of ``list_runs`` or of ``failure_groups``."""
    word, reason, kind = row["outcome"], row["failure"], (row["exception_type"] or "").rpartition(".")[2]
    if word == "cut off":
        return "log ends early, no known error"
    if word not in ("failed", "stopped"):
        return ""
    if reason is None:
        ended = f"exit code {row['exit_code']}" if row["exit_code"] else "exit code is not zero"
        return REASONS["nan_loss"] if row["finite_losses"] is False else ended
    if reason in _SAYS_LITTLE:
        message = row["message"] if reason in ("unknown", "no_grammar_match") else None
        return str(kind or message or REASONS[reason])
    return REASONS.get(reason) or str(reason).replace("_", " ")


def render_runs(rows: Sequence[Row], style: Style, limit: int = 0) -> str:
    """Return the first ``limit`` runs of a store (0: all) as ``list_runs`` gives them, a line each."""
    page = Page(style)
    shown = rows[:limit] if limit else rows
    page.line(tally(rows, (*OUTCOMES, "unreadable")))
    columns = [
        Column("run"), Column("when"), Column("outcome"), Column("steps", right=True), Column("loss", right=True, drop=1),
        Column("time", right=True, drop=2), Column("name", least=12), Column("cause", least=12),
    ]  # fmt: skip
    lines = []
    for row in shown:
        word = row["outcome"] or "unreadable"
        at, of = row["last_step"], row["steps_planned"]
        done = NONE if at is None else f"{at}/{of}" if of is not None and of >= at else str(at)
        why = "" if word == "cut off" else cause(row)
        lines.append([
            Span(short_id(row["run_id"]), "strong"), (row["run_at"] or NONE).replace("T", " ")[:16],
            Span(word, _ROLES.get(word, "warn")), done,
            or_dash(row["loss_last"], number, NONE), or_dash(row["wall_time_s"], brief, NONE), row["name"] or NONE,
            "excluded" if row["excluded"] else why or NONE,
        ])  # fmt: skip
    write_table(page, columns, lines, indent=0)
    if len(shown) < len(rows):
        page.line(Span(f"{count(len(rows) - len(shown))} more: --limit 0; no time: last", "dim"))
    return page.text()


def render_failures(rows: Sequence[Row], groups: Sequence[Row], style: Style, limit: int = 0, *, full: bool = False) -> str:
    """Return the first ``limit`` (0: all) of the ``failure_groups`` of ``rows``; ``full``: with their messages, uncut."""
    page = Page(style)
    page.line(tally(rows, ENDED_BADLY))
    shown = groups[:limit] if limit else groups
    columns = [
        Column("runs", right=True), Column("outcome"), Column("cause", least=_CAUSE), Column("last seen", drop=2),
        Column("not saved", drop=3), Column("example", least=12, drop=1),
    ]  # fmt: skip
    lines = []
    for group in shown:
        unsaved = group["unsaved_step_count"]
        lines.append([
            Span(count(group["run_count"]), "strong"),
            Span(group["outcome"], _ROLES.get(group["outcome"], "warn")),
            " ".join(filter(None, (cause(group), group["place"]))),
            (group["last_at"] or NONE)[:10],
            many(unsaved, "step") if unsaved else NONE,
            group["example"] or short_id(group["run_id"]),
        ])  # fmt: skip
    if not full:
        write_table(page, columns, lines, indent=0)
    for line, group in zip(lines, shown, strict=True) if full else ():
        page.gap()
        page.flow("", [line[:1], *(span for span in line[1:] if span != NONE)], indent=0)
        page.prose(group["message"] or "", "dim", indent=4)
    if len(shown) < len(groups):
        page.line(Span(f"{count(len(groups) - len(shown))} more: --limit 0", "dim"))
    if groups and not full:
        page.line(Span("messages, uncut: --full", "dim"))
    return page.text()


def short_id(run_id: str) -> str:
    """Return a run's id for people: eight digits, and the number of the run if later runs follow it in its log."""
    return run_id[:8] + run_id[64:]


def brief(seconds: float) -> str:
    """Return a wall time in one unit: ``45 s``, ``49 min``, ``3.4 h``."""
    if seconds < 99.5:
        return f"{significant(seconds, 2)} s"
    return f"{seconds / 60:.0f} min" if seconds < 5970 else f"{significant(seconds / 3600, 3)} h"


def render_answer(columns: Sequence[str], rows: Sequence[Mapping[str, Any]], style: Style) -> str:
    """Return ``rows`` of JSON values as a table of ``columns``; floats with six significant digits. Empty without rows."""
    numbers = {name for name in columns if all(_is_number(row[name]) for row in rows)}
    return render_table([{name: _text(row[name]) for name in columns} for row in rows], columns, style, numbers=numbers)


def render_meanings(meanings: Mapping[str, str], style: Style, hint: str = "") -> str:
    """Return each name with its meaning beside it, and ``hint`` as the last line."""
    page = Page(style)
    width = max(map(len, meanings), default=0) + 2
    for name, meaning in meanings.items():
        page.prose(meaning, bullet=name.ljust(width))
    if hint:
        page.line(Span(hint, "dim"))
    return page.text()


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.{_DIGITS}g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


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
    return row["run_name"] or short_id(row["run_id"])


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
