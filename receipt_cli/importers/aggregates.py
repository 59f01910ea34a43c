"""What a document states without its records → the summary of a phase; figures that contradict each other are left out."""

from __future__ import annotations

import math
from collections.abc import Mapping

from receipt_cli.analysis.steady import SteadyState
from receipt_cli.analysis.summary import MAX_OTHERS, Summary
from receipt_cli.definitions.metrics import Registry
from receipt_cli.importers.model import Part, Stated
from receipt_cli.importers.values import Doubts
from receipt_cli.numeric.statistics import Statistic

FIGURES = ("first", "last", "min", "max", "mean", "median")
_SLACK = 1e-9
_SAME = 1e-6
"""Share of a figure by which a stated one may differ from that of the records: the last digits of a float32."""


def summary_of(part: Part, registry: Registry, doubts: Doubts) -> Summary:
    """Return the summary of ``part``. Its steady state is the producer's own window."""
    steady = part.records if part.steady_records is None else min(part.steady_records, part.records)
    summary = Summary(
        phase=part.phase,
        first=None,
        last=part.last,
        planned=part.planned,
        record_count=part.records,
        restart_count=0,
        superseded_count=0,
        steady=SteadyState(steady, part.records - steady, 0),
        training_time_s=part.training_time_s,
        parameter_count=part.parameter_count,
    )
    add_stated(summary, part, registry, doubts)
    return summary


def add_stated(summary: Summary, part: Part, registry: Registry, doubts: Doubts) -> None:
    """Add to ``summary`` what ``part`` states of metrics that it lacks: what was computed from records stands."""
    stated = _statistics(part.metrics, doubts)
    for name in sorted(stated.keys() & summary.metrics.keys()):
        _compare(name, stated[name], summary.metrics[name], doubts)
    known = {**stated, **summary.metrics}
    summary.metrics = {name: known[name] for name in sorted(known, key=lambda name: registry.by_name[name].id)}
    others = {**_statistics(part.others, doubts), **summary.other_metrics}
    names = sorted(others)
    summary.dropped_others += max(0, len(names) - MAX_OTHERS)
    summary.other_metrics = {name: others[name] for name in names[:MAX_OTHERS]}


def _compare(name: str, stated: Statistic, computed: Statistic, doubts: Doubts) -> None:
    """Count a problem where a figure that the document states is not the one that its records give."""
    if computed.nonfinite_count or {stated.window, computed.window} != {"all"}:
        return
    for key in FIGURES:
        said, made = getattr(stated, key), getattr(computed, key)
        if said is not None and made is not None and abs(said - made) > _SAME * max(abs(said), abs(made)):
            doubts.add("figures_differ", None, f"{name}: {key} is stated as {said}, the records give {made}")


def _statistics(stated: Mapping[str, Stated], doubts: Doubts) -> dict[str, Statistic]:
    found = {name: statistic(name, entry, doubts) for name, entry in stated.items()}
    return {name: entry for name, entry in found.items() if entry is not None}


def statistic(name: str, stated: Stated, doubts: Doubts) -> Statistic | None:
    """Return what is stated as a statistic, or None, with a problem, where the figures cannot all be true.

    Its ``record_count`` is 0 where the document does not say of how many values the figures are, or lacks one of them.
    """
    figures = {key: stated.figures[key] for key in FIGURES if math.isfinite(stated.figures.get(key, math.nan))}
    if len(figures) < len(stated.figures):
        doubts.add("figure_not_finite", None, f"{name}: is not a finite number")
    if not figures:
        return None
    if not _agree(figures, stated.window):
        doubts.add("figures_contradict", None, f"{name}: the smallest and the largest value leave no room for the others")
        return None
    needed = FIGURES if stated.window == "all" else FIGURES[2:]
    whole = all(key in figures for key in needed)
    return Statistic(
        window=stated.window,
        scope=stated.scope,
        definition=stated.definition,
        record_count=(stated.record_count or 0) if whole else 0,
        nonfinite_count=0,
        first=figures.get("first"),
        last=figures.get("last"),
        min=figures.get("min"),
        max=figures.get("max"),
        mean=figures.get("mean"),
        median=figures.get("median"),
    )


def _agree(figures: Mapping[str, float], window: str) -> bool:
    low, high = figures.get("min", -math.inf), figures.get("max", math.inf)
    slack = _SLACK * max((abs(bound) for bound in (low, high) if math.isfinite(bound)), default=0.0)
    inside = FIGURES if window == "all" else FIGURES[2:]
    return low <= high and all(low - slack <= figures[key] <= high + slack for key in inside if key in figures)
