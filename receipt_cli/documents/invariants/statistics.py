"""Rules of the statistics: counts, nulls, order, and agreement with the metric registry."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from receipt_cli.definitions.metrics import load_registry
from receipt_cli.documents.invariants.figures import check_counts, check_nulls, check_order, over
from receipt_cli.documents.invariants.rule import PHASES, Broken, Document, Rule, is_import, pointer, summaries

_RATIO_SLACK = 1e-3


def _statistics(document: Document) -> Iterator[tuple[str, dict[str, Any]]]:
    for at, summary in summaries(document):
        for part in ("metrics", "other_metrics", "derived"):
            for name, statistic in summary[part].items():
                yield at + pointer(part, name), statistic


def _metric_identity(document: Document) -> Broken:
    registry = load_registry()
    if document["derivation"]["registry"]["version"] != registry.version:
        return  # names may have changed: ``_registry_version`` reports it
    for at, summary in summaries(document):
        for part in ("metrics", "derived"):
            for name, statistic in summary[part].items():
                metric = registry.by_name.get(name)
                if metric is None:
                    yield f"{at}/{part}/{name}", f"is not a metric of registry version {registry.version}"
                elif statistic["id"] != metric.id:
                    yield f"{at}/{part}/{name}/id", f"is {statistic['id']}, but {metric.id} in the registry"
        for number, entry in enumerate(summary["consistency"]):
            if entry["metric"] not in registry.by_name:
                yield (
                    f"{at}/consistency/{number}/metric",
                    f"is not a metric of registry version {registry.version}",
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
        reason = f"is {stated}, not {known}: the names of metrics are not checked"
        yield "/derivation/registry/version", reason


def _counted(document: Document) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the statistics of a log; an imported document may state any of them without the others."""
    return iter(()) if is_import(document) else _statistics(document)


def _consistency_ratio(document: Document) -> Broken:
    for at, summary in summaries(document):
        for number, entry in enumerate(summary["consistency"]):
            here, ratio = f"{at}/consistency/{number}", entry["ratio"]
            if (ratio is None) != (entry["consistent"] is None):
                yield f"{here}/consistent", "must be null if, and only if, the ratio is null"
            elif ratio is not None and None in (entry["reported"], entry["derived"]):
                yield f"{here}/ratio", "is given without both reported and derived"
            elif ratio is not None and not _is_ratio(ratio, entry["reported"], entry["derived"]):
                yield f"{here}/ratio", "is not reported over derived"


def _is_ratio(ratio: float, reported: float, derived: float) -> bool:
    return abs(float(reported) - float(ratio) * float(derived)) <= _RATIO_SLACK * abs(float(reported))


STATISTIC_RULES: tuple[Rule, ...] = (
    Rule("metric_identity", (*PHASES, "derivation"), _metric_identity),
    Rule("metric_window", PHASES, _metric_window),
    Rule("registry_version", ("derivation",), _registry_version, "note"),
    Rule("statistic_counts", PHASES, lambda document: over(check_counts, _statistics(document))),
    Rule("statistic_nulls", (*PHASES, "derivation"), lambda document: over(check_nulls, _counted(document))),
    Rule("statistic_order", PHASES, lambda document: over(check_order, _statistics(document))),
    Rule("consistency_ratio", PHASES, _consistency_ratio),
)
