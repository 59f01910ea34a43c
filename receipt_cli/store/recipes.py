"""Frequent questions to a store, each with the SQL that a user may start from; ``store.answers`` answers them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from receipt_cli.definitions.metrics import load_registry
from receipt_cli.errors import UsageError


class Recipe(NamedTuple):
    """A query: its meaning, and its SELECT; the caller's values replace ``{metric}``, ``{best}``, ``{extreme}``, ``{last}`` and
    ``{where}``."""

    meaning: str
    sql: str


class Filled(NamedTuple):
    """A recipe with the caller's values: name, metric and its better extreme, most rows (0: all), and the SELECT."""

    name: str
    metric: str
    extreme: str
    last: int
    sql: str

    def first(self, rows: Sequence[Any]) -> Sequence[Any]:
        """Return the first rows, as many as wanted."""
        return rows[: self.last] if self.last else rows


RECIPES: Mapping[str, Recipe] = {
    "best": Recipe(
        "the best value of a metric, by model and month, with the run that has it",
        """SELECT coalesce(architecture, trainer, grammar_id) AS model, strftime(r.run_at, '%Y-%m') AS month,
       {best}(m.{extreme}) AS {metric}, arg_{best}(r.name, m.{extreme}) AS run, arg_{best}(r.run_id, m.{extreme}) AS run_id,
       count(*) AS run_count
FROM results m JOIN runs r USING (run_id)
WHERE m.metric = '{metric}' AND m.source <> 'derived' AND m.{extreme} IS NOT NULL AND NOT r.excluded{where}
GROUP BY ALL ORDER BY model, month NULLS LAST""",
    ),
    "slowest": Recipe(
        "lanes by the median step time of their runs, the slowest first",
        """SELECT lane, count(*) AS run_count, median(step_time_s_median) AS step_time_s, median(goodput_ratio) AS goodput_ratio,
       arg_max(name, step_time_s_median) AS slowest_run
FROM runs WHERE step_time_s_median IS NOT NULL AND NOT excluded{where}
GROUP BY lane ORDER BY step_time_s DESC, lane""",
    ),
    "cost": Recipe(
        "cost of failed runs by reason: wall time, device hours and money",
        """SELECT failure_reason, count(*) AS run_count, sum(coalesce(job_wall_time_s, wall_time_s)) / 3600 AS hours,
       sum(device_hours) AS device_hours, sum(cost) AS cost, any_value(currency) AS currency,
       count(*) FILTER (coalesce(job_wall_time_s, wall_time_s) IS NULL) AS without_time
FROM runs WHERE failure_reason IS NOT NULL AND NOT excluded{where}
GROUP BY failure_reason, currency ORDER BY device_hours DESC NULLS LAST, hours DESC NULLS LAST, failure_reason""",
    ),
    "hosts": Recipe(
        "hosts by the failures that began on them",
        """SELECT culprit_host AS host, count(*) AS failure_count,
       list(DISTINCT failure_reason ORDER BY failure_reason) AS reasons,
       max(run_at) AS last_at, coalesce(arg_max(name, run_at), min(name)) AS last_run
FROM runs WHERE culprit_host IS NOT NULL{where} GROUP BY culprit_host ORDER BY failure_count DESC, host""",
    ),
    "latest": Recipe(
        "the latest runs, with their outcome and losses",
        """SELECT run_at, name, lane, log_path, grammar_id, steps_last, loss_last, val_loss_last, outcome, failure_reason
FROM runs WHERE NOT excluded{where} ORDER BY run_at DESC NULLS LAST, name LIMIT {last}""",
    ),
    "stragglers": Recipe(
        "ranks whose steps take over 1.1 times those of all ranks, the slowest first",
        """SELECT r.name, r.log_path, k.rank, k.median_step_time_s, k.median_step_time_s / m.all_ranks_s AS ratio, culprit_host
FROM ranks k JOIN runs r USING (run_id)
JOIN (SELECT run_id, median(median_step_time_s) AS all_ranks_s FROM ranks GROUP BY run_id) m USING (run_id)
WHERE k.straggles AND NOT r.excluded{where} ORDER BY ratio DESC, r.name, k.rank LIMIT {last}""",
    ),
    "unsaved": Recipe(
        "failed runs by the time after their last checkpoint, which a restart repeats",
        """SELECT name, lane, checkpoint_last_step, steps_last, unsaved_step_count, unsaved_time_s, failure_reason
FROM runs WHERE failure_reason IS NOT NULL AND checkpoint_last_step IS NOT NULL AND NOT excluded{where}
ORDER BY unsaved_time_s DESC NULLS LAST, unsaved_step_count DESC NULLS LAST, name LIMIT {last}""",
    ),
    "varies": Recipe(
        "settings that differ within a lane, with the number of their values",
        """SELECT lane, field, count(DISTINCT s.value) AS value_count, list(DISTINCT s.value ORDER BY s.value)[:5] AS some_values,
       count(*) AS run_count
FROM settings s JOIN runs USING (run_id) WHERE NOT excluded{where}
GROUP BY lane, field HAVING value_count > 1 ORDER BY lane NULLS LAST, value_count DESC, field LIMIT {last}""",
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
    for key, value in texts.items():
        recipe = recipe._replace(sql=recipe.sql.replace(f"{{{key}}}", value))
    return Filled(name, texts["metric"], best, last, recipe.sql)
