"""Evaluate the checks and gates of a CI job on a receipt, its baseline, its log and golden curves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any, Literal

from receipt_cli.analysis.checks import CORE, TRUNCATED, contradicted_metrics, healthy, outcome, proven
from receipt_cli.ci.gates import Bound, Change, Gates, LineCount, Quantity, Slope
from receipt_cli.comparison.comparable import Policy, judge
from receipt_cli.comparison.comparable import Verdict as Comparability
from receipt_cli.comparison.contrasts import Contrast, Run, comparison_document, contrast
from receipt_cli.comparison.golden import Held, HeldCurve, System
from receipt_cli.comparison.measured import Measured
from receipt_cli.definitions.metrics import Metric, Registry, load_registry
from receipt_cli.problems import split_pointer, value_at
from receipt_cli.render.comparison.words import figures, reason_text
from receipt_cli.render.metrics import metric_label
from receipt_cli.render.plot import Curve, OverlaidRun, render_overlay
from receipt_cli.render.scale import measure, percent, signed
from receipt_cli.render.style import Style

State = Literal["passed", "failed", "unknown", "noted"]


@dataclass(frozen=True, slots=True)
class Ruling:
    """Result of one check or gate.

    ``answer`` is None if the receipt lacks the data; ``fails``: this ruling fails the job. ``wanted`` and ``found`` are words for
    people; ``reason`` explains a missing answer or why a no does not fail.
    """

    kind: Literal["check", "gate"]
    name: str
    answer: bool | None
    fails: bool
    wanted: str
    found: str
    reason: str | None = None

    @property
    def state(self) -> State:
        """The state; ``noted`` means that the answer is no, but a yes is not required."""
        if self.fails:
            return "failed"
        return "unknown" if self.answer is None else "passed" if self.answer else "noted"

    @property
    def sentence(self) -> str:
        """The ruling in one line."""
        wanted = f", wanted {self.wanted}" if self.wanted else ""
        return f"{self.found}{wanted}{f' ({self.reason})' if self.reason else ''}"


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
    value = value_at(document, split_pointer(bound.pointer))
    wanted = bound.wanted(lambda limit: measure(bound.measure, limit))
    if not isinstance(value, int | float) or isinstance(value, bool):
        return _unanswered("bounds", bound.name, wanted, "no such figure", fails)
    value = float(value)
    good = bound.allows(value)
    found = measure(bound.measure, value)
    if not good and any(found == measure(bound.measure, limit) for _, limit in bound.limits):
        found = f"{value!r}"  # when rounded, it would equal the limit
    return Ruling("gate", bound.name, good, not good, wanted, found)


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


_NO_LOG = "unknown: the log shows it; give the log, or --log"


def quantity_rulings(gates: Gates, measured: Measured | None) -> Iterator[Ruling]:
    """Yield a ruling for each percentile, spread, slope and line of the gates; ``measured`` is None without a log."""
    fails = gates.unknown.bounds == "fail"
    for quantity in gates.of_kind(Quantity):
        yield _quantity(quantity, measured, fails)
    for slope in gates.of_kind(Slope):
        yield _slope(slope, measured, fails)
    lines = gates.of_kind(LineCount)
    counts: Sequence[tuple[int, int | None] | None] | None = (
        measured.count_lines([line.is_in for line in lines]) if measured and lines else None
    )
    for line, found in zip(lines, counts or [None] * len(lines), strict=True):
        yield _line(line, found, fails)


def _quantity(gate: Quantity, measured: Measured | None, fails: bool) -> Ruling:
    def shown(value: float) -> str:
        return percent(value) if gate.statistic == "spread" else measure(gate.metric, value)

    wanted = gate.wanted(shown)
    if measured is None:
        return Ruling("gate", gate.name, None, fails, wanted, _NO_LOG)
    spread = gate.statistic == "spread"
    value = measured.spread(gate.metric) if spread else measured.percentile(gate.metric, float(gate.statistic[1:]))
    if value is None:
        return Ruling("gate", gate.name, None, fails, wanted, "unknown: too few values")
    good = gate.allows(value)
    found = shown(value)
    return Ruling("gate", gate.name, good, not good, wanted, f"{value!r}" if found in wanted and not good else found)


def _slope(gate: Slope, measured: Measured | None, fails: bool) -> Ruling:
    """Rule on a slope: yes or no only if the whole 95 % interval is on one side of the limit."""
    wanted = gate.wanted(lambda limit: f"{limit:.4g} per step")
    if measured is None:
        return Ruling("gate", gate.name, None, fails, wanted, _NO_LOG)
    slope = measured.slope(gate.metric, gate.over)
    if slope is None:
        return Ruling("gate", gate.name, None, fails, wanted, "unknown: too few values")
    found = f"{slope.value:.3g} per step (95 %: {slope.low:.3g} to {slope.high:.3g}), steps {slope.first} to {slope.last}"
    beyond = (gate.at_least is not None and slope.high < gate.at_least) or (gate.at_most is not None and slope.low > gate.at_most)
    within = gate.allows(slope.low, slope.high)
    if beyond or within:
        return Ruling("gate", gate.name, within, beyond, wanted, found)
    return Ruling("gate", gate.name, None, fails, wanted, found, "the interval leaves it open")


def _line(gate: LineCount, found: tuple[int, int | None] | None, fails: bool) -> Ruling:
    wanted = "no line" if gate.at_most == 0 else gate.wanted(lambda limit: f"{limit} lines")
    if found is None:
        return Ruling("gate", gate.name, None, fails, wanted, _NO_LOG)
    count, first = found
    good = gate.allows(count)
    told = f"{count} lines" if count != 1 else "1 line"
    return Ruling("gate", gate.name, good, not good, wanted, f"{told}, the first is line {first}" if first is not None else told)


def golden_rulings(held: Held, *, unknown_fails: bool) -> Iterator[Ruling]:
    """Yield a ruling for each golden curve: no if the run leaves it, unknown if the run lacks its steps."""
    if held.reason is not None:
        yield Ruling("gate", "golden", None, unknown_fails, "the golden curves", f"unknown: {held.reason}")
    for curve in held.curves:
        name, wanted = (
            f"golden.{curve.metric}",
            "the golden curve" + (", exactly" if curve.rule == "exact" else ", with tolerance"),
        )
        departure = curve.departure
        if departure is not None:
            where = f" (line {departure.line})" if departure.line is not None else ""
            bound = f" ± {departure.tolerance:.3g}" if departure.tolerance else ""
            found = f"departs at step {departure.step}{where}: {departure.found}, golden {departure.golden}{bound}"
            yield Ruling("gate", name, False, True, wanted, f"{found}; {curve.inside} of {curve.compared} steps are inside")
        elif curve.missing:
            found = f"unknown: {curve.missing} of {curve.compared + curve.missing} golden steps are not printed"
            yield Ruling("gate", name, None, unknown_fails, wanted, found)
        else:
            yield Ruling("gate", name, True, False, wanted, f"all {curve.compared} steps")


def departed(held: Held) -> list[HeldCurve]:
    """Return the curves that the run leaves, as they stand in the golden document."""
    return [curve for curve in held.curves if curve.departure is not None and len(curve.steps) > 1]


def title_of(curve: HeldCurve) -> str:
    """Return the heading of a departure: figure and step."""
    return f"{metric_label(curve.metric)} leaves the golden curve at step {curve.departure.step if curve.departure else '-'}"


_BEFORE, _BEHIND = 30, 60
"""Values before and behind a departure that are drawn."""


def draw(curve: HeldCurve, style: Style, height: int = 10) -> str:
    """Return the golden curve and that of the run over one another, around the departure, as lines of text."""
    at = curve.steps.index(curve.departure.step) if curve.departure is not None else 0
    shown = slice(max(0, at - _BEFORE), at + _BEHIND)
    both = {"golden": curve.golden[shown], "this run": curve.found[shown]}
    curves = {name: Curve(curve.metric, curve.steps[shown], values) for name, values in both.items()}
    runs = [OverlaidRun(name, {curve.metric: drawn}, {}) for name, drawn in curves.items()]
    return render_overlay(runs, [curve.metric], height, style)
