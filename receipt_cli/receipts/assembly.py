"""Assemble the receipt document from its captured and derived parts, and its canonical bytes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from receipt_cli import __version__
from receipt_cli.analysis.bottleneck import BOTTLENECK_RULE
from receipt_cli.analysis.explanation import Explanation
from receipt_cli.analysis.failure import MarkerMatch
from receipt_cli.analysis.goodput.model import GOODPUT_RULE, Goodput
from receipt_cli.analysis.memory import MEMORY_RULE
from receipt_cli.analysis.slow import SLOW_RULE, SlowSteps
from receipt_cli.analysis.spikes import SPIKES_RULE, Spikes
from receipt_cli.analysis.steady import STEADY_RULE
from receipt_cli.analysis.summary import NOTHING, Summary
from receipt_cli.definitions.accelerators import load_peaks
from receipt_cli.derive import Derivation
from receipt_cli.documents.canonical import canonical_bytes, captured_digest
from receipt_cli.events.ranks import RankFigures
from receipt_cli.numeric.statistics import Statistic
from receipt_cli.problems import MAX_FIELDS, MAX_FIRST, MAX_NAMED, split_pointer, value_at
from receipt_cli.receipts.versions import RULES, SCHEMA_VERSION
from receipt_cli.redaction.mask import count_masks
from receipt_cli.redaction.text import safe_names, safe_text


def withhold(document: dict[str, Any]) -> None:
    """Set each field to null that a problem of the receipt lists in its ``fields``; a whole metric is removed.

    The step reached goes with the last one. ``/summary`` and the primary phase's summary are one object; missing fields are
    ignored.
    """
    for problem in document["derivation"]["problems"]["first"]:
        for field in problem["fields"]:
            *way, name = split_pointer(field)
            place = value_at(document, way)
            if isinstance(place, dict) and name in place:
                if way[-1:] in (["metrics"], ["other_metrics"]):
                    del place[name]
                else:
                    place[name] = None
                if name == "last":
                    place.pop("reached", None)


Document = dict[str, Any]
RUN_KEYS = ("name", "lane", "preset", "started_at", "finished_at", "exit_code", "wall_time_s", "peak_rss_bytes")
MAX_VALUE = 64
"""Most characters of each value in a problem."""
MAX_CANDIDATES = 8
"""Most candidate grammars that a receipt lists."""
MAX_KEYS = 256
"""Most keys of cells that a receipt lists for each part of the ledger."""
LOG_KEYS = ("log_complete", "log_loss", "recovered", "sampled")
"""Fields of ``run`` that only receipts of a wrapped job have."""


def assemble(
    derivation: Derivation,
    *,
    run: Mapping[str, Any],
    header: Mapping[str, Any],
    attachments: Sequence[Mapping[str, Any]] = (),
    evidence: Sequence[Mapping[str, Any]] = (),
) -> Document:
    """Return the receipt document: keys in schema order, numbers in base units, no NaN.

    ``run`` may lack keys (they become null); ``header`` is a whole header; both are copied unchanged. ``evidence`` are the
    records of schedulers about the job.
    """
    summaries = [{**_summary(s, derivation), **_ranks(r)} for s, r in zip(derivation.summaries, derivation.ranks, strict=True)]
    phases = [{"name": summary["phase"], "summary": summary} for summary in summaries]
    failure, provenance = _failure(derivation), _derivation(derivation)
    provenance["redactions"] = count_masks(phases, failure, provenance)
    provenance["tool_version"] = __version__
    captured: Document = {
        "run": {key: run.get(key) for key in RUN_KEYS} | {key: run[key] for key in LOG_KEYS if run.get(key) is not None},
        "header": dict(header),
        "attachments": [dict(attachment) for attachment in attachments],
        **({"evidence": [dict(entry) for entry in evidence]} if evidence else {}),
    }
    document = {
        "schema_version": SCHEMA_VERSION,
        "run": captured["run"],
        "header": captured["header"],
        "summary": _primary(derivation, summaries),
        "phases": phases,
        "checks": dict(derivation.checks),
        "failure": failure,
        "goodput": _goodput(derivation.goodput),
        **({} if derivation.cost is None else {"cost": dict(derivation.cost)}),
        "attachments": captured["attachments"],
        **({"evidence": captured["evidence"]} if evidence else {}),
        "captured_sha256": captured_digest({**captured, "derivation": provenance}),
        "derivation": provenance,
    }
    withhold(document)
    return document


def _primary(derivation: Derivation, phases: Sequence[Document]) -> Document | None:
    """Return the primary phase's summary; without phases, an empty one if the run certainly took no step, else None."""
    if derivation.primary is not None:
        return phases[derivation.primary]
    return _summary(NOTHING, derivation) if derivation.stepless else None


DERIVED = ("summary", "phases", "checks", "failure", "goodput", "derivation")
"""The derived blocks that every receipt has; ``cost`` is absent without a stated price or power."""


def derived_part(document: Mapping[str, Any], blocks: Sequence[str] = (*DERIVED, "cost")) -> Document:
    """Return the derived blocks that a receipt has, without ``tool_version``, which is not a fact of the run."""
    part = {key: document[key] for key in blocks if key in document}
    return {**part, "derivation": {key: value for key, value in part["derivation"].items() if key != "tool_version"}}


def derived_bytes(document: Mapping[str, Any]) -> bytes:
    """Return the canonical bytes of ``derived_part``: equal for equal logs and definitions."""
    return canonical_bytes(derived_part(document))


def _summary(summary: Summary, derivation: Derivation) -> Document:
    registry, saved = derivation.registry, summary.checkpoints
    described = [{**_statistic(s), **_places(summary, name)} for name, s in summary.other_metrics.items()]
    others = zip(safe_names(summary.other_metrics), described, strict=True)
    return {
        "phase": (safe_text(summary.phase) or None) if summary.phase is not None else None,
        "steps": {
            "first": summary.first,
            "last": summary.last,
            "planned": summary.planned,
            "record_count": summary.record_count,
            "restart_count": summary.restart_count,
            "superseded_count": summary.superseded_count,
            "first_line": summary.lines[0],
            "last_line": summary.lines[1],
            **({} if summary.reached is None else {"reached": summary.reached}),
        },
        "steady_state": {"rule": STEADY_RULE, **summary.steady._asdict()},
        "training_time_s": summary.training_time_s,
        "parameter_count": summary.parameter_count,
        "metrics": {
            n: {"id": registry.by_name[n].id, **_statistic(s), **_places(summary, n)} for n, s in summary.metrics.items()
        },
        "other_metrics": dict(others),
        "derived": {
            name: {"id": registry.by_name[name].id, **_statistic(s), "inputs": dict(inputs)}
            for name, (s, inputs) in summary.derived.items()
        },
        "consistency": [comparison._asdict() for comparison in summary.consistency],
        "flags": [asdict(flag) for flag in summary.flags],
        "spikes": _spikes(summary.spikes),
        "bottleneck": None if summary.bottleneck is None else {"rule": BOTTLENECK_RULE, **summary.bottleneck._asdict()},
        "memory": None if summary.memory is None else {"rule": MEMORY_RULE, **summary.memory._asdict()},
        "time": None if summary.time is None else summary.time._asdict(),
        "step_times": None if summary.step_times is None else summary.step_times._asdict(),
        "realised": None if summary.realised is None else summary.realised._asdict(),
        "identities": [identity._asdict() for identity in summary.identities],
        "checkpoints": saved and {**asdict(saved), "latest": [one._asdict() for one in saved.latest]},
        "time_to_train_s": summary.time_to_train_s,
        "position": None if summary.position is None else summary.position._asdict(),
        **({} if summary.slow_steps is None else {"slow_steps": _slow(summary.slow_steps)}),
    }


def _slow(found: SlowSteps) -> Document:
    causes = {cause: share._asdict() for cause, share in found.causes.items()}
    longest = [
        {**one._asdict(), "slow_ranks": None if one.slow_ranks is None else [each._asdict() for each in one.slow_ranks]}
        for one in found.longest
    ]
    return {"rule": SLOW_RULE, **found._asdict(), "causes": causes, "longest": longest}


def _places(summary: Summary, name: str) -> Document:
    places, digits = summary.places.get(name), summary.printed_digits.get(name)
    return {} if places is None else {"places": asdict(places), "printed_digits": digits and digits._asdict()}


def _spikes(spikes: Spikes | None) -> Document | None:
    if spikes is None:
        return None
    metrics = {name: {**asdict(s), "first": [spike._asdict() for spike in s.first]} for name, s in spikes.metrics.items()}
    return {"rule": SPIKES_RULE, "metrics": metrics, "marked_count": spikes.marked_count}


def _goodput(goodput: Goodput | None) -> Document | None:
    if goodput is None:
        return None
    parts = goodput.parts
    return {
        "goodput_ratio": goodput.goodput_ratio,
        "wall_time_s": goodput.wall_time_s,
        "step_time_s": goodput.step_time_s,
        "badput_s": {name: part.seconds for name, part in parts.items()},
        "evidence": goodput.evidence,
        "rule": GOODPUT_RULE,
        "phase": goodput.phase,
        "step_evidence": goodput.step_evidence,
        "parts": {n: {"how": p.how, "count": p.count, "overlapped_s": p.overlapped_s} for n, p in parts.items()},
        "range": goodput.range._asdict(),
        "stalls": None if goodput.stalls is None else asdict(goodput.stalls),
    }


def _ranks(ranks: Mapping[int, RankFigures]) -> Document:
    """Return the block ``ranks``, or {} if only one rank printed records."""
    figures = {
        str(rank): {"record_count": r.records, **{key: value for key, value in r._asdict().items() if key != "records"}}
        for rank, r in ranks.items()
    }
    return {"ranks": figures} if figures else {}


def _statistic(statistic: Statistic) -> Document:
    values = statistic._asdict().items()
    return {name: None if isinstance(value, float) and not math.isfinite(value) else value for name, value in values}


def _failure(derivation: Derivation) -> Document | None:
    ending = derivation.ending
    if ending.reason is None:
        return None
    return {
        "reason": ending.reason,
        "category": ending.category,
        "line_number": ending.line_number,
        "message": None if ending.message is None else safe_text(ending.message),
        "log_tail": list(derivation.tail),
        "markers": [_match(s) for s in _in_order(s for s in ending.matches if s.open)],
        **_explanation(derivation.explanation),
    }


def _explanation(found: Explanation) -> Document:
    exception = None
    if found.exception is not None:
        raised, frame = found.exception, found.exception.frame
        exception = {
            "type": safe_text(raised.type),
            "message": None if raised.message is None else safe_text(raised.message),
            "line_number": raised.line_number,
            "frame": None
            if frame is None
            else {
                "file": safe_text(frame.file),
                "line": frame.line,
                "function": safe_text(frame.function or "") or None,
                "relative": safe_text(frame.relative or "") or None,
            },
        }
    return {
        "exception": exception,
        "culprit": None if found.culprit is None else asdict(found.culprit),
        "victims": {"count": len(found.victims), "first": [asdict(victim) for victim in found.victims[:MAX_FIRST]]},
        "retry": {"verdict": found.retry, "rule": found.retry_rule},
        "progress": None if found.progress is None else asdict(found.progress),
    }


def _in_order(matches: Any) -> list[MarkerMatch]:
    return sorted(matches, key=lambda s: (s.at, s.marker.id))[:MAX_FIRST]


def _match(match: MarkerMatch) -> Document:
    return {
        "id": match.marker.id,
        "reason": match.marker.reason,
        "role": match.marker.role,
        "count": match.count,
        "first_line": match.first_line,
        "last_line": match.last_line,
        "message": safe_text(match.message),
    }


def _derivation(derivation: Derivation) -> Document:
    near_count, near = derivation.near_misses
    (kinds, problems), samples = derivation.problems, derivation.samples
    refs = {c.grammar.id: c.grammar.ref for c in derivation.detection.chosen}
    return {
        "grammars": [
            {"id": c.grammar.id, "version": c.grammar.version, "sha256": c.grammar.sha256, "chosen_by": c.chosen_by}
            for c in _primary_first(derivation)
        ],
        **_candidates(derivation),
        "markers": {"version": derivation.catalogue.version, "sha256": derivation.catalogue.sha256},
        "registry": {"version": derivation.registry.version, "sha256": derivation.registry.sha256},
        "peaks": {"version": load_peaks().version, "sha256": load_peaks().sha256},
        "rules": RULES,
        "log": {
            "sha256": derivation.log.sha256,
            "size_bytes": derivation.log.size_bytes,
            "line_count": derivation.log.line_count,
            "record_count": derivation.log.record_count,
            **({"files": [asdict(file) for file in derivation.log.files]} if derivation.log.files else {}),
            **({"time": derivation.log_time._asdict()} if derivation.log_time is not None else {}),
        },
        "options": derivation.options.document(),
        **({"launches": asdict(derivation.launch)} if derivation.launch.count > 1 else {}),
        "lines": derivation.lines._asdict(),
        "cells": {part: _cells(getattr(derivation.ledger, part)) for part in ("read", "other", "dropped")},
        "near_misses": {
            "count": near_count,
            "first": [
                {"grammar": refs[m.grammar], "rule": m.rule, "line_number": m.line_number, "excerpt": safe_text(m.excerpt)}
                for m in near
            ],
        },
        "problems": {
            "count": kinds.total(),
            "first": [
                {
                    "kind": p.kind,
                    "line_number": p.line_number,
                    "detail": safe_text(p.detail),
                    "excerpt": safe_text(p.excerpt) or None,
                    "lines": list(p.lines[:MAX_NAMED]),
                    "values": [safe_text(value, MAX_VALUE) for value in p.values[:MAX_NAMED]],
                    "fields": [safe_text(name) for name in p.fields[:MAX_FIELDS]],
                }
                for p in problems
            ],
            "kinds": dict(sorted(kinds.items())),
        },
        **({"times": derivation.times._asdict()} if derivation.times is not None else {}),
        **({} if samples is None else {"samples": {"sha256": samples.sha256, "size_bytes": samples.size_bytes}}),
        "check_lines": dict(derivation.check_lines),
        "observed": [_match(s) for s in _in_order(derivation.ending.matches)],
    }


def _candidates(derivation: Derivation) -> Document:
    """Return the block ``candidates``: the grammars that explain step records, if there are several."""
    found = [c for c in derivation.detection.candidates if c.step_records][:MAX_CANDIDATES]
    records = max(derivation.log.record_count, 1)
    listed = [
        {"grammar": c.id, "record_count": c.step_records, "share": round(min(1, c.step_records / records), 4)} for c in found
    ]
    return {"candidates": listed} if len(listed) > 1 else {}


def _cells(counts: Counter[str]) -> Document:
    """Return the number of cells, in total and for each of the most frequent keys."""
    keys = sorted(counts, key=lambda key: (-counts[key], key))[:MAX_KEYS]
    by_key = {name: counts[key] for name, key in sorted(zip(safe_names(keys), keys, strict=True))}
    return {"count": counts.total(), "by_key": by_key}


def _primary_first(derivation: Derivation) -> list[Any]:
    chosen = list(derivation.detection.chosen)
    if derivation.primary is not None:
        primary = derivation.phase_grammars[derivation.primary]
        chosen.sort(key=lambda c: c.grammar.id != primary)
    return chosen
