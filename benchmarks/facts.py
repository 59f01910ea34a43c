"""The printed values of a generated log, known before it is read, and the statistics that its receipt must show."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float64]


class Facts:
    """Collects the printed values of one log, in base units, in order of printing."""

    def __init__(self) -> None:
        self.records = 0
        self.first_step: int | None = None
        self.last_step: int | None = None
        self._columns: dict[str, list[Values]] = {}
        self._steady: set[str] = set()
        self._attempts: list[int] = []

    def begin(self) -> None:
        """Begin another attempt, with its own warm-up."""
        self._attempts.append(self.records)

    def steps(self, first: int | None, count: int) -> None:
        """Add ``count`` step records, numbered from ``first``; None if the log does not number them."""
        if first is not None:
            self.first_step = first if self.first_step is None else self.first_step
            self.last_step = first + count - 1
        self.records += count

    def add(self, name: str, values: Values, *, steady: bool = False) -> None:
        """Add values of the metric ``name``; with ``steady``, its statistics exclude the warm-up."""
        self._columns.setdefault(name, []).append(values)
        if steady:
            self._steady.add(name)

    def document(self) -> dict[str, Any]:
        """Return the statistics as JSON values."""
        metrics = {}
        warm = np.ones(self.records, np.bool_)
        for begin, end in pairwise([*(self._attempts or [0]), self.records]):
            warm[begin : begin + max(1, min(10, (end - begin) // 10))] = False  # that ``steady/1`` leaves out
        for name, parts in self._columns.items():
            values = np.concatenate(parts)
            metrics[name] = _figures(values, values[warm] if name in self._steady else values)
        steps = {"record_count": self.records, "first": self.first_step, "last": self.last_step}
        return {"steps": steps, "metrics": metrics}


def _figures(printed: Values, windowed: Values) -> dict[str, float | None]:
    """Return the statistics of a receipt: ``first`` and ``last`` of all ``printed`` values, the others of ``windowed``."""
    finite = windowed[np.isfinite(windowed)]
    known = finite.size > 0
    return {
        "record_count": int(windowed.size),
        "nonfinite_count": int(windowed.size - finite.size),
        "first": _finite(printed[0]),
        "last": _finite(printed[-1]),
        "min": float(finite.min()) if known else None,
        "max": float(finite.max()) if known else None,
        "median": float(np.median(finite)) if known else None,
        "mean": math.fsum(finite) / finite.size if known else None,
    }


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
