"""Evaluate the checks and gates of a CI job on a receipt and its baseline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from receipt_cli.analysis.checks import CORE, TRUNCATED, contradicted_metrics, healthy, outcome, proven
from receipt_cli.ci.gates import Bound, Change, Gates
from receipt_cli.ci.golden import golden_rulings
from receipt_cli.ci.quantities import quantity_rulings
from receipt_cli.ci.rulings import Ruling, State
from receipt_cli.comparison.comparable import Policy, judge
from receipt_cli.comparison.comparable import Verdict as Comparability
from receipt_cli.comparison.contrasts import Contrast, Run, comparison_document, contrast
from receipt_cli.comparison.golden import Held, System
from receipt_cli.comparison.measured import Measured
from receipt_cli.definitions.metrics import Metric, Registry, load_registry
from receipt_cli.problems import split_pointer, value_at
from receipt_cli.render.comparison.words import figures, reason_text
from receipt_cli.render.scale import measure, percent, signed


@dataclass(frozen=True, slots=True)
class Baseline:
    """The baseline runs and their comparison with a job's run; the verdict is the worst over all of them."""

    names: tuple[str, ...]
    contrast: Contrast
    verdict: Comparability
    reasons: tuple[str, ...]

    def metric(self, name: str) -> Mapping[str, Any] | None:
        """Return the comparison of one metric, or None if a run lacks it."""
        return next((m for m in self.contrast.document["metrics"] if m["name"] == name), None)

    def document(self) -> dict[str, Any]:
        """Return the comparison document (``comparison/1.4``)."""
        contrast = {**self.contrast.document, "verdict": self.verdict, "reasons": list(self.reasons)}
        return comparison_document(self.names, [contrast])


def hold_against(run: Run, baselines: Sequence[Run], policy: Policy, registry: Registry) -> Baseline:
    """Compare ``run`` with ``baselines``, pooled as repeats of each other."""
    comparison = contrast(baselines, [run], policy, registry)
    judgements = [comparison.judgement, *(judge(other.document, run.document, policy) for other in baselines[1:])]
    ranked: tuple[Comparability, ...] = ("not_comparable", "caveats")
    worst: Comparability = next((v for v in ranked if any(judgement.verdict == v for judgement in judgements)), "comparable")
    reasons = dict.fromkeys(reason for judgement in judgements for reason in judgement.reasons)
    return Baseline(tuple(other.name for other in baselines), comparison, worst, tuple(reasons))


SCHEMA_VERSION = "verdict/1.1"
_MAX_REASONS = 3
_WORDS = {True: "true", False: "false", None: "unknown"}
HEALTH = {
    "finite_losses": ("a loss is not finite", "finite losses"),
    "zero_exit_code": ("exit code not 0", "0"),
    "has_steps": ("no training step", "steps"),
    "no_oom": ("out of memory", "enough memory"),
}
"""Core check → its finding if it is false, and the wanted state."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """All rulings on one receipt, checks first."""

    rulings: tuple[Ruling, ...]
    baseline: Baseline | None
    healthy: bool
    proven: bool
    golden: Held | None = None

    @property
    def passed(self) -> bool:
        """Whether no ruling fails the job."""
        return not any(ruling.fails for ruling in self.rulings)

    def count(self, state: State) -> int:
        """Return the number of rulings with this state."""
        return sum(ruling.state == state for ruling in self.rulings)

    def of_kind(self, kind: str) -> list[Ruling]:
        """Return the rulings on checks or on gates."""
        return [ruling for ruling in self.rulings if ruling.kind == kind]

    def document(self, receipt: Mapping[str, Any]) -> dict[str, Any]:
        """Return the verdict on ``receipt`` as a JSON document."""
        baseline = self.baseline
        return {
            "schema_version": SCHEMA_VERSION,
            "passed": self.passed,
            "healthy": self.healthy,
            "proven": self.proven,
            "failure_reason": (receipt.get("failure") or {}).get("reason"),
            "rulings": [{**asdict(ruling), "state": ruling.state} for ruling in self.rulings],
            "comparison": baseline.document() if baseline is not None else None,
            "golden": self.golden.document() if self.golden is not None else None,
        }


def rule(
    document: Mapping[str, Any],
    gates: Gates,
    baseline: Baseline | None,
    golden: Held | None = None,
    measured: Measured | None = None,
    lane: Sequence[Mapping[str, Any]] | None = None,
) -> Verdict:
    """Return the verdict of the gates on the receipt ``document``.

    ``baseline`` and ``golden`` are None without them, ``measured`` without the log, and ``lane``, the receipts of earlier runs of
    the lane, oldest first, without a store.
    """
    checks: dict[str, bool | None] = document["checks"]
    own = gates.of_system(*System.of(document)) if gates.systems else gates
    fails = gates.unknown.bounds == "fail"
    strange = [] if own is not None else [_unanswered("bounds", "system", "", "no system of the gates fits", fails)]
    gates = gates if own is None else own
    changes = gates.of_kind(Change)
    rulings = [
        *_checks(document, gates),
        *_failure(document, gates),
        *(_bound(document, bound, fails) for bound in gates.of_kind(Bound)),
        *strange,
        *quantity_rulings(gates, measured),
        *(_change(change, gates, baseline) for change in changes if change.lane_last is None),
        *(_of_lane(document, change, gates, lane) for change in changes if change.lane_last is not None),
        *(golden_rulings(golden, unknown_fails=fails) if golden is not None else ()),
    ]
    fine = healthy(checks, document["failure"], allow_truncated=gates.allow_truncated)
    return Verdict(tuple(rulings), baseline, fine is True, proven(checks), golden)


def _checks(document: Mapping[str, Any], gates: Gates) -> Iterator[Ruling]:
    checks: dict[str, bool | None] = document["checks"]
    stated = [document.get("run"), (document.get("derivation") or {}).get("options")]
    exit_code = next((part["exit_code"] for part in stated if part and part.get("exit_code")), None)
    asked = [name for name in gates.require if name not in ("healthy", "proven")]
    for name in dict.fromkeys([*checks, *asked]):  # a receipt of an older version may lack a check
        answer = checks.get(name)
        core = name in CORE
        proof = core and "proven" in gates.require
        health = core and "healthy" in gates.require
        required = proof or health or name in asked
        fails = required and answer is False
        if answer is None:
            fails = (
                proof
                or (health and name == "has_steps" and not gates.allow_unknown)
                or (name in asked and gates.unknown.checks == "fail")
            )
        reason = None
        if answer is None and fails:
            reason = "a proof is required" if proof else "the gates require an answer"
        elif answer is False and not fails:
            reason = "not required by the gates"
        wrong, want = HEALTH.get(name, ("false", "true"))
        if name == "zero_exit_code" and exit_code:
            wrong = f"exit code {exit_code}"
        wanted = want if proof or health or name in asked else ""
        yield Ruling("check", name, answer, fails, wanted, wrong if answer is False else _WORDS[answer], reason)


def _failure(document: Mapping[str, Any], gates: Gates) -> Iterator[Ruling]:
    """Rule on a failed run, or one whose log stops early, if no core check is false."""
    checks, failure = document["checks"], document["failure"]
    if failure is None or any(checks.get(name) is False for name in CORE):
        return
    allowed = gates.allow_truncated and failure["reason"] == TRUNCATED
    allowed = allowed or (gates.allow_unknown and healthy(checks, failure) is None)
    required = "healthy" in gates.require or "proven" in gates.require
    reason = "allowed" if allowed else None if required else "not required by the gates"
    yield Ruling(
        "check", "no_failure", False, required and not allowed, "no failure" if required else "", failure["reason"], reason
    )


def _unanswered(kind: str, name: str, wanted: str, reason: str, fail: bool) -> Ruling:
    why = f"the gates require an answer for {kind}" if fail else None
    return Ruling("gate", name, None, fail, wanted, f"unknown: {reason}", why)


def _bound(document: Mapping[str, Any], bound: Bound, fails: bool) -> Ruling:
    value = _number(document, bound.pointer)
    wanted = bound.wanted(lambda limit: measure(bound.measure, limit))
    if value is None:
        return _unanswered("bounds", bound.name, wanted, "no such figure", fails)
    good = bound.allows(value)
    found = measure(bound.measure, value)
    if not good and any(found == measure(bound.measure, limit) for _, limit in bound.limits):
        found = f"{value!r}"  # when rounded, it would equal the limit
    return Ruling("gate", bound.name, good, not good, wanted, found)


def _number(document: Mapping[str, Any], place: str) -> float | None:
    value = value_at(document, split_pointer(place))
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _change(gate: Change, gates: Gates, baseline: Baseline | None) -> Ruling:
    """Rule on a change: no only if the whole interval is beyond the limit, yes if the figure is within it."""
    wanted = f"{gate.direction} by at most {100 * gate.at_most:.6g} %"
    fail = gates.unknown.changes == "fail"
    reason = _no_comparison(gate, baseline)
    entry = baseline.metric(gate.metric) if baseline is not None else None
    if reason is not None or entry is None:
        return _unanswered("changes", gate.name, wanted, reason or "not every run has this metric", fail)
    if entry["outcome"] == "lost":
        return Ruling("gate", gate.name, False, True, wanted, "the run does not print this metric, but the baseline does")
    unit, a, b = figures(entry)
    bounds = "" if entry["low"] is None else f" (95 %: {_share(entry, 'low')} to {_share(entry, 'high')})"
    found = f"{a} → {b} {unit}".rstrip() + f", {_share(entry, 'delta')}{bounds}"
    answer = _within(gate, entry)
    if answer is None:
        return Ruling("gate", gate.name, None, fail, wanted, found, "over the limit, though within noise or printed digits")
    return Ruling("gate", gate.name, answer, not answer, wanted, found)


_LEAST_RUNS = 3
"""Fewest earlier runs of a lane whose median is a reference."""


def _of_lane(document: Mapping[str, Any], gate: Change, gates: Gates, lane: Sequence[Mapping[str, Any]] | None) -> Ruling:
    """Rule on a change against the median of the last runs of the lane that have the metric and finished."""
    metric, fail = load_registry().by_name[gate.metric], gates.unknown.changes == "fail"
    wanted = f"{gate.direction} by at most {100 * gate.at_most:.6g} % than the last {gate.lane_last} of the lane"
    if lane is None:
        return _unanswered("changes", gate.name, wanted, "no store with runs of the lane, or the lane is unknown", fail)
    found = _headline(document, metric)
    earlier = [value for one in lane if outcome(one) == "finished" and (value := _headline(one, metric)) is not None]
    earlier = earlier[-(gate.lane_last or 1) :]
    if found is None or len(earlier) < _LEAST_RUNS:
        lacks = "no such figure" if found is None else f"only {len(earlier)} finished runs of the lane have it"
        return _unanswered("changes", gate.name, wanted, lacks, fail)
    usual = median(earlier)
    if not usual:
        return _unanswered("changes", gate.name, wanted, "the median of the lane is zero, so no ratio exists", fail)
    ratio = (found - usual) / abs(usual)
    worse = abs(ratio) if gate.direction == "differs" else -ratio if metric.better == "higher" else ratio
    told = f"{measure(gate.metric, usual)} → {measure(gate.metric, found)}, {signed(ratio, percent)} ({len(earlier)} runs)"
    return Ruling("gate", gate.name, worse <= gate.at_most, worse > gate.at_most, wanted, told)


def _headline(document: Mapping[str, Any], metric: Metric) -> float | None:
    """Return the figure by which a metric is compared; None if it is missing, or the log contradicts it."""
    summary = document.get("summary") or {}
    if metric.name in contradicted_metrics(summary):
        return None
    value: float | None = (summary.get("metrics", {}).get(metric.name) or {}).get(metric.headline)
    return value


def _no_comparison(gate: Change, baseline: Baseline | None) -> str | None:
    """Return the reason why the gate has no answer, judged without any figure; None if it may have one."""
    if baseline is None:
        return "no baseline was given"
    if baseline.verdict == "not_comparable":
        return f"not comparable: {'; '.join(map(reason_text, baseline.reasons[:_MAX_REASONS]))}"
    entry = baseline.metric(gate.metric)
    if entry is None:
        return None
    if entry["outcome"] == "incomparable":
        return str(entry["reason"])
    if entry["outcome"] == "gained":
        return "the baseline has no such metric"
    if entry["outcome"] == "lost":
        return None
    if entry["a"] == 0 != entry["b"]:
        return "the baseline is zero, so no ratio exists"
    if gate.interval == "required" and entry["low"] is None:
        return "no interval: needs the logs of both sides, or repeats"
    return None


def _share(m: Mapping[str, Any], key: str) -> str:
    """Return a difference as a signed percentage of the baseline's figure, like the limits."""
    return signed(m[key] / abs(m["a"]) if m["a"] else 0.0, percent)


def _within(gate: Change, m: Mapping[str, Any]) -> bool | None:
    """Return whether b - a is within the limit; None if it is not, but the interval leaves that open."""
    lean = -1 if gate.direction == "worse" and m["better"] == "higher" else 1
    limit = gate.at_most * abs(m["a"])
    delta = lean * m["delta"]
    known = [delta - m["floor"], delta + m["floor"], *(lean * m[side] for side in ("low", "high") if m[side] is not None)]
    if delta <= limit and (gate.direction == "worse" or -delta <= limit):
        return True
    beyond = min(known) > limit or (gate.direction == "differs" and max(known) < -limit)
    return False if beyond else None
