"""The receipts of a store → the history document: for every lane what changed, when, and what changed with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

from receipt_cli.comparison.policy import Policy
from receipt_cli.definitions.metrics import Registry
from receipt_cli.history.attribution import attribute
from receipt_cli.history.changes import Change, find_changes
from receipt_cli.history.lanes import Document, Lane, LaneRun, Watched, make_lanes, watch

SCHEMA_VERSION = "history/1.0"
LEAST_RELATIVE = 0.02
LEAST_SHARE = 0.1
"""Changes below these are not reported: of a metric relative to its level, and of a share of runs or of time."""


def history(receipts: Iterable[Document], policy: Policy, registry: Registry, lane: str | None = None) -> dict[str, Any]:
    """Return the history (``history/1.0``) of all lanes, or of the one called ``lane``. Values are in base units."""
    lanes = [one for one in make_lanes(receipts) if lane is None or one.lane == lane]
    return {"schema_version": SCHEMA_VERSION, "lanes": [_lane(one, policy, registry) for one in lanes]}


def worsened(document: dict[str, Any]) -> bool:
    """True where the last change of any figure is for the worse."""
    metrics = [metric for lane in document["lanes"] for metric in lane["metrics"] if metric["changes"]]
    return any(metric["changes"][-1]["outcome"] == "worse" for metric in metrics)


def _lane(lane: Lane, policy: Policy, registry: Registry) -> dict[str, Any]:
    return {
        "lane": lane.lane,
        "preset": lane.preset,
        "run_count": len(lane.runs),
        "undated_count": lane.undated,
        "first_at": lane.runs[0].time if lane.runs else None,
        "last_at": lane.runs[-1].time if lane.runs else None,
        "metrics": [_metric(lane.runs, watched, policy) for watched in watch(lane, registry)],
    }


def _metric(runs: Sequence[LaneRun], watched: Watched, policy: Policy) -> dict[str, Any]:
    least = max(policy.resolution, LEAST_RELATIVE) if watched.relative else LEAST_SHARE
    found = find_changes(watched.values, least, relative=watched.relative)
    return {
        "metric": watched.name,
        "unit": watched.unit,
        "better": watched.better,
        "run_count": len(watched.values),
        "values": list(watched.values),
        "changes": [_change(runs, watched, change, policy) for change in found.changes],
        "spikes": [_run(runs[watched.places[at]]) | {"value": watched.values[at]} for at in found.spikes],
    }


def _change(runs: Sequence[LaneRun], watched: Watched, change: Change, policy: Policy) -> dict[str, Any]:
    attribution = attribute(runs, [watched.places[at] for at in change.choices], policy)
    ratio = change.after / change.before if change.before else None
    higher = change.after > change.before
    better = None if watched.better == "none" else higher == (watched.better == "higher")
    return {
        "kind": change.kind,
        "outcome": "different" if better is None else "better" if better else "worse",
        "run": _run(runs[attribution.at]),
        "before": change.before,
        "after": change.after,
        "ratio": ratio,
        "fields": [asdict(field) for field in attribution.fields],
        "commits": None if attribution.commits is None else {"from": attribution.commits[0], "to": attribution.commits[1]},
    }


def _run(run: LaneRun) -> dict[str, Any]:
    return {"name": run.name, "at": run.time, "log_sha256": run.log_sha256}
