"""Answers, panels and views of a store as JSON, CSV and Parquet. The same store gives the same bytes."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, get_args

from receipt_cli import __version__
from receipt_cli.analysis.checks import CORE
from receipt_cli.errors import UsageError
from receipt_cli.io.atomic import make_folder
from receipt_cli.io.csv import safe_cell
from receipt_cli.io.duckdb import Answer, Database
from receipt_cli.store.views import VIEWS, View

SUFFIX = ".parquet"


def plain(value: Any) -> Any:
    """Return a DuckDB value as a JSON value.

    NaN and infinities become null, times RFC 3339 in UTC, intervals seconds, bytes hexadecimal digits.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, datetime):
        return f"{value.isoformat()}Z"
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [plain(item) for item in value]
    return str(value)


def names(answer: Answer) -> list[str]:
    """Return unique column names: a repeated name gets a number."""
    taken: list[str] = []
    for name in answer.columns:
        number, unique = 2, name
        while unique in taken:
            number, unique = number + 1, f"{name}_{number}"
        taken.append(unique)
    return taken


def records(answer: Answer) -> list[dict[str, Any]]:
    """Return the rows as JSON objects."""
    keys = names(answer)
    return [dict(zip(keys, map(plain, row), strict=True)) for row in answer.rows]


def csv_text(answer: Answer) -> str:
    """Return the answer as CSV: a line of names first, null as empty, lists and structures as JSON, lines ended by ``\\n``.

    A text that begins like a formula gets an apostrophe in front; in JSON it is unchanged.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(safe_cell, names(answer)))
    writer.writerows([_cell(plain(value)) for value in row] for row in answer.rows)
    return out.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, bool | dict | list):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return safe_cell(value)


def view_columns(name: str | None = None) -> Answer | None:
    """Return every column of every view or of the view ``name``, with its type and meaning; None if there is no such view."""
    views = [view for view in VIEWS if name in (None, view.name)]
    rows = [(view.name, column.name, column.type, column.meaning) for view in views for column in view.columns]
    return Answer(("view", "column", "type", "meaning"), rows) if views else None


def export(database: Database, output: Path, view: str | None = None) -> list[tuple[Path, int]]:
    """Write one view to a file, or all views to the folder ``output``, one file each; return paths and row counts.

    ``output`` is a file if it ends in ``.parquet``; its default view is ``runs``. Each file replaces an older one atomically.
    Text is dictionary-encoded, pages are compressed with zstd, and the footer holds the columns' meanings. Raises
    ``UsageError`` for an unknown view, and ``OutputError``.
    """
    if output.suffix == SUFFIX:
        return [_write(database, _view(view or "runs"), output)]
    chosen = VIEWS if view is None else (_view(view),)
    make_folder(output)
    return [_write(database, each, output / f"{each.name}{SUFFIX}") for each in chosen]


def _view(name: str) -> View:
    found = next((view for view in VIEWS if view.name == name), None)
    if found is None:
        raise UsageError(f"there is no view {name!r}", why=f"the views are {', '.join(view.name for view in VIEWS)}")
    return found


def _write(database: Database, view: View, path: Path) -> tuple[Path, int]:
    meanings = json.dumps({column.name: column.meaning for column in view.columns}, ensure_ascii=False)
    footer = {"receipt_view": view.name, "receipt_columns": meanings, "receipt_version": __version__}
    database.write_parquet(f"SELECT * FROM {view.name} ORDER BY ALL", path, footer)
    [[count]] = database.run(f"SELECT count(*) FROM {view.name}")
    return path, count


Question = Literal["tokens", "goodput", "memory", "checks"]
QUESTIONS: tuple[Question, ...] = get_args(Question)
Period = Literal["run", "day", "week", "month"]
LAST = 100
"""Default number of runs for the pass rates of checks."""


@dataclass(frozen=True, slots=True)
class Panel:
    """The answer to one question.

    ``run_count`` counts the runs of the store, ``without_figure`` those without the value, which are in no row, ``without_time``
    those in the rows whose time is unknown: their period is None, and comes last.
    """

    question: Question
    run_count: int
    without_figure: int
    without_time: int
    table: Answer


@dataclass(frozen=True, slots=True)
class _Trend:
    """A value over time: grouping columns (the first is for people), expression of the value, further columns."""

    groups: Mapping[str, str]
    figure: str
    more: str = ""


_TOKENS = "coalesce(tokens_per_s_median, derived_tokens_per_s_median)"
_TRENDS: Mapping[Question, _Trend] = {
    "tokens": _Trend(
        {"preset": "preset", "source": "CASE WHEN tokens_per_s_median IS NULL THEN 'derived' ELSE 'reported' END"},
        _TOKENS,
        ", count(*) FILTER (WHERE NOT throughput_consistent) AS inconsistent_count",
    ),
    "goodput": _Trend(
        {"lane": "lane"},
        "goodput_ratio",
        ", sum(goodput_step_time_s ORDER BY log_sha256) / nullif(sum(wall_time_s ORDER BY log_sha256), 0) AS overall",
    ),
    "memory": _Trend({"preset": "preset", "metric": "memory_metric"}, "memory_bytes"),
}
_STARTS: Mapping[Period, str] = {
    "run": "run_at",
    "day": "date_trunc('day', run_at)::TIMESTAMP",
    "week": "date_trunc('week', run_at)::TIMESTAMP",
    "month": "date_trunc('month', run_at)::TIMESTAMP",
}


def ask_panel(database: Database, question: Question, *, by: Period = "day", last: int = LAST) -> Panel:
    """Return the answer to ``question`` by period; for checks, over the ``last`` runs instead.

    Columns of a trend: its group, ``period`` (its beginning, UTC; weeks begin on Mondays), ``run_count``, ``median``, ``min``
    and ``max`` of the runs' values, in base units. Columns of checks: ``check``, ``passed``, ``failed``, ``unknown`` and
    ``pass_ratio`` (passed / known).
    """
    return _checks(database, last) if question == "checks" else _trend(database, question, by)


def _trend(database: Database, question: Question, by: Period) -> Panel:
    trend = _TRENDS[question]
    groups = ", ".join(f"{expression} AS {name}" for name, expression in trend.groups.items())
    order = ", ".join(f"{name} NULLS LAST" for name in (*trend.groups, "period"))
    whom = ", name, log_sha256, run_id" if by == "run" else ""
    table = database.ask(
        f"SELECT {groups}, {_STARTS[by]} AS period{whom}, count(*) AS run_count, median({trend.figure}) AS median, "
        f"min({trend.figure}) AS min, max({trend.figure}) AS max{trend.more} "
        f"FROM runs WHERE {trend.figure} IS NOT NULL AND NOT excluded "
        f"GROUP BY {', '.join((*trend.groups, 'period'))}{whom} ORDER BY {order}{whom}"
    )
    [(runs, without_figure, without_time)] = database.run(
        f"SELECT count(*), count(*) FILTER ({trend.figure} IS NULL), "
        f"count(*) FILTER ({trend.figure} IS NOT NULL AND run_at IS NULL) FROM runs WHERE NOT excluded"
    )
    return Panel(question, runs, without_figure, without_time, table)


def _checks(database: Database, last: int) -> Panel:
    newest = f"(SELECT * FROM runs WHERE NOT excluded ORDER BY run_at DESC NULLS LAST, log_sha256 LIMIT {last:d})"
    asked = (
        f"WITH newest AS {newest}, told AS ("
        "SELECT -2 AS place, 'healthy' AS check_name, healthy AS passed FROM newest UNION ALL "
        "SELECT -1, 'proven', proven FROM newest UNION ALL "
        "SELECT 0, check_name, passed FROM checks SEMI JOIN newest USING (run_id)) "
        'SELECT check_name AS "check", count(*) FILTER (passed) AS passed, count(*) FILTER (NOT passed) AS failed, '
        "count(*) FILTER (passed IS NULL) AS unknown, count(*) FILTER (passed) / nullif(count(passed), 0) AS pass_ratio "
    )
    core = f"list_position({list(CORE)}, check_name)"
    table = database.ask(f"{asked}FROM told GROUP BY place, check_name ORDER BY place, {core} NULLS LAST, check_name")
    [(runs, without_time)] = database.run(f"SELECT count(*), count(*) FILTER (run_at IS NULL) FROM {newest}")
    return Panel("checks", runs, 0, without_time, table)


def contradictions(database: Database) -> list[str]:
    """Return a line for each receipt whose captured exit code contradicts its check ``zero_exit_code``."""
    found = database.run(
        "SELECT log_sha256, exit_code, zero_exit_code FROM runs WHERE (exit_code = 0) <> zero_exit_code ORDER BY log_sha256"
    )
    return [
        f"the receipt of {digest[:12]} contradicts itself: run.exit_code is {code}, checks.zero_exit_code {str(zero).lower()}"
        for digest, code, zero in found
    ]


def panel_document(panel: Panel, by: Period) -> dict[str, Any]:
    """Return the answer as JSON: counts, and ``rows`` of ``columns``; ``by`` is the period of a trend."""
    period = {} if panel.question == "checks" else {"by": by}
    counts = {"run_count": panel.run_count, "without_figure": panel.without_figure, "without_time": panel.without_time}
    return {"question": panel.question, **period, **counts, "rows": records(panel.table)}
