"""Statistics of a store over time: throughput, goodput, memory and checks.

A run contributes one value: its median (tokens/s), its ratio (goodput) or its largest value (memory). A row summarises the runs
of one period and group, so a long run weighs as much as a short one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from receipt_cli.analysis.checks import CORE
from receipt_cli.io.duckdb import Answer, Database
from receipt_cli.store.query import records

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
