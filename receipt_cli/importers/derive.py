"""A foreign run → the derivation of its receipt, by the same functions as a log."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from receipt_cli.analysis.checks import CORE, Checks, evaluate
from receipt_cli.analysis.consistency import phase_facts
from receipt_cli.analysis.explanation import explain
from receipt_cli.analysis.failure import Ending, judge
from receipt_cli.analysis.summary import Summary, summarise
from receipt_cli.definitions.failure_markers import Catalogue, Marker, load_catalogue
from receipt_cli.definitions.metrics import Registry, load_registry
from receipt_cli.derive import Derivation, LaunchFacts, LineCounts, Options
from receipt_cli.detect.choose import Detection
from receipt_cli.events.ledger import Ledger
from receipt_cli.events.phases import Phase, split_phases
from receipt_cli.events.streams import LogFacts
from receipt_cli.importers.aggregates import add_declared, summary_of
from receipt_cli.importers.model import ForeignRun
from receipt_cli.problems import MAX_FIRST
from receipt_cli.redaction.text import log_tail, safe_text
from receipt_cli.scan.segment import SegmentBody

_DEATHS = ("cause", "stop", "error", "consequence")
_LOSSES = ("loss", "val_loss")
_SEARCHED = 512
"""Characters of a declared reason that are searched for a failure marker."""


def derive_import(foreign: ForeignRun, log: LogFacts) -> Derivation:
    """Return the derivation of ``foreign``; ``log`` describes the document itself."""
    registry, catalogue = load_registry(), load_catalogue()
    phases = split_phases(foreign.events)
    summaries = _summaries(foreign, phases, registry)
    ending = _ending(foreign, phases, catalogue)
    problems = sorted(foreign.problems.first, key=lambda p: (p.line_number or 0, p.kind, p.detail))[:MAX_FIRST]
    return Derivation(
        log=log,
        options=Options(),
        detection=Detection((), ()),
        summaries=tuple(summaries),
        phase_grammars=(foreign.format,) * len(summaries),
        primary=max(range(len(summaries)), key=lambda i: (summaries[i].record_count, -i), default=None),
        checks=_checks(foreign, phases, summaries, ending),
        ending=ending,
        explanation=explain(ending, SegmentBody(), catalogue, phases, (), ()),
        tail=tuple(_tail(foreign, ending)),
        lines=LineCounts(foreign.matched, foreign.ignored, foreign.unmatched, 0),
        near_misses=(0, ()),
        problems=(foreign.problems.count, tuple(problems)),
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
        cost=None,
        goodput=None,
        ledger=Ledger(),
        check_lines={},
    )


def _summaries(foreign: ForeignRun, phases: Sequence[Phase], registry: Registry) -> list[Summary]:
    summaries: list[Summary] = []
    known: dict[str, float | str] = {}
    for phase in phases:
        known = phase_facts(phase, known)
        summaries.append(summarise(phase, known, registry))
    if not summaries:
        summaries = [summary_of(declared, registry, foreign.problems) for declared in foreign.declared]
    else:
        _complete(max(summaries, key=lambda summary: summary.record_count), foreign, registry)
    for summary in (s for s in summaries if s.dropped_others):
        detail = f"{summary.dropped_others} metrics outside the registry were left out"
        foreign.problems.add("other_metrics_dropped", None, detail)
    return summaries


def _complete(summary: Summary, foreign: ForeignRun, registry: Registry) -> None:
    """Add the declared statistics to the summary of the records."""
    for declared in foreign.declared:
        summary.parameter_count = declared.parameter_count if summary.parameter_count is None else summary.parameter_count
        summary.training_time_s = declared.training_time_s if summary.training_time_s is None else summary.training_time_s
        add_declared(summary, declared, registry, foreign.problems)


def _ending(foreign: ForeignRun, phases: Sequence[Phase], catalogue: Catalogue) -> Ending:
    """Return how the run ended: the declared failure first, then the evidence of the records."""
    code = foreign.run.get("exit_code")
    derived = judge(SegmentBody(), catalogue, phases, code, recognised=True) if phases else _without_records(code, catalogue)
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
    # A snapshot of a run that goes on says neither that it failed nor that it did what it set out to do.
    return replace(derived, reason=None, category=None, line_number=None, message=None, completed=completed)


def _without_records(code: int | None, catalogue: Catalogue) -> Ending:
    """Return the ending of a run without records, of which at most the exit code is known."""
    derived = judge(SegmentBody(), catalogue, (), code, recognised=True)
    if code:
        return derived
    return Ending(None, None, None, None, True if code == 0 else None, code, ())


def _declared_failure(foreign: ForeignRun, code: int | None, catalogue: Catalogue, derived: Ending) -> Ending:
    assert foreign.failure is not None
    message = safe_text(foreign.failure.message or "") or None
    marker = _marker(message or "", catalogue) or _marker("\n".join(foreign.failure.tail), catalogue)
    sightings = derived.sightings
    if marker is not None:
        return Ending(marker.reason, marker.category, None, message, False, code, sightings)
    if derived.reason not in (None, "truncated"):
        return replace(derived, message=message or derived.message, completed=False)
    return Ending("unknown", "unknown", None, message or "the document says that the run failed", False, code, sightings)


def _marker(text: str, catalogue: Catalogue) -> Marker | None:
    """Return the highest ranking failure marker in a declared failure, or None. A reason's own name is a marker, too."""
    slug = [marker for marker in catalogue.markers if marker.reason == text and marker.role in _DEATHS]
    hits = slug[:1] or [
        hit.marker
        for line in text.splitlines()
        for hit in catalogue.search(line[:_SEARCHED].encode("utf-8", "replace"))
        if hit.marker.role in _DEATHS and hit.marker.reason
    ]
    return min(hits, key=lambda marker: marker.rank, default=None)


def _checks(foreign: ForeignRun, phases: Sequence[Phase], summaries: Sequence[Summary], ending: Ending) -> Checks:
    """Return every check: false where the records or the document disprove it, true where one of them proves it."""
    checks = evaluate(phases, summaries, ending)
    seen = any(summary.record_count for summary in summaries)
    if not phases:
        checks["finite_losses"] = checks["mfu_plausible"] = checks["steps_monotonic"] = None
    for name in CORE:
        checks[name] = _both(checks[name], foreign.checks.get(name))
    checks["has_steps"] = True if seen else False if foreign.checks.get("has_steps") is False else None
    losses = [d.metrics[n] for d in foreign.declared for n in _LOSSES if n in d.metrics]
    if any(not math.isfinite(value) for loss in losses for value in loss.figures.values()):
        checks["finite_losses"] = False
    if ending.reason in ("cuda_oom", "host_oom"):
        checks["no_oom"] = False
    return checks


def _both(derived: bool | None, declared: bool | None) -> bool | None:
    if False in (derived, declared):
        return False
    return True if True in (derived, declared) else None


def _tail(foreign: ForeignRun, ending: Ending) -> list[str]:
    if foreign.failure is None or ending.reason is None:
        return []
    return log_tail("\n".join(foreign.failure.tail).encode("utf-8", "replace"))
