"""Rules of the statistics: counts, nulls, order, and what the registry says of a metric."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from receipt_cli.invariants.rule import Broken, Document, Rule, pointer, summaries
from receipt_cli.registry import load_registry

_FIGURES = ("min", "max", "mean", "median")
_HUGE = 1e290
"""Where values are this large, a mean may lie beyond float64 and then is null."""
_SLACK = 1e-9
_RATIO_SLACK = 1e-3


def _statistics(document: Document) -> Iterator[tuple[str, dict[str, Any]]]:
    for at, summary in summaries(document):
        for part in ("metrics", "other_metrics", "derived"):
            for name, statistic in summary[part].items():
                yield at + pointer(part, name), statistic


def _metric_identity(document: Document) -> Broken:
    registry = load_registry()
    if document["derivation"]["registry"]["version"] != registry.version:
        return  # names may have changed since: _registry_version says so
    for at, summary in summaries(document):
        for part in ("metrics", "derived"):
            for name, statistic in summary[part].items():
                metric = registry.by_name.get(name)
                if metric is None:
                    yield f"{at}/{part}/{name}", f"is no metric of registry version {registry.version}"
                elif statistic["id"] != metric.id:
                    yield f"{at}/{part}/{name}/id", f"is {statistic['id']}, the registry says {metric.id}"
        for number, entry in enumerate(summary["consistency"]):
            if entry["metric"] not in registry.by_name:
                yield (
                    f"{at}/consistency/{number}/metric",
                    f"is no metric of registry version {registry.version}",
                )


def _metric_window(document: Document) -> Broken:
    registry = load_registry()
    windows = {metric.id: metric.window for metric in registry.metrics}
    for at, summary in summaries(document):
        for part in ("metrics", "derived"):
            for name, statistic in summary[part].items():
                if statistic["window"] not in ("all", windows.get(statistic["id"], "steady")):
                    yield f"{at}/{part}/{name}/window", "the registry has this metric over all records"


def _registry_version(document: Document) -> Broken:
    stated, known = document["derivation"]["registry"]["version"], load_registry().version
    if stated != known:
        reason = f"metrics are of registry version {stated}, here is {known}: their names are not checked"
        yield "/derivation/registry/version", reason


def _statistic_counts(document: Document) -> Broken:
    for at, statistic in _statistics(document):
        if statistic["nonfinite_count"] > statistic["record_count"]:
            yield f"{at}/nonfinite_count", f"is above record_count, {statistic['record_count']}"


def _statistic_nulls(document: Document) -> Broken:
    for at, statistic in _statistics(document):
        finite = statistic["record_count"] - statistic["nonfinite_count"]
        if finite < 0:
            continue  # _statistic_counts says so
        for name in _FIGURES:
            if finite == 0 and statistic[name] is not None:
                yield f"{at}/{name}", "has no finite value to come from"
            elif finite > 0 and statistic[name] is None and (name in ("min", "max") or not _is_huge(statistic)):
                yield f"{at}/{name}", f"is null though {finite} finite values are counted"
        for name in ("first", "last"):
            if statistic["window"] == "all" and finite == 0 and statistic[name] is not None:
                yield f"{at}/{name}", "has no finite value to come from"
            elif statistic["window"] == "all" and statistic[name] is None and finite == statistic["record_count"] > 0:
                yield f"{at}/{name}", "is null though every value is finite"


def _is_huge(statistic: dict[str, Any]) -> bool:
    return any(statistic[name] is not None and abs(statistic[name]) >= _HUGE for name in ("min", "max"))


def _statistic_order(document: Document) -> Broken:
    for at, statistic in _statistics(document):
        low, high = statistic["min"], statistic["max"]
        if low is None or high is None:
            continue
        if low > high:
            yield f"{at}/min", f"is above max, {high}"
            continue
        slack = _SLACK * max(abs(low), abs(high))
        names = ("mean", "median", "first", "last") if statistic["window"] == "all" else ("mean", "median")
        for name in names:
            value = statistic[name]
            if value is not None and not low - slack <= value <= high + slack:
                yield f"{at}/{name}", f"{value} is not between min {low} and max {high}"


def _consistency_ratio(document: Document) -> Broken:
    for at, summary in summaries(document):
        for number, entry in enumerate(summary["consistency"]):
            here, ratio = f"{at}/consistency/{number}", entry["ratio"]
            if (ratio is None) != (entry["consistent"] is None):
                yield f"{here}/consistent", "is null exactly where the ratio is"
            elif ratio is not None and None in (entry["reported"], entry["derived"]):
                yield f"{here}/ratio", "has no two figures to come from"
            elif ratio is not None and abs(entry["reported"] - ratio * entry["derived"]) > _RATIO_SLACK * abs(entry["reported"]):
                yield f"{here}/ratio", "is not reported over derived"


_PARTS = ("phases", "summary")
STATISTIC_RULES = (
    Rule("metric_identity", (*_PARTS, "derivation"), _metric_identity),
    Rule("metric_window", _PARTS, _metric_window),
    Rule("registry_version", ("derivation",), _registry_version, "note"),
    Rule("statistic_counts", _PARTS, _statistic_counts),
    Rule("statistic_nulls", _PARTS, _statistic_nulls),
    Rule("statistic_order", _PARTS, _statistic_order),
    Rule("consistency_ratio", _PARTS, _consistency_ratio),
)
