"""Build the history document: the changes of every lane, and the header fields that changed at the same run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from receipt_cli.analysis.checks import outcome
from receipt_cli.comparison.comparable import describe_run
from receipt_cli.comparison.policy import Policy
from receipt_cli.definitions.metrics import Registry
from receipt_cli.documents.diff import differences
from receipt_cli.history.changes import Change, find_changes
from receipt_cli.history.lanes import BY, LEAST_FINISHED, Document, Lane, LaneRun, Watched, describe, make_lanes, watch

SCHEMA_VERSION = "history/1.1"
LEAST_RELATIVE = 0.02
LEAST_SHARE = 0.1
"""Smallest reported change: of a metric, relative to its level; of a share of runs or time, absolute."""
REACH = 4
"""Runs on each side over which a field must keep its value for its change to count as lasting."""


def history(
    receipts: Iterable[Document], policy: Policy, registry: Registry, lane: str | None = None, by: Sequence[str] = BY
) -> dict[str, Any]:
    """Return the history (``history/1.1``) of all lanes and groups, or of the lane ``lane``. Values are in base units.

    ``outcomes`` counts the runs by outcome; ``alone`` are runs without a lane that are in no group, with the fields unknown.
    """
    given = [document for document in receipts if lane is None or document["run"]["lane"] == lane]
    lanes, alone = make_lanes(given, by)
    return {
        "schema_version": SCHEMA_VERSION,
        "by": list(by),
        "least_finished": LEAST_FINISHED,
        "outcomes": dict(sorted(Counter(outcome(document) for document in given).items())),
        "lanes": [_lane(each, policy, registry) for each in lanes],
        "alone": [{**_run(run), "unknown": [field for field in by if not describe(run.document, field)]} for run in alone],
    }


def worsened(document: dict[str, Any]) -> bool:
    """Return whether the last change of any figure is for the worse."""
    metrics = [metric for lane in document["lanes"] for metric in lane["metrics"] if metric["changes"]]
    return any(metric["changes"][-1]["outcome"] == "worse" for metric in metrics)


def _lane(lane: Lane, policy: Policy, registry: Registry) -> dict[str, Any]:
    return {
        "lane": lane.lane,
        "preset": lane.preset,
        "group": list(lane.group),
        "run_count": len(lane.runs),
        "undated_count": len(lane.undated),
        "finished_count": lane.finished,
        "searched": lane.searched,
        "first_at": lane.runs[0].time if lane.runs else None,
        "last_at": lane.runs[-1].time if lane.runs else None,
        "metrics": [_metric(lane, watched, policy) for watched in watch(lane, registry)],
    }


def _metric(lane: Lane, watched: Watched, policy: Policy) -> dict[str, Any]:
    runs, least = lane.runs, max(policy.resolution, LEAST_RELATIVE) if watched.relative else LEAST_SHARE
    findings = find_changes(watched.values if lane.searched else (), least, relative=watched.relative)
    return {
        "metric": watched.name,
        "unit": watched.unit,
        "better": watched.better,
        "run_count": len(watched.values),
        "values": list(watched.values),
        "changes": [_change(runs, watched, change, policy) for change in findings.changes],
        "spikes": [_run(runs[watched.places[at]]) | {"value": watched.values[at]} for at in findings.spikes],
    }


def _change(runs: Sequence[LaneRun], watched: Watched, change: Change, policy: Policy) -> dict[str, Any]:
    at, fields = _attribute(runs, [watched.places[place] for place in change.choices], policy)
    ratio = change.after / change.before if change.before else None
    higher = change.after > change.before
    better = None if watched.better == "none" else higher == (watched.better == "higher")
    return {
        "kind": change.kind,
        "outcome": "different" if better is None else "better" if better else "worse",
        "run": _run(runs[at]),
        "before": change.before,
        "after": change.after,
        "ratio": ratio,
        "fields": fields,
        "commits": _commits(runs, at),
    }


def _run(run: LaneRun) -> dict[str, Any]:
    return {"name": run.name, "at": run.time, "log_sha256": run.log_sha256, "run_id": run.run_id}


def _attribute(runs: Sequence[LaneRun], choices: Sequence[int], policy: Policy) -> tuple[int, list[dict[str, Any]]]:
    """Return the first of ``choices`` (indices into ``runs``, best first) at which a field changed, and the changed fields.

    The figure alone often leaves several neighbouring runs; a changed field decides between them. Fields that the policy ignores
    (names, seeds, commits) do not count.
    """

    @cache
    def described(place: int) -> Mapping[str, Any]:
        return {**describe_run(runs[place].document), **_reading(runs[place].document)}

    for at in choices:
        fields = list(_changed(len(runs), at, described, policy))
        if fields:
            return at, fields
    return choices[0], []


def _reading(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return grammars and rules of a receipt: another version may read the same text differently."""
    derivation = document["derivation"]
    return {
        "/derivation/grammars": ", ".join(f"{g['id']}@v{g['version']}" for g in derivation["grammars"]) or None,
        "/derivation/rules": derivation["rules"],
    }


def _changed(count: int, at: int, described: Callable[[int], Mapping[str, Any]], policy: Policy) -> Iterator[dict[str, Any]]:
    """Yield the fields with one value before the run ``at`` and another from it on."""
    before = [described(i) for i in range(max(0, at - REACH), at)]
    after = [described(i) for i in range(at, min(count, at + REACH))]
    for place, value in after[0].items():
        old = before[-1].get(place) if before else None
        if value is None or old is None or not differences(old, value) or policy.severity(place) == "ignore":
            continue
        kept = [_keeps(side, place, known) for side, known in ((before, old), (after, value))]
        if all(kept):
            yield {"pointer": place, "before": old, "after": value}


def _keeps(side: Sequence[Mapping[str, Any]], place: str, value: object) -> bool:
    """Return whether no run on this side has another value."""
    return all(run.get(place) is None or not differences(run[place], value) for run in side)


def _commits(runs: Sequence[LaneRun], at: int) -> dict[str, str] | None:
    if at == 0:
        return None
    old, new = (runs[place].document["header"]["git"]["commit"] for place in (at - 1, at))
    return {"from": old, "to": new} if old and new and old != new else None
