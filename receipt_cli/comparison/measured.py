"""Figures of the steps and lines of one log that a receipt does not have: percentiles, spread, slope, counts of lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from receipt_cli.definitions.metrics import load_registry
from receipt_cli.io.source import Source, numbered_lines
from receipt_cli.numeric.array_types import Floats
from receipt_cli.numeric.arrays import last_of_each
from receipt_cli.numeric.intervals import interval, mean_spread
from receipt_cli.numeric.statistics import finite
from receipt_cli.receipts.production import Product

LEAST_VALUES = 8
"""Fewest values of which a percentile or a slope is given."""
LONGEST_LINE = 1 << 16
"""Characters of a line in which a text is sought."""


class Slope(NamedTuple):
    """Change of a metric per step, with its 95 % interval, over the steps from ``first`` to ``last``."""

    value: float
    low: float
    high: float
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Measured:
    """The log of a run, as read; ``file`` is its path, None if it cannot be read again."""

    product: Product
    file: str | None

    def _values(self, metric: str) -> Floats:
        series = self.product.series
        steady = load_registry().by_name[metric].window == "steady"
        return series.steady(metric) if steady else finite(series.figure(metric).values)

    def percentile(self, metric: str, percent: float) -> float | None:
        """Return a percentile of a metric, in its window; None of too few values."""
        values = self._values(metric)
        return float(np.percentile(values, percent)) if len(values) >= LEAST_VALUES else None

    def spread(self, metric: str) -> float | None:
        """Return the distance of the 5th and the 95th percentile, relative to the median; None if it is unknown."""
        low, middle, high = (self.percentile(metric, percent) for percent in (5, 50, 95))
        return None if low is None or high is None or not middle else (high - low) / abs(middle)

    def slope(self, metric: str, over: int | None) -> Slope | None:
        """Return the slope of a metric over its last ``over`` records (None: the last half); None of too few values.

        Each record of the first half of the window is compared with the one as far in the second half; the interval of the mean
        of these slopes takes into account that neighbours depend on each other.
        """
        steps, values = last_of_each(*self.product.series.curve(metric))
        known = np.isfinite(values)
        steps, values = steps[known], values[known]
        count = len(values) // 2 if over is None else over
        if len(values) < count or count < 2 * LEAST_VALUES:
            return None
        steps, values, half = steps[-count:], values[-count:], count // 2
        slopes = (values[-half:] - values[:half]) / (steps[-half:] - steps[:half])
        found = mean_spread(slopes)
        if found is None:
            return None
        return Slope(float(slopes.mean()), *interval(found), int(steps[0]), int(steps[-1]))

    def count_lines(self, texts: Sequence[Callable[[str], bool]]) -> list[tuple[int, int | None]] | None:
        """Return for each text the number of lines that have it, and the first one; None if the log cannot be read again.

        A text is a function that tells whether a line has it.
        """
        if self.file is None or not Path(self.file).is_file():
            return None
        counts, firsts = [0] * len(texts), list[int | None]([None] * len(texts))
        for number, raw in numbered_lines(Source(self.file), 4 * LONGEST_LINE):
            line = raw.decode("utf-8", "replace").rstrip("\r\n")[:LONGEST_LINE]
            for place, is_in in enumerate(texts):
                if is_in(line):
                    counts[place] += 1
                    firsts[place] = number if firsts[place] is None else firsts[place]
        return list(zip(counts, firsts, strict=True))
