"""Export a run as OTLP metrics in JSON, for the collector's otlpjsonfile receiver and /v1/metrics.

https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding: names in lowerCamelCase, 64-bit integers as text.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from receipt_cli import __version__
from receipt_cli.analysis.checks import healthy
from receipt_cli.export.run import ExportedRun, Figure

Json = dict[str, Any]
UCUM = {
    "1": "1", "s": "s", "byte": "By", "bit/byte": "bit/By", "token": "{token}", "token/s": "{token}/s", "sample": "{sample}",
    "sample/s": "{sample}/s", "step/s": "{step}/s", "flop": "{flop}", "flop/s": "{flop}/s", "J": "J", "W": "W",
}  # fmt: skip
"""Units of the registry in the Unified Code for Units of Measure; counted things are in braces."""


def otlp_json(run: ExportedRun) -> bytes:
    """Return one line: figures and checks as gauges, facts of the run as resource attributes.

    Each point has the time of the run, if known.
    """
    metrics = [*_figures(run), *_checks(run)]
    resource = {"attributes": _attributes(_resource(run))}
    scope = {"name": "receipt", "version": __version__}
    document = {"resourceMetrics": [{"resource": resource, "scopeMetrics": [{"scope": scope, "metrics": metrics}]}]}
    return (json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n").encode("utf-8")


def _resource(run: ExportedRun) -> dict[str, str | int | float | bool]:
    """Return the resource's attributes; ``service`` and ``vcs`` follow OpenTelemetry's semantic conventions."""
    git = run.document["header"]["git"]
    standard = {"service.name": run.lane, "vcs.ref.head.revision": git["commit"], "vcs.ref.head.name": git["branch"]}
    return {**{k: v for k, v in standard.items() if v}, **{f"receipt.{k}": v for k, v in run.facts().items()}}


def _figures(run: ExportedRun) -> Iterable[Json]:
    families: dict[str, list[Figure]] = {}
    for figure in run.figures:
        families.setdefault(f"training.{figure.name}" if figure.metric else "training.other", []).append(figure)
    for name, figures in families.items():
        metric = figures[0].metric
        known = [(figure, statistic, value) for figure in figures for statistic, value in figure.known.items()]
        points = [_point(run, value, _where(figure, statistic)) for figure, statistic, value in known]
        if points:
            description = metric.description if metric else "Printed number that the registry does not know, in the unit printed."
            unit = UCUM[metric.unit] if metric else ""
            yield {"name": name, "description": description, "unit": unit, "gauge": {"dataPoints": points}}


def _where(figure: Figure, statistic: str) -> dict[str, str | int]:
    """Return the attributes that identify a point within its metric."""
    named: dict[str, str | int] = {} if figure.metric else {"name": figure.name}
    phase: dict[str, str | int] = {"phase.index": figure.phase.number, "phase.name": figure.phase.name or ""}
    return {**named, **phase, "source": figure.source, "statistic": statistic}


def _checks(run: ExportedRun) -> Iterable[Json]:
    checks = run.document["checks"]
    told = {**checks, "healthy": healthy(checks, run.document["failure"])}
    known = {name: passed for name, passed in told.items() if passed is not None}
    points = [_point(run, int(passed), {"check": name}) for name, passed in known.items()]
    meaning = "1: passed, 0: failed; absent where the log proves neither."
    yield {"name": "training.check", "description": meaning, "unit": "1", "gauge": {"dataPoints": points}}


def _point(run: ExportedRun, value: float, where: Mapping[str, str | int]) -> Json:
    time = {} if run.at_ns is None else {"timeUnixNano": str(run.at_ns)}
    number = {"asInt": str(value)} if isinstance(value, int) else {"asDouble": value}
    return {"attributes": _attributes(where), **time, **number}


def _attributes(values: Mapping[str, str | int | float | bool]) -> list[Json]:
    return [{"key": key, "value": _value(value)} for key, value in values.items()]


def _value(value: str | int | float | bool) -> Json:
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)} if -(2**63) <= value < 2**63 else {"stringValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}
