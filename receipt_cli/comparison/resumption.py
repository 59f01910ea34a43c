"""Check whether a run continues another: where it resumed, which steps are repeated or missing, and whether the loss goes on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from receipt_cli.comparison.comparable import Document, judge
from receipt_cli.comparison.policy import Policy
from receipt_cli.numeric.array_types import Floats
from receipt_cli.numeric.arrays import last_of_each
from receipt_cli.receipts.production import Product

SCHEMA_VERSION = "resumption/1.0"
_WINDOW = 20
"""Records on either side of the joint whose losses are compared."""
_FAR = 4.0
"""Standard deviations of the losses around the joint beyond which the loss does not go on; a judgement."""
_LOSS = "loss"
_MINIMUM = 4
"""Records that each side needs for the comparison of losses."""


def judge_resumption(a: tuple[str, Product], b: tuple[str, Product], policy: Policy) -> dict[str, Any]:
    """Return the document (``resumption/1.0``) on whether ``b`` continues ``a``.

    ``continues`` is ``yes`` where ``b`` begins within the steps of ``a`` or right behind them, no setting that the policy blocks
    differs, and its loss goes on; ``no`` where one of these is known to fail; else ``unknown``.
    """
    (name, first), (later, second) = a, b
    steps = _steps(first.document, second.document, _curve(first), _curve(second))
    loss = _goes_on(_curve(first), _curve(second), steps["b_first"])
    blocking = [asdict(f) for f in judge(first.document, second.document, policy).differences if f.severity == "block"]
    answers = [steps["in_reach"], None if loss is None else loss["goes_on"], not blocking]
    continues = "no" if False in answers else "unknown" if None in answers else "yes"
    return {
        "schema_version": SCHEMA_VERSION,
        "a": name,
        "b": later,
        "continues": continues,
        "steps": steps,
        "loss": loss,
        "differences": blocking,
        "pause_s": _pause(first.document, second.document),
        "joined": _joined(first, second, steps),
    }


def _curve(product: Product) -> tuple[Floats, Floats]:
    import numpy as np

    steps, values = last_of_each(*product.series.curve(_LOSS))
    known = np.isfinite(steps) & np.isfinite(values)
    return steps[known], values[known]


def _steps(a: Document, b: Document, first: tuple[Floats, Floats], second: tuple[Floats, Floats]) -> dict[str, Any]:
    """Return where ``b`` begins beside the end and the last checkpoint of ``a``; ``in_reach`` is None where steps are unknown.

    ``repeated`` and ``missing`` count steps, not records: those that both runs made, and those that neither printed.
    """
    import numpy as np

    last, begin = _summary(a)["steps"]["last"], _summary(b)["steps"]["first"]
    found: dict[str, Any] = {"a_last": last, "b_first": begin, "saved": (_summary(a).get("checkpoints") or {}).get("last_step")}
    if last is None or begin is None:
        return {**found, "repeated": None, "missing": None, "in_reach": None}
    apart = [float(np.median(np.diff(steps))) for steps, _ in (first, second) if len(steps) > 1]
    every = max(apart, default=1.0)
    start = _summary(a)["steps"]["first"]
    missing = max(0, round(begin - last - every))
    fresh = start is not None and begin <= start  # it begins anew
    return {**found, "repeated": max(0, last - begin + 1), "missing": missing, "in_reach": missing == 0 and not fresh}


def _goes_on(a: tuple[Floats, Floats], b: tuple[Floats, Floats], begin: int | None) -> dict[str, Any] | None:
    """Compare the losses around the joint: at common steps where there are some, else the means on both sides.

    ``deviations`` is the difference in standard deviations of the losses there; None without ``_MINIMUM`` records a side.
    """
    import numpy as np

    if begin is None:
        return None
    common, left, right = np.intersect1d(a[0], b[0], assume_unique=True, return_indices=True)
    before = a[1][a[0] < begin][-_WINDOW:]
    after = b[1][:_WINDOW]
    if len(common) >= _MINIMUM:
        before, after = a[1][left][:_WINDOW], b[1][right][:_WINDOW]
    if min(len(before), len(after)) < _MINIMUM:
        return None
    noise = float(np.sqrt((before.var(ddof=1) + after.var(ddof=1)) / 2))
    jump = float(after.mean() - before.mean())
    deviations = abs(jump) / noise if noise else (0.0 if jump == 0 else None)
    return {
        "common_count": len(common),
        "equal_count": int((a[1][left] == b[1][right]).sum()),
        "before": float(before.mean()),
        "after": float(after.mean()),
        "deviations": deviations,
        "goes_on": deviations is not None and deviations <= _FAR,
    }


def _pause(a: Document, b: Document) -> float | None:
    """Return the seconds from the last stamp of ``a`` to the first of ``b``; None where one has none or the clocks differ."""
    ends = [_summary(each).get("time") for each in (a, b)]
    if ends[0] is None or ends[1] is None or ends[0]["zone"] != ends[1]["zone"]:
        return None
    last, first = (datetime.fromisoformat(text) for text in (ends[0]["last"], ends[1]["first"]))
    return (first - last).total_seconds()


def _joined(a: Product, b: Product, steps: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of both as one run: the steps of ``a`` before ``b`` begins, then those of ``b``."""
    first, second, begin = _curve(a), _curve(b), steps["b_first"]
    kept = first[1] if begin is None else first[1][first[0] < begin]
    values = [*kept.tolist(), *second[1].tolist()]
    walls = [(product.document.get("goodput") or {}).get("wall_time_s") for product in (a, b)]
    return {
        "record_count": len(values),
        "superseded_count": len(first[1]) - len(kept),
        "loss_first": values[0] if values else None,
        "loss_last": values[-1] if values else None,
        "loss_min": min(values, default=None),
        "wall_time_s": None if None in walls else sum(walls),
    }


def _summary(document: Document) -> Mapping[str, Any]:
    return document["summary"] or {"steps": dict.fromkeys(("first", "last"))}
