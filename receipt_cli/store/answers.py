"""Answers to the questions of ``store ask`` and ``store stats`` from the rows of a store, without a database.

The SQL of ``RECIPES`` gives the same answers (a test asks both). In every order, unknown values come last.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from receipt_cli.definitions.metrics import load_registry
from receipt_cli.errors import UsageError
from receipt_cli.io.duckdb import Answer
from receipt_cli.numeric.statistics import exact_median
from receipt_cli.store.index import Row


class Recipe(NamedTuple):
    """A question: its meaning, and its SELECT, with ``{metric}``, ``{best}``, ``{extreme}``, ``{last}``, ``{where}`` for values.

    It is answered from ``fields`` of the index by a function; ``excluded``: runs that a user excluded count, too.
    """

    meaning: str
    sql: str
    fields: tuple[str, ...]
    answer: Callable[[Sequence[Row], Filled], Answer]
    excluded: bool = False


class Filled(NamedTuple):
    """A recipe with the caller's values: metric and its better extreme, most rows (0: all), and the SELECT."""

    recipe: Recipe
    metric: str
    extreme: str
    last: int
    sql: str

    def first(self, rows: Sequence[Any]) -> Sequence[Any]:
        """Return the first rows, as many as wanted."""
        return rows[: self.last] if self.last else rows


Key = TypeVar("Key", bound=Hashable)


def groups(rows: Iterable[Row], key: Callable[[Row], Key]) -> dict[Key, list[Row]]:
    """Return the rows by their key, both in their order."""
    found: dict[Key, list[Row]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return found


def ordered(rows: Iterable[Any], *keys: Callable[[Any], Any], falling: int = 0) -> list[Any]:
    """Return ``rows`` by ``keys``, of which the first ``falling`` fall; unknown values come last in both directions."""
    found = list(rows)
    for number, key in reversed(list(enumerate(keys))):
        known = sorted((row for row in found if key(row) is not None), key=key, reverse=number < falling)
        found = known + [row for row in found if key(row) is None]
    return found


def known(rows: Iterable[Row], name: str) -> list[Any]:
    """Return the known values of a field."""
    return [row[name] for row in rows if row[name] is not None]


def median(values: Sequence[float]) -> float | None:
    """Return the median of some values, or None."""
    return exact_median(values) if values else None


def total(values: Sequence[float]) -> float | None:
    """Return the sum of some values, or None."""
    return math.fsum(values) if values else None


def first(*values: Any) -> Any:
    """Return the first known value."""
    return next((value for value in values if value is not None), None)


def at_extreme(rows: Iterable[Row], name: str, by: str, *, least: bool = False) -> Any:
    """Return the field ``name`` of the first row with the greatest (or least) ``by``; rows that lack either do not count."""
    both = [row for row in rows if row[name] is not None and row[by] is not None]
    chosen = (min if least else max)(both, key=lambda row: row[by], default=None)
    return None if chosen is None else chosen[name]


def _best(rows: Sequence[Row], asked: Filled) -> Answer:
    values = [
        {**row, "value": metric[asked.extreme]}
        for row in rows
        for phase in row["phases"] or ()
        for metric in phase["metrics"] or ()
        if phase["is_primary"] and metric["metric"] == asked.metric and metric["source"] != "derived"
        if metric[asked.extreme] is not None
    ]
    least = asked.extreme == "min"
    made = []
    for (model, month), mine in groups(values, lambda row: (_model(row), row["run_at"] and row["run_at"][:7])).items():
        run, run_id = (at_extreme(mine, name, "value", least=least) for name in ("name", "run_id"))
        made.append((model, month, (min if least else max)(known(mine, "value")), run, run_id, len(mine)))
    columns = ("model", "month", asked.metric, "run", "run_id", "run_count")
    return Answer(columns, ordered(made, lambda row: row[0], lambda row: row[1]))


def _model(row: Row) -> Any:
    return first(row["architecture"], row["trainer"], row["grammar_id"])


def _slowest(rows: Sequence[Row], _: Filled) -> Answer:
    timed = [row for row in rows if row["step_time_s_median"] is not None]
    made = []
    for lane, mine in groups(timed, lambda row: row["lane"]).items():
        medians = [median(known(mine, name)) for name in ("step_time_s_median", "goodput_ratio")]
        made.append((lane, len(mine), *medians, at_extreme(mine, "name", "step_time_s_median")))
    columns = ("lane", "run_count", "step_time_s", "goodput_ratio", "slowest_run")
    return Answer(columns, ordered(made, lambda row: row[2], lambda row: row[0], falling=1))


def _cost(rows: Sequence[Row], _: Filled) -> Answer:
    failed = [
        {**row, "wall": first(row["job_wall_time_s"], row["wall_time_s"])} for row in rows if row["failure_reason"] is not None
    ]
    made = []
    for (reason, currency), mine in groups(failed, lambda row: (row["failure_reason"], row["currency"])).items():
        walls = known(mine, "wall")
        sums = (total(known(mine, "device_hours")), total(known(mine, "cost")))
        seconds = total(walls)
        made.append((reason, len(mine), None if seconds is None else seconds / 3600, *sums, currency, len(mine) - len(walls)))
    columns = ("failure_reason", "run_count", "hours", "device_hours", "cost", "currency", "without_time")
    return Answer(
        columns, ordered(made, lambda row: row[3], lambda row: row[2], lambda row: row[0], lambda row: row[5], falling=2)
    )


def _hosts(rows: Sequence[Row], _: Filled) -> Answer:
    made = []
    for host, mine in groups((row for row in rows if row["culprit_host"] is not None), lambda row: row["culprit_host"]).items():
        times, names = known(mine, "run_at"), known(mine, "name")
        reasons = sorted({*known(mine, "failure_reason")})
        latest = first(at_extreme(mine, "name", "run_at"), min(names, default=None))
        made.append((host, len(mine), reasons, max(times, default=None), latest))
    columns = ("host", "failure_count", "reasons", "last_at", "last_run")
    return Answer(columns, ordered(made, lambda row: row[1], lambda row: row[0], falling=1))


_LATEST = (
    "run_at", "name", "lane", "log_path", "grammar_id", "steps_last", "loss_last", "val_loss_last", "outcome",
    "failure_reason",
)  # fmt: skip


def _latest(rows: Sequence[Row], asked: Filled) -> Answer:
    found = ordered(rows, lambda row: row["run_at"], lambda row: row["name"], falling=1)
    return Answer(_LATEST, [tuple(row[name] for name in _LATEST) for row in asked.first(found)])


def _stragglers(rows: Sequence[Row], asked: Filled) -> Answer:
    made = []
    for row in rows:
        ranks = [rank for phase in row["phases"] or () if phase["is_primary"] for rank in phase["ranks"] or ()]
        all_ranks = median(known(ranks, "median_step_time_s"))
        for rank in ranks:
            time = rank["median_step_time_s"]
            if rank["straggles"]:
                ratio = None if time is None or not all_ranks else time / all_ranks
                made.append((row["name"], row["log_path"], rank["rank"], time, ratio, row["culprit_host"]))
    columns = ("name", "log_path", "rank", "median_step_time_s", "ratio", "culprit_host")
    found = ordered(made, lambda row: row[4], lambda row: row[0], lambda row: row[2], falling=1)
    return Answer(columns, asked.first(found))


_UNSAVED = (
    "name", "lane", "checkpoint_last_step", "steps_last", "unsaved_step_count", "unsaved_time_s", "failure_reason",
)  # fmt: skip


def _unsaved(rows: Sequence[Row], asked: Filled) -> Answer:
    failed = [row for row in rows if row["failure_reason"] is not None and row["checkpoint_last_step"] is not None]
    keys = (lambda row: row["unsaved_time_s"], lambda row: row["unsaved_step_count"], lambda row: row["name"])
    found = ordered(failed, *keys, falling=2)
    return Answer(_UNSAVED, [tuple(row[name] for name in _UNSAVED) for row in asked.first(found)])


_SOME = 5


def _varies(rows: Sequence[Row], asked: Filled) -> Answer:
    settings = [{"lane": row["lane"], **setting} for row in rows for setting in row["settings"] or ()]
    made = []
    for (lane, field), mine in groups(settings, lambda row: (row["lane"], row["field"])).items():
        values = sorted({*known(mine, "value")})
        if len(values) > 1:
            made.append((lane, field, len(values), values[:_SOME], len(mine)))
    columns = ("lane", "field", "value_count", "some_values", "run_count")
    by_field = ordered(made, lambda row: row[2], lambda row: row[1], falling=1)
    return Answer(columns, asked.first(ordered(by_field, lambda row: row[0])))


RECIPES: Mapping[str, Recipe] = {
    "best": Recipe(
        "the best value of a metric, by model and month, with the run that has it",
        """SELECT coalesce(architecture, trainer, grammar_id) AS model, strftime(r.run_at, '%Y-%m') AS month,
       {best}(m.{extreme}) AS {metric}, arg_{best}(r.name, m.{extreme}) AS run, arg_{best}(r.run_id, m.{extreme}) AS run_id,
       count(*) AS run_count
FROM results m JOIN runs r USING (run_id)
WHERE m.metric = '{metric}' AND m.source <> 'derived' AND m.{extreme} IS NOT NULL AND NOT r.excluded{where}
GROUP BY ALL ORDER BY model, month NULLS LAST""",
        ("architecture", "trainer", "grammar_id", "run_at", "phases"),
        _best,
    ),
    "slowest": Recipe(
        "lanes by the median step time of their runs, the slowest first",
        """SELECT lane, count(*) AS run_count, median(step_time_s_median) AS step_time_s, median(goodput_ratio) AS goodput_ratio,
       arg_max(name, step_time_s_median) AS slowest_run
FROM runs WHERE step_time_s_median IS NOT NULL AND NOT excluded{where}
GROUP BY lane ORDER BY step_time_s DESC, lane""",
        ("lane", "step_time_s_median", "goodput_ratio"),
        _slowest,
    ),
    "cost": Recipe(
        "cost of failed runs by reason: wall time, device hours and money",
        """SELECT failure_reason, count(*) AS run_count, sum(coalesce(job_wall_time_s, wall_time_s)) / 3600 AS hours,
       sum(device_hours) AS device_hours, sum(cost) AS cost, any_value(currency) AS currency,
       count(*) FILTER (coalesce(job_wall_time_s, wall_time_s) IS NULL) AS without_time
FROM runs WHERE failure_reason IS NOT NULL AND NOT excluded{where}
GROUP BY failure_reason, currency ORDER BY device_hours DESC NULLS LAST, hours DESC NULLS LAST, failure_reason""",
        ("failure_reason", "currency", "job_wall_time_s", "wall_time_s", "device_hours", "cost"),
        _cost,
    ),
    "hosts": Recipe(
        "hosts by the failures that began on them",
        """SELECT culprit_host AS host, count(*) AS failure_count,
       list(DISTINCT failure_reason ORDER BY failure_reason) AS reasons,
       max(run_at) AS last_at, coalesce(arg_max(name, run_at), min(name)) AS last_run
FROM runs WHERE culprit_host IS NOT NULL{where} GROUP BY culprit_host ORDER BY failure_count DESC, host""",
        ("culprit_host", "failure_reason", "run_at"),
        _hosts,
        excluded=True,
    ),
    "latest": Recipe(
        "the latest runs, with their outcome and losses",
        """SELECT run_at, name, lane, log_path, grammar_id, steps_last, loss_last, val_loss_last, outcome, failure_reason
FROM runs WHERE NOT excluded{where} ORDER BY run_at DESC NULLS LAST, name LIMIT {last}""",
        _LATEST,
        _latest,
    ),
    "stragglers": Recipe(
        "ranks whose steps take over 1.1 times those of all ranks, the slowest first",
        """SELECT r.name, r.log_path, k.rank, k.median_step_time_s, k.median_step_time_s / m.all_ranks_s AS ratio, culprit_host
FROM ranks k JOIN runs r USING (run_id)
JOIN (SELECT run_id, median(median_step_time_s) AS all_ranks_s FROM ranks GROUP BY run_id) m USING (run_id)
WHERE k.straggles AND NOT r.excluded{where} ORDER BY ratio DESC, r.name, k.rank LIMIT {last}""",
        ("log_path", "culprit_host", "phases"),
        _stragglers,
    ),
    "unsaved": Recipe(
        "failed runs by the time after their last checkpoint, which a restart repeats",
        """SELECT name, lane, checkpoint_last_step, steps_last, unsaved_step_count, unsaved_time_s, failure_reason
FROM runs WHERE failure_reason IS NOT NULL AND checkpoint_last_step IS NOT NULL AND NOT excluded{where}
ORDER BY unsaved_time_s DESC NULLS LAST, unsaved_step_count DESC NULLS LAST, name LIMIT {last}""",
        _UNSAVED,
        _unsaved,
    ),
    "varies": Recipe(
        "settings that differ within a lane, with the number of their values",
        """SELECT lane, field, count(DISTINCT s.value) AS value_count, list(DISTINCT s.value ORDER BY s.value)[:5] AS some_values,
       count(*) AS run_count
FROM settings s JOIN runs USING (run_id) WHERE NOT excluded{where}
GROUP BY lane, field HAVING value_count > 1 ORDER BY lane NULLS LAST, value_count DESC, field LIMIT {last}""",
        ("lane", "settings"),
        _varies,
    ),
}
FAILURES = "failures"
"""The question without SQL: ``listing.failure_groups`` answers it."""
QUESTIONS = {FAILURES: "what ended runs badly: outcome, cause, place and message, the most frequent first"} | {
    name: recipe.meaning for name, recipe in RECIPES.items()
}
"""Each question with its meaning."""
_METRIC = re.compile(r"[a-z][a-z0-9_]*\Z")


def fill(name: str, metric: str = "val_loss", last: int = 20, where: str | None = None) -> Filled:
    """Return the recipe ``name``, of ``last`` rows (0: all), with the SELECT over the runs that satisfy ``where``.

    Raises ``UsageError`` for an unknown recipe and for an invalid metric name.
    """
    recipe = RECIPES.get(name)
    if recipe is None:
        raise UsageError(f"there is no recipe {name!r}", why=f"the recipes are {', '.join(QUESTIONS)}")
    if _METRIC.match(metric) is None:
        raise UsageError(f"{metric!r} is not a metric name")
    known = load_registry().by_name.get(metric)
    best = "max" if known is not None and known.better == "higher" else "min"
    texts = {"metric": known.name if known else metric, "best": best, "extreme": best, "last": str(last or "ALL")}
    texts["where"] = "" if where is None else f" AND run_id IN (SELECT run_id FROM runs WHERE {where}\n)"
    sql = recipe.sql
    for key, value in texts.items():
        sql = sql.replace(f"{{{key}}}", value)
    return Filled(recipe, texts["metric"], best, last, sql)


_OF_RUN = ("run_id", "name", "refusal", "path", "excluded")


def fields_of(asked: Filled) -> tuple[str, ...]:
    """Return the fields of ``index.current_rows`` that a question needs."""
    return (*_OF_RUN, *asked.recipe.fields)


def answer_question(rows: Iterable[Row], asked: Filled) -> Answer:
    """Return the answer to a question from the rows of a store; the same as that of its SQL."""
    return asked.recipe.answer([row for row in rows if asked.recipe.excluded or not row["excluded"]], asked)
