"""Thin the curves of runs, from logs or stored Parquet files, keeping the extremes of every interval of steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from receipt_cli.numeric.array_types import Floats
from receipt_cli.receipts.production import Product
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
    curves: list[list[Any]] = []
    for index in sorted(range(len(summaries)), key=lambda i: (i != primary, i)):
        names = list(summaries[index].metrics)
        for name in sorted(names, key=lambda name: (_rank(name), names.index(name))):
            if len(curves) < MAX_CURVES:
                curve = thin(*summaries[index].series.curve(name), POINTS)
                curves += [[index, name, *curve]] if curve is not None else []
    return curves


def _rank(name: str) -> int:
    return SHOWN_FIRST.index(name) if name in SHOWN_FIRST else len(SHOWN_FIRST)


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
