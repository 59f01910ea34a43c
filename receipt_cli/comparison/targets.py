"""Find the steps, tokens, samples and time that a run needed until a metric reached a value."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from receipt_cli.comparison.contrasts import Axis
from receipt_cli.comparison.load import places_along
from receipt_cli.definitions.metrics import load_registry
from receipt_cli.errors import UsageError
from receipt_cli.numeric.array_types import Floats
from receipt_cli.numeric.arrays import last_of_each
from receipt_cli.receipts.production import Product

_AXES: tuple[tuple[str, Axis], ...] = (("tokens", "tokens"), ("samples", "samples"), ("time_s", "time"))


class Target(NamedTuple):
    """A target value of a metric in base units; the metric must rise to it if ``rises``, else fall to it."""

    metric: str
    value: float
    rises: bool


def read_target(text: str) -> Target:
    """Return the target of ``METRIC=VALUE``. Raises ``UsageError``, also for a metric without a better direction."""
    name, _, number = text.partition("=")
    metric = load_registry().by_name.get(name.strip())
    try:
        value = float(number)
    except ValueError:
        value = math.nan
    if metric is None or metric.better == "none" or not math.isfinite(value):
        why = "needs a metric with a better direction, and a number"
        raise UsageError(f"{text!r} is not a target", why=why, try_="--target val_loss=2.5")
    return Target(metric.name, value, metric.better == "higher")


def reach(name: str, document: dict[str, Any], product: Product | None, target: Target) -> dict[str, Any]:
    """Return whether the run ``name`` reached ``target``, its first such step, and the tokens, samples and seconds up to it.

    From ``held_step`` on every value reaches the target. ``reached`` is null if the run does not have the metric. Without
    the log (``product`` None) ``reached`` and ``best`` come from the receipt's statistics, and the rest is null.
    """
    fields = ("reached", "step", "held_step", "tokens", "samples", "time_s", "best", "best_step")
    found: dict[str, Any] = {"run": name, **dict.fromkeys(fields)}
    if product is None:
        statistic = ((document.get("summary") or {}).get("metrics", {})).get(target.metric) or {}
        best = statistic.get("max" if target.rises else "min")
        reached = None if best is None else best >= target.value if target.rises else best <= target.value
        return {**found, "reached": reached, "best": best}
    steps, values = _finite(product, target.metric)
    if not len(values):
        return found
    good = values >= target.value if target.rises else values <= target.value
    best_at = int(values.argmax() if target.rises else values.argmin())
    found |= {"reached": bool(good.any()), "best": float(values[best_at]), "best_step": int(steps[best_at])}
    if not found["reached"]:
        return found
    first = int(good.argmax())
    held = len(good) - int((~good)[::-1].argmax()) if not good.all() else 0
    found |= {"step": int(steps[first]), "held_step": int(steps[held]) if held < len(good) else None}
    for field, axis in _AXES:
        places = places_along(product, steps[first : first + 1], axis)
        place = math.nan if places is None else float(places[0])
        found[field] = place if math.isfinite(place) else None
    return found


def _finite(product: Product, metric: str) -> tuple[Floats, Floats]:
    """Return the steps and finite values of a metric, with each step once."""
    steps, values = last_of_each(*product.series.curve(metric))
    known = np.isfinite(steps) & np.isfinite(values)
    return steps[known], values[known]
