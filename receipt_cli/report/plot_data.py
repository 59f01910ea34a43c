"""Choose the metrics that ``receipt plot`` draws, and read their curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from receipt_cli.errors import UsageError
from receipt_cli.receipts.production import Product
from receipt_cli.render.plot import Curve

_GROUPS = (
    ("loss",),
    ("val_loss", "val_bpb"),
    ("grad_norm",),
    ("tokens_per_s", "tokens_per_s_per_device", "samples_per_s", "steps_per_s", "step_time_s"),
)
"""Of each group the first that a run has is drawn where none is named."""


def choose(document: Mapping[str, Any], wanted: Sequence[str]) -> list[str]:
    """Return the metrics to draw: those ``wanted``, or the usual ones. Raises ``UsageError`` for a metric that the run lacks."""
    known = list((document["summary"] or {}).get("metrics") or {})
    if not known:
        raise UsageError("there is nothing to draw", why="no metric of the primary phase was read", try_="receipt show FILE")
    for name in wanted:
        if name not in known:
            near = get_close_matches(name, known, 1)
            hint = f"--metric {near[0]}" if near else None
            raise UsageError(f"the run has no metric {name!r}", why=f"it has {', '.join(known)}", try_=hint or "")
    usual = [next((name for name in group if name in known), None) for group in _GROUPS]
    return list(dict.fromkeys(wanted)) or [name for name in usual if name is not None] or known[:3]


def plotted(product: Product, names: Sequence[str]) -> list[Curve]:
    """Return the curves of the primary phase of a log, steady-state metrics with their bounds."""
    summary, curves = product.document["summary"], []
    for name in names:
        steps, values = product.series.curve(name)
        entry = summary["metrics"][name]
        steady = entry["window"] == "steady" and entry["min"] is not None
        curves.append(Curve(name, steps.tolist(), values.tolist(), (entry["min"], entry["max"]) if steady else None))
    return curves
