"""Statistics of a store over time: throughput, goodput, memory and checks.

A run contributes one value: its median (tokens/s), its ratio (goodput) or its largest value (memory). A row summarises the runs
of one period and group, so a long run weighs as much as a short one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

from receipt_cli.analysis.checks import CORE
from receipt_cli.io.duckdb import Answer
from receipt_cli.store.answers import first, groups, known, median, ordered, total
from receipt_cli.store.index import Row
from receipt_cli.store.query import records

Question = Literal["tokens", "goodput", "memory", "checks"]
QUESTIONS: tuple[Question, ...] = get_args(Question)
Period = Literal["run", "day", "week", "month"]


class _Trend(NamedTuple):
    """A value over time: the groups of its rows (the first is for people), the value, and a further column."""

    groups: Mapping[str, Callable[[Row], Any]]
    value: Callable[[Row], float | None]
    more: tuple[str, Callable[[Sequence[Row]], Any]] | None = None


def _field(name: str) -> Callable[[Row], Any]:
    return lambda row: row[name]


def _inconsistent(rows: Sequence[Row]) -> int:
    return sum(row["throughput_consistent"] is False for row in rows)


def _overall(rows: Sequence[Row]) -> float | None:
    steps, wall = (total(known(rows, name)) for name in ("goodput_step_time_s", "wall_time_s"))
    return None if steps is None or not wall else steps / wall


_TRENDS: Mapping[str, _Trend] = {
    "tokens": _Trend(
        {"preset": _field("preset"), "source": lambda row: "derived" if row["tokens_per_s_median"] is None else "reported"},
        lambda row: first(row["tokens_per_s_median"], row["derived_tokens_per_s_median"]),
        ("inconsistent_count", _inconsistent),
    ),
    "goodput": _Trend({"lane": _field("lane")}, _field("goodput_ratio"), ("overall", _overall)),
    "memory": _Trend({"preset": _field("preset"), "metric": _field("memory_metric")}, _field("memory_bytes")),
}
FIELDS = (
    "run_id", "name", "log_sha256", "path", "refusal", "excluded", "run_at", "preset", "lane", "exit_code",
    "tokens_per_s_median", "derived_tokens_per_s_median", "throughput_consistent", "goodput_ratio", "goodput_step_time_s",
    "wall_time_s", "memory_metric", "memory_bytes", "healthy", "proven", "zero_exit_code", "checks",
)  # fmt: skip
"""Fields of ``index.current_rows`` that the panels need."""


def _start(row: Row, by: Period) -> str | None:
    """Return the beginning of the period that a run is in; None if its time is unknown."""
    at: str | None = row["run_at"]
    if at is None or by == "run":
        return at
    day = date.fromisoformat(at[:10])
    begin = day.replace(day=1) if by == "month" else day - timedelta(days=day.weekday()) if by == "week" else day
    return f"{begin.isoformat()}T00:00:00Z"


def ask_panel(rows: Iterable[Row], question: Question, *, by: Period, last: int) -> dict[str, Any]:
    """Return the answer to ``question`` as JSON, by period; for checks, over the ``last`` runs instead.

    ``rows`` are those of a store, with ``FIELDS``; in the answer, those of a trend have its group, ``period`` (its beginning,
    UTC; weeks begin on Mondays), ``run_count``, ``median``, ``min`` and ``max`` of the runs' values, in base units; of checks
    ``check``, ``passed``, ``failed``, ``unknown`` and ``pass_ratio`` (passed / known). Of the store's runs (``run_count``) those
    ``without_figure`` are in no row; ``without_time`` counts runs in the rows whose period is None, which comes last.
    """
    counted = [row for row in rows if not row["excluded"]]
    asked = {"question": question} if question == "checks" else {"question": question, "by": by}
    every, shown, table = _checks(counted, last) if question == "checks" else _trend(counted, question, by)
    counts = {"run_count": len(every), "without_figure": len(every) - len(shown)}
    return {**asked, **counts, "without_time": len(shown) - len(known(shown, "run_at")), "rows": records(table)}


def _trend(rows: Sequence[Row], question: Question, by: Period) -> tuple[Sequence[Row], Sequence[Row], Answer]:
    """Return the rows, those with a value, and the answer."""
    trend = _TRENDS[question]
    whom = ("name", "log_sha256", "run_id") if by == "run" else ()
    keys: list[Callable[[Row], Any]] = [*trend.groups.values(), lambda row: _start(row, by), *map(_field, whom)]
    valued = [{**row, "value": trend.value(row)} for row in rows]
    shown = [row for row in valued if row["value"] is not None]
    made = []
    for key, mine in groups(shown, lambda row: tuple(each(row) for each in keys)).items():
        values = known(mine, "value")
        figures = (len(mine), median(values), min(values), max(values))
        made.append((*key, *figures, *(() if trend.more is None else (trend.more[1](mine),))))
    columns = (*trend.groups, "period", *whom, "run_count", "median", "min", "max", *(trend.more or ())[:1])
    places = [partial(lambda row, place: row[place], place=place) for place in range(len(keys))]
    return rows, shown, Answer(tuple(map(str, columns)), ordered(made, *places))


def _checks(rows: Sequence[Row], last: int) -> tuple[Sequence[Row], Sequence[Row], Answer]:
    newest = ordered(rows, _field("run_at"), _field("log_sha256"), falling=1)[:last]
    told: dict[str, list[bool | None]] = {}
    for row in newest:
        states = {"healthy": row["healthy"], "proven": row["proven"]}
        for name, passed in (states | {check["check_name"]: check["passed"] for check in row["checks"] or ()}).items():
            told.setdefault(name, []).append(passed)
    order = {name: place for place, name in enumerate(("healthy", "proven", *CORE))}
    made = []
    for name in sorted(told, key=lambda name: (order.get(name, len(order)), name)):
        passed, failed = told[name].count(True), told[name].count(False)
        ratio = passed / (passed + failed) if passed + failed else None
        made.append((name, passed, failed, len(told[name]) - passed - failed, ratio))
    return newest, newest, Answer(("check", "passed", "failed", "unknown", "pass_ratio"), made)


def contradictions(rows: Iterable[Row]) -> list[str]:
    """Return a line for each receipt whose captured exit code contradicts its check ``zero_exit_code``."""
    found = [
        (row["log_sha256"], row["exit_code"], row["zero_exit_code"])
        for row in rows
        if None not in (row["exit_code"], row["zero_exit_code"]) and (row["exit_code"] == 0) is not row["zero_exit_code"]
    ]
    return [
        f"the receipt of {digest[:12]} contradicts itself: run.exit_code is {code}, checks.zero_exit_code {str(zero).lower()}"
        for digest, code, zero in sorted(found)
    ]
