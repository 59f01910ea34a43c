"""Build the comparison document: each group of runs is compared with the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from receipt_cli.analysis.checks import contradicted_metrics, outcome
from receipt_cli.comparison.comparable import Document, Judgement, judge
from receipt_cli.comparison.curves import Curve, compare_curves
from receipt_cli.comparison.metrics import LEVEL, Figures, MetricComparison, compare_metrics
from receipt_cli.comparison.policy import Policy
from receipt_cli.comparison.stalls import METRIC as STALLING
from receipt_cli.comparison.stalls import compare_stalls
from receipt_cli.definitions.metrics import Registry
from receipt_cli.numeric.intervals import INTERVAL_RULE, MIN_VALUES

SCHEMA_VERSION = "comparison/1.4"
Axis = Literal["step", "tokens", "samples", "time"]

FLOPS_COUNTED = ("flops_per_s", "flops_per_s_per_device", "mfu_ratio", "hfu_ratio", "hardware_flops_per_s_per_device")
"""Metrics that depend on a trainer's count of FLOPs: 6N in one, 18N in another."""


@dataclass(frozen=True, slots=True)
class Run:
    """A receipt, and values from its log.

    ``steady`` maps a metric to its values in the steady window, in step order; ``curves`` maps a loss-like metric to its
    values along an axis. Both are empty without the log.
    """

    name: str
    document: Document
    steady: Mapping[str, Sequence[float]] = field(default_factory=dict)
    curves: Mapping[str, Curve] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Contrast:
    """The comparison of a group of runs with the baseline, by ``judge`` and ``compare_metrics``."""

    runs: tuple[Run, ...]
    judgement: Judgement
    metrics: tuple[MetricComparison, ...]
    document: dict[str, Any]

    @property
    def bad(self) -> bool:
        """Whether these runs are worse in a metric or check, lack a metric, or are not comparable."""
        checks = any(check["a"] is not False and check["b"] is False for check in self.document["outcome"]["checks"])
        return checks or self.judgement.verdict == "not_comparable" or any(m.outcome in ("worse", "lost") for m in self.metrics)


def group(runs: Sequence[Run], policy: Policy) -> list[list[Run]]:
    """Return the runs as groups of repeats; the group of the first run comes first.

    Repeats have the same named lane, grammars and commit, and differ in no field that the policy checks. If all runs are
    repeats, each becomes its own group: the comparison then shows the variation between repeats.
    """
    groups: list[list[Run]] = []
    for run in runs:
        mine = next((g for g in groups if _repeats(g[0], run, policy)), None)
        if mine is None:
            groups.append([run])
        else:
            mine.append(run)
    return groups if len(groups) > 1 else [[run] for run in runs]


def _repeats(a: Run, b: Run, policy: Policy) -> bool:
    lanes = {run.document["run"]["lane"] for run in (a, b)}
    commits = {run.document["header"]["git"]["commit"] for run in (a, b)}
    if None in lanes or len(lanes) > 1 or len(commits) > 1:
        return False
    readings = [[(g["id"], g["version"], g["sha256"]) for g in run.document["derivation"]["grammars"]] for run in (a, b)]
    apart = [f for f in judge(a.document, b.document, policy).differences if f.severity != "ignore"]
    return not apart and readings[0] == readings[1]


def contrast(baseline: Sequence[Run], others: Sequence[Run], policy: Policy, registry: Registry, axis: Axis = "step") -> Contrast:
    """Compare a group of runs with the baseline runs."""
    judgement = judge(baseline[0].document, others[0].document, policy)
    sides = [[_figures(run) for run in side] for side in (baseline, others)]
    metrics = tuple(compare_metrics(sides[0], sides[1], registry, policy.resolution))
    times = [[run.steady.get(STALLING, ()) for run in side] for side in (baseline, others)]
    document = {
        "runs": [run.name for run in others],
        "verdict": judgement.verdict,
        "reasons": list(judgement.reasons),
        "fields": [asdict(f) for f in judgement.differences],
        "outcome": _outcomes(baseline[0].document, others[0].document),
        "metrics": [{**asdict(m), "delta": m.delta, "ratio": m.ratio} for m in metrics],
        "stalls": compare_stalls(times[0], times[1]),
        "curves": _curves(baseline[0], others[0], axis),
        "notes": _notes(baseline, others, metrics),
    }
    return Contrast(tuple(others), judgement, metrics, document)


def compare_runs(
    runs: Sequence[Run], policy: Policy, registry: Registry, axis: Axis = "step"
) -> tuple[dict[str, Any], list[Contrast]]:
    """Return the comparison document of two or more runs, with the first as the baseline, and its contrasts."""
    groups = group(runs, policy)
    contrasts = [contrast(groups[0], others, policy, registry, axis) for others in groups[1:]]
    return comparison_document([run.name for run in groups[0]], [each.document for each in contrasts]), contrasts


def comparison_document(baseline: Sequence[str], contrasts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the document (``comparison/1.4``) of ``contrasts`` with the runs named ``baseline``, without targets."""
    return {
        "schema_version": SCHEMA_VERSION,
        "baseline": {"runs": list(baseline)},
        "level": LEVEL,
        "rule": INTERVAL_RULE,
        "contrasts": list(contrasts),
        "targets": [],
    }


def _figures(run: Run) -> dict[str, Figures]:
    """Return metric → figures of a run: printed values, or recomputed ones if none was printed or the log contradicts it.

    FLOP/s and MFU depend on the trainer's count of FLOPs: without a definition, the grammar's trainer defines them.
    """
    summary = run.document.get("summary") or {}
    printed: Mapping[str, Mapping[str, Any]] = summary.get("metrics", {})
    grammars = run.document["derivation"]["grammars"]
    trainer = f"flops_of_{grammars[0]['id']}" if grammars else None
    derived, doubtful = summary.get("derived", {}), contradicted_metrics(summary)
    printed = {name: entry for name, entry in printed.items() if name not in doubtful or name not in derived}
    statistics = {**derived, **printed}
    for name in FLOPS_COUNTED:
        if name in printed and printed[name]["definition"] is None:
            statistics[name] = {**printed[name], "definition": trainer}
    figures = {name: Figures(entry, printed=False) for name, entry in derived.items()}
    return figures | {name: Figures(statistics[name], run.steady.get(name), True, name in doubtful) for name in printed}


def _outcomes(a: Document, b: Document) -> dict[str, Any]:
    """Return the checks that differ, and how each run ended: its outcome, failure reason, last and planned step."""
    names = [name for name in dict.fromkeys([*a["checks"], *b["checks"]]) if a["checks"].get(name) is not b["checks"].get(name)]
    reasons = [(document.get("failure") or {}).get("reason") for document in (a, b)]
    checks = [{"check": name, "a": a["checks"].get(name), "b": b["checks"].get(name)} for name in names]
    steps = [(document.get("summary") or {}).get("steps") or {} for document in (a, b)]
    ends = [
        {"outcome": outcome(document), "step": found.get("last"), "planned": found.get("planned")}
        for document, found in zip((a, b), steps, strict=True)
    ]
    return {"checks": checks, "failure": {"a": reasons[0], "b": reasons[1]}, "ends": {"a": ends[0], "b": ends[1]}}


def _curves(a: Run, b: Run, axis: Axis) -> list[dict[str, Any]]:
    comparisons: list[dict[str, Any]] = []
    for name, curve in a.curves.items():
        compared = compare_curves(curve, b.curves[name], between=axis != "step") if name in b.curves else None
        if compared is not None:
            comparisons.append({"metric": name, "axis": axis, **asdict(compared)})
    return comparisons


def _notes(baseline: Sequence[Run], others: Sequence[Run], metrics: Sequence[MetricComparison]) -> list[str]:
    notes: list[str] = []
    counts = len(baseline), len(others)
    if min(counts) == 1:
        sizes = f"n = {counts[0]} and n = {counts[1]}"
        notes.append(f"no between-run variance: {sizes}; intervals are from the steps of these runs only")
    if all(m.outcome in ("lost", "gained") for m in metrics):
        notes.append("the runs have no metric in common")
    elif not all(run.steady for run in (*baseline, *others)):
        notes.append("a receipt has no steps: give the logs for intervals of rates and a comparison of curves")
    elif all(m.basis == "none" for m in metrics):
        notes.append(f"no intervals: a run has fewer than {MIN_VALUES} steady steps")
    return notes
