"""The statistics that a document declares → the summary of a phase; figures that contradict each other are left out."""

from __future__ import annotations

import math
from collections.abc import Mapping

from receipt_cli.analysis.steady import SteadyState
from receipt_cli.analysis.summary import MAX_OTHERS, Summary
from receipt_cli.definitions.metrics import Registry
from receipt_cli.importers.model import DeclaredPhase, DeclaredStatistic
from receipt_cli.importers.values import ProblemCounter
from receipt_cli.numeric.statistics import Statistic

FIGURES = ("first", "last", "min", "max", "mean", "median")
_SLACK = 1e-9
_SAME = 1e-6
"""Relative difference allowed between a declared figure and that of the records: the last digits of a float32."""


def summary_of(declared: DeclaredPhase, registry: Registry, problems: ProblemCounter) -> Summary:
    """Return the summary of ``declared``. Its steady state is the producer's own window."""
    steady = declared.records if declared.steady_records is None else min(declared.steady_records, declared.records)
    summary = Summary(
        phase=declared.name,
        first=None,
        last=declared.last,
        planned=declared.planned,
        record_count=declared.records,
        restart_count=0,
        superseded_count=0,
        steady=SteadyState(steady, declared.records - steady, 0),
        training_time_s=declared.training_time_s,
        parameter_count=declared.parameter_count,
    )
    add_declared(summary, declared, registry, problems)
    return summary


def add_declared(summary: Summary, declared: DeclaredPhase, registry: Registry, problems: ProblemCounter) -> None:
    """Add the metrics of ``declared`` that ``summary`` lacks: statistics of records take precedence."""
    statistics = _statistics(declared.metrics, problems)
    for name in sorted(statistics.keys() & summary.metrics.keys()):
        _compare(name, statistics[name], summary.metrics[name], problems)
    known = {**statistics, **summary.metrics}
    summary.metrics = {name: known[name] for name in sorted(known, key=lambda name: registry.by_name[name].id)}
    others = {**_statistics(declared.others, problems), **summary.other_metrics}
    names = sorted(others)
    summary.dropped_others += max(0, len(names) - MAX_OTHERS)
    summary.other_metrics = {name: others[name] for name in names[:MAX_OTHERS]}


def _compare(name: str, declared: Statistic, computed: Statistic, problems: ProblemCounter) -> None:
    """Count a problem for each declared figure that differs from the one of the records."""
    if computed.nonfinite_count or {declared.window, computed.window} != {"all"}:
        return
    for key in FIGURES:
        one, other = getattr(declared, key), getattr(computed, key)
        if one is not None and other is not None and abs(one - other) > _SAME * max(abs(one), abs(other)):
            problems.add("figures_differ", None, f"{name}: {key} is stated as {one}, the records give {other}")


def _statistics(declared: Mapping[str, DeclaredStatistic], problems: ProblemCounter) -> dict[str, Statistic]:
    statistics = {name: statistic(name, entry, problems) for name, entry in declared.items()}
    return {name: entry for name, entry in statistics.items() if entry is not None}


def statistic(name: str, declared: DeclaredStatistic, problems: ProblemCounter) -> Statistic | None:
    """Return a declared statistic; None, with a problem, where its figures contradict each other.

    ``record_count`` is 0 where the document lacks the number of values, or one of the figures.
    """
    figures = {key: declared.figures[key] for key in FIGURES if math.isfinite(declared.figures.get(key, math.nan))}
    if len(figures) < len(declared.figures):
        problems.add("figure_not_finite", None, f"{name}: is not a finite number")
    if not figures:
        return None
    if not _agree(figures, declared.window):
        problems.add("figures_contradict", None, f"{name}: the smallest and the largest value leave no room for the others")
        return None
    needed = FIGURES if declared.window == "all" else FIGURES[2:]
    whole = all(key in figures for key in needed)
    return Statistic(
        window=declared.window,
        scope=declared.scope,
        definition=declared.definition,
        record_count=(declared.record_count or 0) if whole else 0,
        nonfinite_count=0,
        **{key: figures.get(key) for key in FIGURES},
    )


def _agree(figures: Mapping[str, float], window: str) -> bool:
    low, high = figures.get("min", -math.inf), figures.get("max", math.inf)
    slack = _SLACK * max((abs(bound) for bound in (low, high) if math.isfinite(bound)), default=0.0)
    inside = FIGURES if window == "all" else FIGURES[2:]
    return low <= high and all(low - slack <= figures[key] <= high + slack for key in inside if key in figures)
