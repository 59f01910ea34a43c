"""Export a run as Bencher Metric Format: the lane is the benchmark, a metric its measure.

https://bencher.dev/docs/reference/bencher-metric-format
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from receipt_cli.export.run import ExportedRun

MAX_BENCHMARK = 1024
MAX_MEASURE = 64
"""Longest names that Bencher accepts, in characters."""


def bmf(run: ExportedRun) -> bytes:
    """Return the headline figures of the primary phase, each with the minimum and maximum of its records."""
    measures: dict[str, dict[str, float]] = {}
    for figure in run.figures:
        if figure.headline is not None and figure.metric is not None and not figure.phase.prefix:
            measures[figure.key.replace("/", ".")[:MAX_MEASURE]] = _values(figure.headline, figure.known)
    name = " / ".join(part for part in (run.document["run"]["lane"], run.document["run"]["preset"]) if part)
    document = {(name or run.lane)[:MAX_BENCHMARK]: measures}
    return (json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2) + "\n").encode("utf-8")


def _values(value: float, known: Mapping[str, float]) -> dict[str, float]:
    """Return a measure, without minimum and maximum if the value is outside them (a last value may be)."""
    low, high = known.get("min"), known.get("max")
    if low is None or high is None or not low <= value <= high:
        return {"value": value}
    return {"value": value, "lower_value": low, "upper_value": high}
