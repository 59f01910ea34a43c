"""Columns of a hand-written loop → the figures that a receipt shows, as JSON on standard output."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Mapping, Sequence


def figures(printed: Sequence[float], windowed: Sequence[float]) -> dict[str, float | None]:
    """Return the statistics of ``windowed``, with the first and last of ``printed``."""
    finite = [value for value in windowed if math.isfinite(value)]
    first, last = printed[0], printed[-1]
    return {
        "record_count": len(windowed),
        "nonfinite_count": len(windowed) - len(finite),
        "first": first if math.isfinite(first) else None,
        "last": last if math.isfinite(last) else None,
        "min": min(finite, default=None),
        "max": max(finite, default=None),
        "mean": sum(finite) / len(finite) if finite else None,
        "median": statistics.median(finite) if finite else None,
    }


def show(records: int, columns: Mapping[str, Sequence[float]], steady: Sequence[str] = ()) -> None:
    """Print the figures of all columns; those of a rate leave out the warm-up."""
    warmup = max(1, min(10, records // 10))
    metrics = {name: figures(values, values[warmup:] if name in steady else values) for name, values in columns.items() if values}
    print(json.dumps({"steps": {"record_count": records}, "metrics": metrics}))
