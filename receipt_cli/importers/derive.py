"""Derive the receipt of a foreign run with the functions for logs; values that the document declares fill the gaps."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from receipt_cli.analysis.checks import CORE, Checks, evaluate
from receipt_cli.analysis.explanation import explain
from receipt_cli.analysis.failure import Ending, judge
from receipt_cli.analysis.flops import Facts, phase_facts
from receipt_cli.analysis.goodput.timestamps import Stamps
from receipt_cli.analysis.stated import Options, find_cost
from receipt_cli.analysis.steady import SteadyState
from receipt_cli.analysis.summary import MAX_OTHERS, Summary, summarise
from receipt_cli.definitions.failure_markers import Catalogue, Marker, load_catalogue
from receipt_cli.definitions.metrics import Registry, load_registry
from receipt_cli.derive import Derivation, LaunchFacts, LineCounts
from receipt_cli.detect.choose import Detection
from receipt_cli.events.naming import Ledger
from receipt_cli.events.phases import Phase, split_phases
from receipt_cli.events.streams import LogFacts
from receipt_cli.importers.model import FIGURES, DeclaredPhase, DeclaredStatistic, ForeignRun
from receipt_cli.importers.values import ProblemCounter
from receipt_cli.numeric.statistics import Statistic
from receipt_cli.problems import MAX_FIRST
from receipt_cli.redaction.text import log_tail, safe_text
from receipt_cli.scan.segment import SegmentBody

_DEATHS = ("cause", "stop", "error", "consequence")
_LOSSES = ("loss", "val_loss")
UNSTATED = Options()
_SEARCHED = 512
"""Characters of each line of a declared reason that are searched for a failure marker."""


def derive_import(foreign: ForeignRun, log: LogFacts, options: Options = UNSTATED) -> Derivation:
    """Return the derivation of ``foreign``; ``log`` describes the document itself.

    Of ``options`` only the stated facts count: a document says itself how its run ended.
    """
    registry, catalogue = load_registry(), load_catalogue()
    phases = split_phases(foreign.table)
    known = list(accumulate(phases, lambda before, phase: phase_facts(phase, before), initial=dict[str, float | str]()))[1:]
    summaries = _summaries(foreign, phases, known, registry, options)
    primary = max(range(len(summaries)), key=lambda i: (summaries[i].record_count, -i), default=None)
    for problem in dict.fromkeys(problem for summary in summaries for problem in summary.contradictions):
        foreign.problems.add(problem.kind, None, problem.detail)
    if options.facts and not phases:
        named = ", ".join(fact.name for fact in options.facts)
        foreign.problems.add("fact_unused", None, f"{named}: without records, no figure is recomputed")
    metrics = {} if primary is None else summaries[primary].metrics
    ending = _ending(foreign, phases, catalogue)
    problems = sorted(foreign.problems.first, key=lambda p: (p.line_number or 0, p.kind, p.detail))[:MAX_FIRST]
    return Derivation(
        log=log,
        options=options,
        detection=Detection((), ()),
        summaries=tuple(summaries),
        phase_grammars=(foreign.format,) * len(summaries),
        primary=primary,
        checks=_checks(foreign, phases, summaries, ending),
        ending=ending,
        explanation=explain(ending, SegmentBody(), catalogue, phases, Stamps(), ()),
        tail=tuple(_tail(foreign, ending)),
        lines=LineCounts(foreign.matched, foreign.ignored, foreign.unmatched, 0),
        near_misses=(0, ()),
        problems=(foreign.problems.kinds, tuple(problems)),
        facts={},
        catalogue=catalogue,
        registry=registry,
        metric_lines=(),
        lacks=(),
        stepless=True,
        rule_records={},
        changed=False,
        launch=LaunchFacts(1, 1, 1),
        ranks=({},) * len(summaries),
        cost=find_cost(options, known[-1] if known else {}, metrics, None, None) if options.facts else None,
        goodput=None,
        ledger=Ledger(),
        check_lines={},
    )


def _summaries(
    foreign: ForeignRun, phases: Sequence[Phase], known: Sequence[Facts], registry: Registry, options: Options
) -> list[Summary]:
    summaries = [summarise(*each, registry, options.facts) for each in zip(phases, known, strict=True)]
    if not summaries:
        summaries = [summary_of(declared, registry, foreign.problems) for declared in foreign.declared]
    else:
        _complete(max(summaries, key=lambda summary: summary.record_count), foreign, registry)
    for summary in (s for s in summaries if s.dropped_others):
        detail = f"{summary.dropped_others} metrics outside the registry were left out"
        foreign.problems.add("other_metrics_dropped", None, detail)
    return summaries


def _complete(summary: Summary, foreign: ForeignRun, registry: Registry) -> None:
    """Add the declared statistics to the summary computed from records."""
    for declared in foreign.declared:
        summary.parameter_count = declared.parameter_count if summary.parameter_count is None else summary.parameter_count
        summary.training_time_s = declared.training_time_s if summary.training_time_s is None else summary.training_time_s
        add_declared(summary, declared, registry, foreign.problems, stated_first=foreign.stated_first)


def _ending(foreign: ForeignRun, phases: Sequence[Phase], catalogue: Catalogue) -> Ending:
    """Return the ending of the run, by its declared failure, else by its records."""
    code = foreign.run.get("exit_code")
    known = phases or code  # else nothing proves an end
    derived = judge(SegmentBody(), catalogue, phases, code) if known else Ending(None, None, None, None, None, code, ())
    if foreign.failure is not None:
        return _declared_failure(foreign, code, catalogue, derived)
    if derived.reason == "nan_loss" or code:
        return derived
    if foreign.cut is not None and not foreign.completed:
        return replace(derived, reason="truncated", category="unknown", line_number=None, message=foreign.cut, completed=False)
    completed = foreign.completed if foreign.completed is not None else derived.completed or None
    if foreign.checks.get("has_steps") is False and not completed:
        message = "the document says that no step was made, and nothing that the run completed"
        return replace(derived, reason="unknown", category="unknown", line_number=None, message=message, completed=completed)
    # A snapshot of a running job proves neither failure nor completion.
    return replace(derived, reason=None, category=None, line_number=None, message=None, completed=completed)


def _declared_failure(foreign: ForeignRun, code: int | None, catalogue: Catalogue, derived: Ending) -> Ending:
    assert foreign.failure is not None
    message = safe_text(foreign.failure.message or "") or None
    marker = _marker(message or "", catalogue) or _marker("\n".join(foreign.failure.tail), catalogue)
    matches = derived.matches
    if marker is not None:
        return Ending(marker.reason, marker.category, None, message, False, code, matches)
    if derived.reason not in (None, "truncated"):
        return replace(derived, message=message or derived.message, completed=False)
    return Ending("unknown", "unknown", None, message or "the document says that the run failed", False, code, matches)


def _marker(text: str, catalogue: Catalogue) -> Marker | None:
    """Return the failure marker of the best priority in a declared failure, or None; a reason's name is also a marker."""
    slug = [marker for marker in catalogue.markers if marker.reason == text and marker.role in _DEATHS]
    hits = slug[:1] or [
        hit.marker
        for line in text.splitlines()
        for hit in catalogue.search(line[:_SEARCHED].encode("utf-8", "replace"))
        if hit.marker.role in _DEATHS and hit.marker.reason
    ]
    return min(hits, key=lambda marker: marker.priority, default=None)


def _checks(foreign: ForeignRun, phases: Sequence[Phase], summaries: Sequence[Summary], ending: Ending) -> Checks:
    """Return every check: false if the records or the document disprove it, else true if one of them proves it."""
    checks = evaluate(phases, summaries, ending)
    seen = any(summary.record_count for summary in summaries)
    if not phases:
        checks["finite_losses"] = checks["mfu_plausible"] = checks["steps_monotonic"] = None
    for name in CORE:
        told = (checks[name], foreign.checks.get(name))
        checks[name] = False if False in told else True if True in told else None
    checks["has_steps"] = True if seen else False if foreign.checks.get("has_steps") is False else None
    losses = [d.metrics[n] for d in foreign.declared for n in _LOSSES if n in d.metrics]
    if any(not math.isfinite(value) for loss in losses for value in loss.figures.values()):
        checks["finite_losses"] = False
    if ending.reason in ("cuda_oom", "host_oom"):
        checks["no_oom"] = False
    return checks


def _tail(foreign: ForeignRun, ending: Ending) -> list[str]:
    if foreign.failure is None or ending.reason is None:
        return []
    return log_tail("\n".join(foreign.failure.tail).encode("utf-8", "replace"))


_SLACK = 1e-9
_SAME = 1e-6
"""Largest relative difference between a declared and a computed statistic: the last digits of a float32."""


def summary_of(declared: DeclaredPhase, registry: Registry, problems: ProblemCounter) -> Summary:
    """Return the summary of ``declared``; its steady state is the producer's own window."""
    steady = declared.records if declared.steady_records is None else min(declared.steady_records, declared.records)
    summary = Summary(
        phase=declared.name,
        first=None,
        last=declared.last,
        planned=declared.planned,
        record_count=declared.records,
        restart_count=0,
        superseded_count=0,
        steady=SteadyState(steady, declared.records - steady, 0),
        training_time_s=declared.training_time_s,
        parameter_count=declared.parameter_count,
    )
    add_declared(summary, declared, registry, problems)
    return summary


def add_declared(
    summary: Summary, declared: DeclaredPhase, registry: Registry, problems: ProblemCounter, *, stated_first: bool = False
) -> None:
    """Add the metrics of ``declared`` that ``summary``, computed from records, lacks.

    With ``stated_first``, values in ``declared`` replace computed ones; window and count stay those of the records.
    """
    statistics = _statistics(declared.metrics, problems)
    if stated_first:
        times, computed = declared.metrics.get("step_time_s"), summary.metrics.get("step_time_s")
        if times is not None and computed is not None and times.figures.get("median") != computed.median:
            summary.step_times = None  # the stated median is of other records than these quantiles
        for known, stated in ((summary.metrics, declared.metrics), (summary.other_metrics, declared.others)):
            for name in known.keys() & stated.keys():
                figures = {key: stated[name].figures.get(key, getattr(known[name], key)) for key in FIGURES}
                known[name] = Statistic(*known[name][:5], **figures)
    for name in sorted(statistics.keys() & summary.metrics.keys()):
        _compare(name, statistics[name], summary.metrics[name], problems)
    known = {**statistics, **summary.metrics}
    summary.metrics = {name: known[name] for name in sorted(known, key=lambda name: registry.by_name[name].id)}
    others = {**_statistics(declared.others, problems), **summary.other_metrics}
    names = sorted(others)
    summary.dropped_others += max(0, len(names) - MAX_OTHERS)
    summary.other_metrics = {name: others[name] for name in names[:MAX_OTHERS]}


def _compare(name: str, declared: Statistic, computed: Statistic, problems: ProblemCounter) -> None:
    """Add a problem for each declared value that differs from the computed one."""
    if computed.nonfinite_count or {declared.window, computed.window} != {"all"}:
        return
    for key in FIGURES:
        one, other = getattr(declared, key), getattr(computed, key)
        if one is not None and other is not None and abs(one - other) > _SAME * max(abs(one), abs(other)):
            problems.add("figures_differ", None, f"{name}: {key} is stated as {one}, but {other} by the records")


def _statistics(declared: Mapping[str, DeclaredStatistic], problems: ProblemCounter) -> dict[str, Statistic]:
    statistics = {name: statistic(name, entry, problems) for name, entry in declared.items()}
    return {name: entry for name, entry in statistics.items() if entry is not None}


def statistic(name: str, declared: DeclaredStatistic, problems: ProblemCounter) -> Statistic | None:
    """Return a declared statistic; None, with a problem, if its values contradict each other.

    ``record_count`` is 0 if the document lacks the number of values, or one of the statistics.
    """
    figures = {key: declared.figures[key] for key in FIGURES if math.isfinite(declared.figures.get(key, math.nan))}
    if len(figures) < len(declared.figures):
        problems.add("figure_not_finite", None, f"{name}: not a finite number")
    if not figures:
        return None
    if not _agree(figures, declared.window):
        problems.add("figures_contradict", None, f"{name}: min and max contradict the other statistics")
        return None
    needed = FIGURES if declared.window == "all" else FIGURES[2:]
    whole = all(key in figures for key in needed)
    return Statistic(
        window=declared.window,
        scope=declared.scope,
        definition=declared.definition,
        record_count=(declared.record_count or 0) if whole else 0,
        nonfinite_count=0,
        **{key: figures.get(key) for key in FIGURES},
    )


def _agree(figures: Mapping[str, float], window: str) -> bool:
    low, high = figures.get("min", -math.inf), figures.get("max", math.inf)
    slack = _SLACK * max((abs(bound) for bound in (low, high) if math.isfinite(bound)), default=0.0)
    inside = FIGURES if window == "all" else FIGURES[2:]
    return low <= high and all(low - slack <= figures[key] <= high + slack for key in inside if key in figures)
