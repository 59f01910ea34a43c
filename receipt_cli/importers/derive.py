"""What a format found in a document → the derivation that a receipt is assembled from, by the functions that logs go through."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from receipt_cli.analysis.checks import CORE, Checks, evaluate
from receipt_cli.analysis.consistency import phase_facts
from receipt_cli.analysis.failure import Ending, judge
from receipt_cli.analysis.summary import Summary, summarise
from receipt_cli.definitions.failure_markers import Catalogue, Marker, load_catalogue
from receipt_cli.definitions.metrics import Registry, load_registry
from receipt_cli.derive import Derivation, LaunchFacts, LineCounts, Options
from receipt_cli.detect.choose import Detection
from receipt_cli.events.phases import Phase, split_phases
from receipt_cli.events.streams import LogFacts
from receipt_cli.importers.aggregates import add_stated, summary_of
from receipt_cli.importers.model import Found
from receipt_cli.problems import MAX_FIRST
from receipt_cli.redaction.text import log_tail, safe_text
from receipt_cli.scan.segment import Body

_DEATHS = ("cause", "stop", "error", "consequence")
_LOSSES = ("loss", "val_loss")
_SPEAKING = 512
"""Characters of the stated reason in which a failure marker is looked for."""


def conclude(found: Found, log: LogFacts) -> Derivation:
    """Return what ``found`` gives; ``log`` is the document itself."""
    registry, catalogue = load_registry(), load_catalogue()
    phases = split_phases(found.events)
    summaries = _summaries(found, phases, registry)
    ending = _ending(found, phases, catalogue)
    problems = sorted(found.doubts.first, key=lambda p: (p.line_number or 0, p.kind, p.detail))[:MAX_FIRST]
    return Derivation(
        log=log,
        options=Options(),
        detection=Detection((), ()),
        summaries=tuple(summaries),
        phase_grammars=(found.format,) * len(summaries),
        primary=max(range(len(summaries)), key=lambda i: (summaries[i].record_count, -i), default=None),
        checks=_checks(found, phases, summaries, ending),
        ending=ending,
        tail=tuple(_tail(found, ending)),
        lines=LineCounts(found.matched, found.ignored, found.unmatched, 0),
        near_misses=(0, ()),
        problems=(found.doubts.count, tuple(problems)),
        facts={},
        catalogue=catalogue,
        registry=registry,
        metric_lines=(),
        stepless=True,
        rule_records={},
        changed=False,
        launch=LaunchFacts(1, 1, 1),
        ranks=({},) * len(summaries),
        goodput=None,
    )


def _summaries(found: Found, phases: Sequence[Phase], registry: Registry) -> list[Summary]:
    summaries: list[Summary] = []
    known: dict[str, float | str] = {}
    for phase in phases:
        known = phase_facts(phase, known)
        summaries.append(summarise(phase, known, registry))
    if not summaries:
        summaries = [summary_of(part, registry, found.doubts) for part in found.parts]
    else:
        _complete(max(summaries, key=lambda summary: summary.record_count), found, registry)
    for summary in (s for s in summaries if s.dropped_others):
        found.doubts.add("other_metrics_dropped", None, f"{summary.dropped_others} metrics outside the registry were left out")
    return summaries


def _complete(summary: Summary, found: Found, registry: Registry) -> None:
    """Add to what the records gave what the document states beside them."""
    for part in found.parts:
        summary.parameter_count = part.parameter_count if summary.parameter_count is None else summary.parameter_count
        summary.training_time_s = part.training_time_s if summary.training_time_s is None else summary.training_time_s
        add_stated(summary, part, registry, found.doubts)


def _ending(found: Found, phases: Sequence[Phase], catalogue: Catalogue) -> Ending:
    """Return how the run ended: what the document says first, then what its records show."""
    code = found.run.get("exit_code")
    shown = judge(Body(), catalogue, phases, code, recognised=True) if phases else _silent(code, catalogue)
    if found.failed is not None:
        return _stated_failure(found, code, catalogue, shown)
    if shown.reason == "nan_loss" or code:
        return shown
    if found.cut is not None and not found.completed:
        return replace(shown, reason="truncated", category="unknown", line_number=None, message=found.cut, completed=False)
    completed = found.completed if found.completed is not None else shown.completed or None
    if found.checks.get("has_steps") is False and not completed:
        message = "the document says that no step was made, and nothing that the run completed"
        return replace(shown, reason="unknown", category="unknown", line_number=None, message=message, completed=completed)
    # A snapshot of a run that goes on says neither that it failed nor that it did what it set out to do.
    return replace(shown, reason=None, category=None, line_number=None, message=None, completed=completed)


def _silent(code: int | None, catalogue: Catalogue) -> Ending:
    """Return the ending of a run of which no record is known, only perhaps its exit code."""
    shown = judge(Body(), catalogue, (), code, recognised=True)
    if code:
        return shown
    return Ending(None, None, None, None, True if code == 0 else None, code, ())


def _stated_failure(found: Found, code: int | None, catalogue: Catalogue, shown: Ending) -> Ending:
    assert found.failed is not None
    message = safe_text(found.failed.message or "") or None
    marker = _marker(message or "", catalogue) or _marker("\n".join(found.failed.tail), catalogue)
    sightings = shown.sightings
    if marker is not None:
        return Ending(marker.reason, marker.category, None, message, False, code, sightings)
    if shown.reason not in (None, "truncated"):
        return replace(shown, message=message or shown.message, completed=False)
    return Ending("unknown", "unknown", None, message or "the document says that the run failed", False, code, sightings)


def _marker(text: str, catalogue: Catalogue) -> Marker | None:
    """Return the failure marker that ranks highest in what a document says of a failure, or None; a slug says itself."""
    slug = [marker for marker in catalogue.markers if marker.reason == text and marker.role in _DEATHS]
    hits = slug[:1] or [
        hit.marker
        for line in text.splitlines()
        for hit in catalogue.search(line[:_SPEAKING].encode("utf-8", "replace"))
        if hit.marker.role in _DEATHS and hit.marker.reason
    ]
    return min(hits, key=lambda marker: marker.rank, default=None)


def _checks(found: Found, phases: Sequence[Phase], summaries: Sequence[Summary], ending: Ending) -> Checks:
    """Return every check: false where the records or the document say so, true where one of them proves it."""
    checks = evaluate(phases, summaries, ending)
    seen = any(summary.record_count for summary in summaries)
    if not phases:
        checks["finite_losses"] = checks["mfu_plausible"] = checks["steps_monotonic"] = None
    for name in CORE:
        checks[name] = _both(checks[name], found.checks.get(name))
    checks["has_steps"] = True if seen else False if found.checks.get("has_steps") is False else None
    infinite = [p.metrics[n] for p in found.parts for n in _LOSSES if n in p.metrics]
    if any(not math.isfinite(value) for stated in infinite for value in stated.figures.values()):
        checks["finite_losses"] = False
    if ending.reason in ("cuda_oom", "host_oom"):
        checks["no_oom"] = False
    return checks


def _both(shown: bool | None, stated: bool | None) -> bool | None:
    if False in (shown, stated):
        return False
    return True if True in (shown, stated) else None


def _tail(found: Found, ending: Ending) -> list[str]:
    if found.failed is None or ending.reason is None:
        return []
    return log_tail("\n".join(found.failed.tail).encode("utf-8", "replace"))
