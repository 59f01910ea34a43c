"""Compare the values read from a generated log with its known values, so that only correct readers are timed."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

STATISTICS = ("record_count", "nonfinite_count", "first", "last", "min", "max", "median", "mean")
TOLERANCE = 1e-12
"""Largest relative error of means, and of values that a loop rescales in floating point."""


def load_facts(log: Path) -> dict[str, Any]:
    """Return the facts kept beside a generated log."""
    facts: dict[str, Any] = json.loads(facts_path(log).read_text())
    return facts


def facts_path(log: Path) -> Path:
    """Return the path of the facts beside ``log``."""
    return log.with_name(log.name + ".facts.json")


def differences(facts: Mapping[str, Any], found: Mapping[str, Any], *, exact: bool) -> list[str]:
    """Return a line for each value in ``facts`` that differs in ``found``; both are documents of ``Facts``.

    With ``exact``, step numbers are compared, and all values except means must be equal; else ``TOLERANCE`` applies.
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
    """Return the values of a receipt in the form that ``differences`` compares."""
    summary = receipt["summary"]
    return {"steps": summary["steps"], "metrics": summary["metrics"]}
