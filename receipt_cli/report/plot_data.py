"""Choose the metrics for ``receipt plot``, and read their curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from receipt_cli.comparison.contrasts import Axis
from receipt_cli.comparison.load import places_along
from receipt_cli.errors import UsageError
from receipt_cli.receipts.production import Product
from receipt_cli.render.plot import Curve, OverlaidRun

_GROUPS = (
    ("loss",),
    ("val_loss", "val_bpb"),
    ("grad_norm",),
    ("tokens_per_s", "tokens_per_s_per_device", "samples_per_s", "steps_per_s", "step_time_s"),
)
"""By default, the first metric of each group that a run has is drawn."""


def choose(documents: Sequence[Mapping[str, Any]], wanted: Sequence[str]) -> list[str]:
    """Return the metrics to draw: ``wanted``, or the usual ones. Raises ``UsageError`` for a metric that no run has."""
    known = list(dict.fromkeys(name for document in documents for name in _metrics(document)))
    if not known:
        raise UsageError("there is nothing to draw", why="no metric of the primary phase was read", try_="receipt show FILE")
    for name in wanted:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"--metric {near[0]}" if near else None
            one = len(documents) == 1
            lacks = f"the run has no metric {name!r}" if one else f"no run has the metric {name!r}"
            raise UsageError(lacks, why=f"{'it has' if one else 'they have'} {', '.join(known)}", try_=hint or "")
    usual = [next((name for name in group if name in known), None) for group in _GROUPS]
    return list(dict.fromkeys(wanted)) or [name for name in usual if name is not None] or known[:3]


def _metrics(document: Mapping[str, Any]) -> Mapping[str, Any]:
    return (document["summary"] or {}).get("metrics") or {}


def plotted(product: Product, names: Sequence[str], axis: Axis = "step") -> list[Curve]:
    """Return the curves of the primary phase of a log along ``axis``, with bounds for steady-state metrics.

    Raises ``UsageError`` if the run does not print the values that the axis needs.
    """
    metrics, curves = product.document["summary"]["metrics"], []
    for name in names:
        steps, values = product.series.curve(name)
        places = steps if axis == "step" else places_along(product, steps, axis)
        if places is None:
            why = "it prints neither a count of them nor a batch size" if axis != "time" else "it prints no step times"
            raise UsageError(f"the run's {axis} are unknown" if axis != "time" else "the run's time is unknown", why=why)
        entry = metrics[name]
        steady = entry["window"] == "steady" and entry["min"] is not None
        curves.append(Curve(name, places.tolist(), values.tolist(), (entry["min"], entry["max"]) if steady else None))
    return curves


def overlaid(name: str, document: Mapping[str, Any], product: Product | None, names: Sequence[str], axis: Axis) -> OverlaidRun:
    """Return the curves of one of several runs; for a receipt, and for a run without the axis, only the last values."""
    metrics = _metrics(document)
    last = {metric: metrics[metric]["last"] for metric in names if metrics.get(metric, {}).get("last") is not None}
    if product is None:
        return OverlaidRun(name, {}, last, "a receipt has no records")
    try:
        curves = plotted(product, [metric for metric in names if metric in metrics], axis)
    except UsageError as error:
        return OverlaidRun(name, {}, last, error.message)
    return OverlaidRun(name, {curve.metric: curve for curve in curves}, last)
