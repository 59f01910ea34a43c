"""Load receipts and logs as the runs of a comparison, or as the two sides of a reproducibility check."""

from __future__ import annotations

import math
import os
from array import array
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import PurePath
from typing import Any, NamedTuple

import numpy as np

from receipt_cli.comparison.contrasts import Axis, Curve, Run
from receipt_cli.comparison.rerun import Side
from receipt_cli.comparison.streams import read_streams, stored_streams
from receipt_cli.definitions.metrics import load_registry
from receipt_cli.errors import UsageError
from receipt_cli.io.source import Progress
from receipt_cli.numeric.array_types import Floats
from receipt_cli.numeric.arrays import last_of_each
from receipt_cli.receipts.production import Product, read_given
from receipt_cli.store.series_files import SeriesFiles

_MAX_CURVES = 12


def load_runs(
    files: Sequence[str], axis: Axis, progress: Callable[[str], AbstractContextManager[Progress | None]]
) -> tuple[list[Run], list[str]]:
    """Return the runs in ``files`` (receipts or logs), and notes for the user. Raises ``ReceiptError``."""
    runs: list[Run] = []
    notes: list[str] = []
    for file, name in zip(files, short_names(files), strict=True):
        document, product = read_given(file, environ=dict(os.environ), progress=progress)
        notes += [f"{name}: {text}" for text in product.notes] if product is not None else []
        runs.append(make_run(name, document, product, axis))
    return runs, notes


def make_run(name: str, document: dict[str, Any], product: Product | None, axis: Axis = "step") -> Run:
    """Return the run of a receipt, with the steady values and curves of its metrics if its log was read."""
    if product is None:
        return Run(name, document)
    metrics: dict[str, dict[str, Any]] = (document.get("summary") or {}).get("metrics", {})
    steady = {n: array("d", product.series.steady(n)) for n, statistic in metrics.items() if statistic["window"] == "steady"}
    return Run(name, document, steady, _curves(product, axis))


def short_names(files: Sequence[str]) -> list[str]:
    """Return the shortest path endings that are distinct."""
    parts = [PurePath(file).parts for file in files]
    for length in range(1, max(map(len, parts), default=1) + 1):
        names = [str(PurePath(*part[-length:])) for part in parts]
        if len(set(names)) == len(set(files)):
            return names
    return list(files)


def _curves(product: Product, axis: Axis) -> dict[str, Curve]:
    """Return the curves of loss-like metrics that have a better direction."""
    registry, series = load_registry(), product.series
    curves: dict[str, Curve] = {}
    for name in series:
        metric = registry.by_name[name]
        if metric.klass == "curve" and metric.better != "none" and len(curves) < _MAX_CURVES:
            steps, values = series.curve(name)
            places = steps if axis == "step" else places_along(product, steps, axis)
            if places is not None:
                curves[name] = Curve(places, values, product.document["summary"]["metrics"][name].get("printed_digits"))
    return curves


_TOTALS = {"tokens": "tokens_total", "samples": "samples_total", "time": "elapsed_time_s"}
"""Axis → the metric that counts along it."""


def places_along(product: Product, steps: Floats, axis: Axis) -> Floats | None:
    """Return the total tokens, samples or seconds at each of ``steps``; None if unknown.

    Printed totals are used first, else the batch size or the step times.
    """
    places, totals = product.series.curve(_TOTALS[axis])
    known = np.isfinite(totals)
    if known.sum() > 1:
        order = np.argsort(places[known], kind="stable")
        return np.interp(steps, places[known][order], totals[known][order], left=np.nan, right=np.nan)
    return _passed(product, steps) if axis == "time" else _trained(product, steps, axis)


def _passed(product: Product, steps: Floats) -> Floats | None:
    """Return the seconds from the first printed step time to each of ``steps``; a step time counts for the steps before it."""
    places, times = last_of_each(*product.series.curve("step_time_s"))
    known = np.isfinite(times)
    if known.sum() < 2:
        return None
    places, times = places[known], times[known]
    passed = np.concatenate([[0.0], np.cumsum(times[1:] * np.diff(places))])
    interpolated: Floats = np.interp(steps, places, passed, left=np.nan, right=np.nan)
    return interpolated


def _trained(product: Product, steps: Floats, axis: Axis) -> Floats | None:
    """Return the total tokens or samples at each of ``steps``, from the batch size; None if it is unknown."""
    flags = product.document["header"]["flags"] or {}
    each, batch, length = (flags.get(name) for name in ("tokens_per_step", "global_batch_size", "sequence_length"))
    if axis == "samples":
        each = batch
    elif each is None and isinstance(batch, int) and isinstance(length, int):
        each = batch * length
    return steps * each if isinstance(each, int | float) and not isinstance(each, bool) else None


def load_side(
    file: str, progress: Callable[[str], AbstractContextManager[Progress | None]], stored: SeriesFiles | None = None
) -> tuple[Side, list[str]]:
    """Return the run in ``file`` (a receipt or a log) with what it prints step by step, and notes for the user.

    The records of a receipt come from ``stored``. Raises ``ReceiptError``.
    """
    document, product = read_given(file, environ=dict(os.environ), progress=progress)
    if product is None:
        return Side(file, document, None if stored is None else stored_streams(stored, document)), []
    return Side(file, document, read_streams(product, file)), [f"{file}: {text}" for text in product.notes]


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
