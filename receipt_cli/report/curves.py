"""Read the curves that ``receipt plot`` draws; thin those of a report, keeping the extremes of every interval of steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from receipt_cli.comparison.contrasts import Axis
from receipt_cli.comparison.load import places_along
from receipt_cli.errors import UsageError
from receipt_cli.numeric.array_types import Floats
from receipt_cli.receipts.production import Product
from receipt_cli.render.plot import Curve, OverlaidRun
from receipt_cli.report.packing import number
from receipt_cli.store.series_files import SeriesFiles

if TYPE_CHECKING:
    from numpy.typing import NDArray


SHOWN_FIRST = (
    "loss", "val_loss", "val_bpb", "grad_norm", "learning_rate", "tokens_per_s", "tokens_per_s_per_device", "samples_per_s",
    "step_time_s", "mfu_ratio", "peak_memory_allocated_bytes", "peak_memory_reserved_bytes", "peak_memory_bytes",
    "memory_allocated_bytes", "memory_reserved_bytes",
)  # fmt: skip
MAX_CURVES = 24
POINTS = 1000
STORED_METRICS = ("loss", "val_loss", "grad_norm", "tokens_per_s", "tokens_per_s_per_device", "samples_per_s", "step_time_s")
STORED_POINTS = 240
MAX_STORED_CURVES = 5
"""Fewer curves than for a single log: hundreds of runs share one file."""
_MARKED = 40
_EXACT = 2.0**53


def product_curves(product: Product) -> list[list[Any]]:
    """Return ``[phase, metric, records, points, bad, bad_count]`` for each curve of a log (see ``thin``), primary phase first."""
    summaries, primary = product.derivation.summaries, product.derivation.primary
    ranks = {name: rank for rank, name in enumerate(SHOWN_FIRST)}
    curves: list[list[Any]] = []
    for index in sorted(range(len(summaries)), key=lambda i: (i != primary, i)):
        for name in sorted(summaries[index].metrics, key=lambda name: ranks.get(name, len(ranks))):
            if len(curves) < MAX_CURVES:
                curve = thin(*summaries[index].series.curve(name), POINTS)
                curves += [[index, name, *curve]] if curve is not None else []
    return curves


def thin(steps: Sequence[float] | Floats, values: Sequence[float] | Floats, most: int) -> list[Any] | None:
    """Return ``[records, points, bad, bad_count]`` of a curve; ``points`` alternate step and value, at most ``most`` points.

    Keeps the smallest and largest value of each interval of steps, and both ends of the curve. ``bad`` are at most 40 steps
    with a non-finite value. None for fewer than two values.
    """
    places, numbers = np.asarray(steps, np.float64), np.asarray(values, np.float64)
    order = np.argsort(places, kind="stable")
    places, numbers = places[order], numbers[order]
    known = np.isfinite(places) & (np.abs(places) < _EXACT)
    finite = known & np.isfinite(numbers)
    bad = places[known & ~finite]
    x, y = places[finite], numbers[finite]
    if len(x) + len(bad) < 2:
        return None
    chosen = np.arange(len(x)) if len(x) <= most else _extremes(y, most)
    points: list[Any] = []
    for place, value in zip(x[chosen].tolist(), y[chosen].tolist(), strict=True):
        points += [int(place), number(value)]
    every = max(1, -(-len(bad) // _MARKED))
    return [len(x) + len(bad), points, [int(step) for step in bad[::every].tolist()], len(bad)]


def _extremes(values: Floats, most: int) -> NDArray[np.int64]:
    """Return the indices of the smallest and largest value in ``most / 2 - 1`` intervals, and of both ends."""
    edges = np.linspace(0, len(values), most // 2).astype(np.int64)
    places = [0, len(values) - 1]
    for start, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        part = values[start:stop]
        places += [start + int(part.argmin()), start + int(part.argmax())]
    return np.unique(np.array(places, np.int64))


class SeriesFolder:
    """The curves in Parquet files below ``root``; ``warn`` is called for each skipped file. Raises as ``SeriesFiles``."""

    def __init__(self, root: Path, warn: Callable[[str], None]) -> None:
        self._files = SeriesFiles(root, warn)

    def curves(self, document: Mapping[str, Any]) -> list[list[Any]]:
        """Return the curves of a receipt's primary phase, as ``product_curves`` does; [] if no file belongs to its log."""
        index = self._files.primary(document)
        drawn: list[list[Any]] = []
        for name in STORED_METRICS if index is not None else ():
            if index is not None and name in document["summary"]["metrics"] and len(drawn) < MAX_STORED_CURVES:
                values = self._files.values(document, index, name)
                curve = thin(*values, STORED_POINTS) if values is not None else None
                drawn += [[index, name, *curve]] if curve is not None else []
        return drawn


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
