"""Build the history document: the changes of every lane, and the header fields that changed at the same run."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeAlias

from receipt_cli.analysis.checks import contradicted_metrics, healthy, outcome
from receipt_cli.comparison.comparable import Policy, count_ranks, describe_run
from receipt_cli.definitions.metrics import Registry
from receipt_cli.documents.canonical import run_id, run_time
from receipt_cli.documents.diff import differences
from receipt_cli.history.changes import Change, find_changes
from receipt_cli.problems import split_pointer, value_at

Document: TypeAlias = Mapping[str, Any]
Better = Literal["lower", "higher", "none"]

METRICS = (
    "tokens_per_s",
    "tokens_per_s_per_device",
    "samples_per_s",
    "step_time_s",
    "mfu_ratio",
    "peak_memory_allocated_bytes",
    "peak_memory_reserved_bytes",
    "peak_memory_bytes",
    "memory_allocated_bytes",
    "memory_reserved_bytes",
)
"""Watched metrics: the median of the steady state; for memory the maximum."""
BY = ("trainer", "model", "hardware", "ranks")
"""Fields by which runs without a lane are grouped."""
LEAST_FINISHED = 8
"""Fewest finished runs of a group without a name in which changes are sought."""
_SIZED = re.compile(r"\d ?[BM]\b")
"""A size in the name of a model."""
_UNNAMED = ("generic", "jsonl")
"""Grammars that name no trainer."""


@dataclass(frozen=True, slots=True)
class LaneRun:
    """One receipt of a lane; ``time`` (RFC 3339, UTC) is the start of the run, or the best known time of it."""

    document: Document
    log_sha256: str
    time: str | None

    @property
    def name(self) -> str:
        """The run's own name, else the first digits of the log's digest."""
        name: str | None = self.document["run"]["name"]
        return name or self.log_sha256[:12]

    @property
    def run_id(self) -> str:
        """The identity of the run."""
        return run_id(self.document)


@dataclass(frozen=True, slots=True)
class Lane:
    """The dated runs of one lane (or group) and preset, oldest first, and the ``undated`` ones.

    ``group`` are the values that the runs of a group have in common; a lane has none. ``finished`` counts the finished runs.
    """

    lane: str | None
    preset: str | None
    runs: tuple[LaneRun, ...]
    undated: tuple[LaneRun, ...]
    finished: int
    group: tuple[str, ...] = ()

    @property
    def searched(self) -> bool:
        """Whether a change can be told from the difference of runs: they have a name, or enough of them finished."""
        return self.lane is not None or self.finished >= LEAST_FINISHED


@dataclass(frozen=True, slots=True)
class Watched:
    """A figure over the runs of a lane: its values, and the index of each value's run in the lane.

    ``relative``: a change is relative to the level before; else absolute (shares from 0 to 1).
    """

    name: str
    unit: str
    better: Better
    places: tuple[int, ...]
    values: tuple[float, ...]
    relative: bool = True


def make_lanes(receipts: Iterable[Document], by: Sequence[str] = BY) -> tuple[list[Lane], list[LaneRun]]:
    """Return the lanes of ``receipts`` by name, then the groups of two or more runs without a lane, and the runs alone.

    Runs form a group if all fields ``by`` (see ``describe``) are known and equal, largest group first.
    """
    found: dict[tuple[str | None, str | None, tuple[str, ...]], list[LaneRun]] = {}
    alone: list[LaneRun] = []
    for document in receipts:
        lane, preset, when = document["run"]["lane"], document["run"]["preset"], run_time(document)
        run = LaneRun(document, document["derivation"]["log"]["sha256"], when and when.time)
        values = () if lane is not None else tuple(describe(document, field) or "" for field in by)
        if lane is None and not all(values):
            alone.append(run)
        else:
            found.setdefault((lane, preset, values), []).append(run)
    lanes: list[Lane] = []
    for (lane, preset, values), runs in found.items():
        if lane is None and len(runs) < 2:
            alone += runs
            continue
        dated = sorted((run for run in runs if run.time is not None), key=lambda run: (_instant(run.time), run.run_id))
        undated = sorted((run for run in runs if run.time is None), key=lambda run: run.run_id)
        finished = sum(outcome(run.document) == "finished" for run in runs)
        lanes.append(Lane(lane, preset, tuple(dated), tuple(undated), finished, values))
    lanes.sort(key=lambda lane: (lane.lane or "", lane.preset is None, lane.preset or "", lane.group))
    lanes.sort(key=lambda lane: (lane.lane is None, -len(lane.runs) - len(lane.undated) if lane.lane is None else 0))
    return lanes, sorted(alone, key=lambda run: (run.time is None, _instant(run.time), run.run_id))


def describe(document: Document, field: str) -> str | None:
    """Return one of ``BY`` of a receipt, or the value at a JSON pointer such as ``/header/git/branch``; None if unknown.

    A model without the name of its architecture is its number of parameters; hardware is the names of the accelerators.
    """
    header, grammars = document["header"], document["derivation"]["grammars"]
    if field == "trainer":
        named: str | None = next((g["id"] for g in grammars if g["id"] not in _UNNAMED), None) or header["software"]["trainer"]
        return named
    if field == "model":
        model: str | None = header["model"]["architecture"]
        size = (document["summary"] or {}).get("parameter_count") or header["model"]["parameter_count"]
        if size is None or (model and _SIZED.search(model)):
            return model
        shown = f"{size / 1e9:.3g} B" if size >= 1e9 else f"{size / 1e6:.3g} M"
        return f"{model} {shown}" if model else f"{shown} parameters"
    if field == "hardware":
        names = [entry["name"] for entry in header["hardware"]["accelerators"] or ()]
        return " + ".join(names) if names and all(names) else None
    if field == "ranks":
        ranks = count_ranks(document)
        return None if ranks is None else str(ranks)
    value = value_at(document, split_pointer(field))
    return None if value is None else str(value)


def _instant(time: str | None) -> tuple[str, str]:
    """Return a sort key for times in UTC: a fraction of a second makes the text longer, not greater."""
    whole, _, part = (time or "").rstrip("Z").partition(".")
    return whole, part


def watch(lane: Lane, registry: Registry) -> Iterator[Watched]:
    """Yield every figure that the lane's runs have: metrics, goodput, and whether the run was healthy."""
    for name in METRICS:
        metric = registry.by_name[name]
        figure = "max" if metric.unit == "byte" else "median"
        values = [_statistic(run.document, name, figure) for run in lane.runs]
        yield from _watched(name, metric.unit, metric.better, values)
    goodput = [(run.document["goodput"] or {}).get("goodput_ratio") for run in lane.runs]
    yield from _watched("goodput_ratio", "1", "higher", goodput, relative=False)
    states = [healthy(run.document["checks"], run.document.get("failure")) for run in lane.runs]
    passed = [None if state is None else float(state) for state in states]
    yield from _watched("healthy", "1", "higher", passed, relative=False)


def _statistic(document: Document, name: str, figure: str) -> float | None:
    summary = document["summary"] or {}
    value = (summary.get("metrics", {}).get(name) or {}).get(figure) if name not in contradicted_metrics(summary) else None
    return float(value) if value is not None and math.isfinite(value) else None


def _watched(name: str, unit: str, better: Better, figures: Sequence[float | None], relative: bool = True) -> Iterator[Watched]:
    places = [i for i, value in enumerate(figures) if value is not None]
    if places:
        yield Watched(name, unit, better, tuple(places), tuple(v for v in figures if v is not None), relative)


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
        seen = [(run.get(place), known) for side, known in ((before, old), (after, value)) for run in side]
        if not any(own is not None and differences(own, known) for own, known in seen):
            yield {"pointer": place, "before": old, "after": value}


def _commits(runs: Sequence[LaneRun], at: int) -> dict[str, str] | None:
    if at == 0:
        return None
    old, new = (runs[place].document["header"]["git"]["commit"] for place in (at - 1, at))
    return {"from": old, "to": new} if old and new and old != new else None
