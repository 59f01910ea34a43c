"""Build the comparison document: each group of runs is compared with the first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from receipt_cli.analysis.checks import contradicted_metrics, outcome
from receipt_cli.comparison.comparable import Document, Judgement, Policy, judge
from receipt_cli.comparison.metrics import LEVEL, Figures, MetricComparison, compare_metrics
from receipt_cli.definitions.metrics import Registry
from receipt_cli.numeric.array_types import Floats
from receipt_cli.numeric.arrays import last_of_each
from receipt_cli.numeric.intervals import INTERVAL_RULE, MIN_VALUES, interval, mean_spread, without_outliers
from receipt_cli.numeric.precision import printed_unit

MIN_COMMON = 4
"""Least number of common places for a comparison."""
_TAIL = 10
"""The last 1 / ``_TAIL`` of the common places is the end of a run."""
_NOISE = 1.4826
"""Standard deviation / median absolute deviation of normal noise."""
_FAR = 4.0
"""Smoothed difference at which curves have diverged, in standard deviations."""


@dataclass(frozen=True, slots=True)
class Curve:
    """Values of a metric at ascending places (such as steps or tokens); the last value of a repeated place counts."""

    places: Sequence[float] | Floats
    values: Sequence[float] | Floats
    digits: Mapping[str, int] | None = None
    """Number of digits with which the values were printed; None if unknown."""


def compare_curves(a: Curve, b: Curve, *, between: bool = False) -> dict[str, Any] | None:
    """Return the comparison of two curves as JSON values, or None if they share fewer than ``MIN_COMMON`` places.

    ``between``: interpolate b linearly at the places of a; else compare only common places.

    ``first_difference`` is the first place with different printed values (None: none); after ``departure`` the smoothed
    difference stays beyond its noise; ``end_delta`` is the mean of b - a over the last tenth of the places, with its 95 %
    interval ``low`` to ``high``, from the steps of these two runs only.
    """
    left, right = _finite(a), _finite(b)
    if between and len(right[0]):
        inside = (left[0] >= right[0][0]) & (left[0] <= right[0][-1])
        common, first = left[0][inside], left[1][inside]
        second = np.interp(common, *right)
    else:
        common, at_left, at_right = np.intersect1d(left[0], right[0], assume_unique=True, return_indices=True)
        first, second = left[1][at_left], right[1][at_right]
    if len(common) < MIN_COMMON:
        return None
    apart = second - first
    floor = max(printed_unit(a.digits, left[1].tolist()), printed_unit(b.digits, right[1].tolist()))
    unequal = np.flatnonzero(np.abs(apart) >= floor) if floor else np.flatnonzero(apart)
    leaving = _departure(apart, floor)
    tail = apart[-max(1, len(apart) // _TAIL) :]
    end = mean_spread(tail)
    low, high = interval(end) if end is not None else (None, None)
    return {
        "common": len(common),
        "first": float(common[0]),
        "last": float(common[-1]),
        "first_difference": float(common[unequal[0]]) if len(unequal) else None,
        "departure": float(common[leaving]) if leaving is not None else None,
        "departure_delta": float(apart[leaving]) if leaving is not None else None,
        "end_delta": float(tail.mean()),
        "low": low,
        "high": high,
    }


def _finite(curve: Curve) -> tuple[Floats, Floats]:
    places, values = np.asarray(curve.places, np.float64), np.asarray(curve.values, np.float64)
    known = np.isfinite(places) & np.isfinite(values)
    return last_of_each(places[known], values[known])


def _departure(apart: Floats, floor: float) -> int | None:
    """Return the index from which the difference stays beyond its noise, or None.

    The noise is the change from one place to the next. Medians over windows of 1/50 of the curve are compared with it.
    """
    width = max(3, len(apart) // 50) | 1
    if len(apart) < 2 * width:
        return None
    noise = _NOISE * float(np.median(np.abs(np.diff(apart)))) / np.sqrt(2)
    far = max(floor, _FAR * noise * 1.2533 / np.sqrt(width))  # sqrt(pi / 2): standard error of a median / of a mean
    windows = np.lib.stride_tricks.sliding_window_view(apart, width)
    smooth = np.median(windows, axis=1)
    near = np.flatnonzero(np.abs(smooth) < far) if far else np.flatnonzero(smooth == 0)
    begin = int(near[-1]) + 1 if len(near) else 0
    if begin >= len(smooth):
        return None
    middle = begin + width // 2
    beyond = np.flatnonzero(np.abs(apart[begin : middle + 1]) >= max(far, floor))
    return begin + int(beyond[0]) if len(beyond) else middle


STALL_RULE = "step_stalls/1"
STALLING = "step_time_s"
LEAST_STALL = 1.2
"""Least stalled step time / median of its window; a shorter step is noise of a steady run."""

STALL_LEVEL = 0.99
"""Confidence needed for a difference; it is high because the binomial distribution ignores bursts."""

StallOutcome = Literal["better", "worse", "no_evidence", "equal"]


@dataclass(frozen=True, slots=True)
class Stalls:
    """``stalled`` of ``records`` steps, in ``episodes``; ``rate`` is their share of steps, ``cost`` the share of the run's
    time that they took beyond the median around them.
    """

    records: int
    stalled: int
    episodes: int
    rate: float
    cost: float


def find_stalls(values: Sequence[float]) -> Stalls | None:
    """Return the stalls in the step times ``values`` ([n] seconds, in step order); None if too few or not positive.

    A step stalls if its time is an outlier of its window (``without_outliers``) and at least ``LEAST_STALL`` times the window's
    median. Consecutive stalls are one episode, because they have one cause.
    """
    data = np.asarray(values, np.float64)
    if len(data) < MIN_VALUES or data.min() <= 0:
        return None
    calm, outliers = without_outliers(data)
    stalled = outliers & (data >= LEAST_STALL * calm)
    episodes = int(stalled[0]) + int((stalled[1:] & ~stalled[:-1]).sum())
    lost = float((data - calm)[stalled].sum())
    count = int(stalled.sum())
    return Stalls(len(data), count, episodes, count / len(data), lost / float(data.sum()))


def compare_stalls(a: Sequence[Sequence[float]], b: Sequence[Sequence[float]]) -> dict[str, Any] | None:
    """Return the stalls of each side and the outcome for b; None if neither side stalls or one has too few steps."""
    sides = [[found for values in side if (found := find_stalls(values)) is not None] for side in (a, b)]
    if not all(sides) or not any(found.stalled for side in sides for found in side):
        return None
    left, right = (_together(side) for side in sides)
    chance = _probability(left, right)
    outcome: StallOutcome = "equal" if left.rate == right.rate else "no_evidence"
    if chance < 1 - STALL_LEVEL:
        outcome = "worse" if right.episodes / right.records > left.episodes / left.records else "better"
    return {"metric": STALLING, "rule": STALL_RULE, "a": asdict(left), "b": asdict(right), "outcome": outcome}


def _together(side: Sequence[Stalls]) -> Stalls:
    records = sum(one.records for one in side)
    rate, cost = (sum(getattr(one, name) * one.records for one in side) / records for name in ("rate", "cost"))
    return Stalls(records, sum(one.stalled for one in side), sum(one.episodes for one in side), rate, cost)


def _probability(a: Stalls, b: Stalls) -> float:
    """Return the two-sided p-value of ``b.episodes`` under the hypothesis that both stall equally often.

    One run's share of all episodes is then binomial (Przyborowski and Wilenski 1940); bursts of episodes are not modelled.
    """
    total, share = a.episodes + b.episodes, b.records / (a.records + b.records)
    masses = [
        math.exp(math.lgamma(total + 1) - math.lgamma(k + 1) - math.lgamma(total - k + 1))
        * share**k * (1 - share) ** (total - k)
        for k in range(total + 1)
    ] if total < 500 else []  # fmt: skip
    if not masses:  # normal approximation with continuity correction
        middle, sigma = total * share, math.sqrt(total * share * (1 - share))
        return math.erfc(max(0.0, abs(b.episodes - middle) - 0.5) / sigma / math.sqrt(2))
    return min(1.0, 2 * min(sum(masses[: b.episodes + 1]), sum(masses[b.episodes :])))


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
            comparisons.append({"metric": name, "axis": axis, **compared})
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
