"""Figures of a log beside those that are known of it: nothing is timed that does not read right."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

STATISTICS = ("record_count", "nonfinite_count", "first", "last", "min", "max", "median", "mean")
TOLERANCE = 1e-12
"""Relative; of means, and of figures that a loop rescales in floating point."""


def load_facts(log: Path) -> dict[str, Any]:
    """Return what was noted beside a generated log."""
    facts: dict[str, Any] = json.loads(facts_path(log).read_text())
    return facts


def facts_path(log: Path) -> Path:
    """Return the file beside ``log`` that holds its facts."""
    return log.with_name(log.name + ".facts.json")


def differences(facts: Mapping[str, Any], found: Mapping[str, Any], *, exact: bool) -> list[str]:
    """Return a line for each figure of ``facts`` that ``found`` does not show; both are as generators note them.

    With ``exact``, all but the mean must be the same float64, and a step number is compared; else ``TOLERANCE`` holds.
    """
    wrong = []
    for name in ("record_count", "first", "last") if exact else ("record_count",):
        want, got = facts["steps"][name], found["steps"].get(name)
        if want != got:
            wrong.append(f"steps.{name}: {got}, not {want}")
    for metric, figures in facts["metrics"].items():
        shown = found["metrics"].get(metric)
        if shown is None:
            wrong.append(f"{metric}: absent")
            continue
        for name in STATISTICS:
            if name in shown or exact:
                want, got = figures[name], shown.get(name)
                if not _same(want, got, exact=exact and name != "mean"):
                    wrong.append(f"{metric}.{name}: {got}, not {want}")
    return wrong


def _same(want: float | None, got: float | None, *, exact: bool) -> bool:
    if want is None or got is None or exact:
        return want == got
    return math.isclose(want, got, rel_tol=TOLERANCE, abs_tol=0.0)


def receipt_figures(receipt: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a receipt that ``differences`` compares."""
    summary = receipt["summary"]
    return {"steps": summary["steps"], "metrics": summary["metrics"]}
