"""How a metric developed over the steady state of a phase: its course, fitted line and quarters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from receipt_cli.events.table import Series, distinct
from receipt_cli.numeric.array_types import Floats
from receipt_cli.numeric.statistics import exact_mean, exact_median, exact_sum


class Line(NamedTuple):
    """A least-squares line: its slope, its rise from the first value to the last, and R squared."""

    slope: float
    rise: float
    explained: float


@dataclass(frozen=True)
class Course:
    """The finite values of one metric in log order, from the rank that printed most.

    ``steps`` are their steps; None if a value has none.
    """

    steps: Floats | None
    values: Floats

    @cached_property
    def line(self) -> Line | None:
        """The least-squares line over steps, or over indices if steps are unknown.

        None without two distinct steps and two distinct values, or beyond float64.
        """
        values = self.values
        steps = np.arange(float(len(values))) if self.steps is None else self.steps
        middle, level = exact_mean(steps), exact_mean(values)
        if middle is None or level is None:
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            away, off = steps - middle, values - level
            products = [away * off, away * away, off * off]
        try:
            both, across, along = (exact_sum(part) for part in products)
        except OverflowError:
            return None
        if not across or not along:
            return None
        slope = both / across
        line = Line(slope, slope * (float(steps[-1]) - float(steps[0])), slope * both / along)
        return line if all(map(math.isfinite, line)) else None

    @property
    def slope(self) -> float | None:
        """The slope of the line per step; 0 if all values are equal, None without steps."""
        if self.steps is None or len(self.values) < 2 or self.steps[0] == self.steps[-1]:
            return None
        return self.line.slope if self.line is not None else 0.0 if self.least == self.largest else None

    @property
    def least(self) -> float:
        """The smallest value. Raises ``ValueError`` if there is none."""
        return float(self.values.min())

    @property
    def largest(self) -> float:
        """The largest value. Raises ``ValueError`` if there is none."""
        return float(self.values.max())

    @property
    def quarters(self) -> tuple[float, float] | None:
        """The medians of the first and last quarters of the values; None for fewer than eight."""
        size = len(self.values) // 4
        if size < 2:
            return None
        first, last = exact_median(self.values[:size]), exact_median(self.values[-size:])
        return None if first is None or last is None else (first, last)


def course(series: Series, name: str) -> Course:
    """Return steps and values of a metric: of the steady step records, and of all other records since the first of these.

    If several ranks print it between steps, the one with most values counts, the lowest on a tie.
    """
    table, column = series.table, series.figure(name)
    if not len(column.values):
        return Course(None, column.values)
    is_step = table.by_source(lambda source: source.rule.event == "step")
    steady = is_step if series.within is None else is_step & series.within
    begin = int(table.at[steady][0]) if steady.any() else 0
    ranks = distinct(table.rank)
    speaker = (np.searchsorted(ranks, table.rank) if len(ranks) > 1 else np.zeros(len(table), np.int8)) + len(ranks) * ~is_step
    column = column.within(is_step | (table.at >= begin))
    most = np.bincount(speaker[column.rows]).argmax() if len(column.values) else 0
    column = column.within((speaker == most) & (steady | ~is_step))
    column = column.chosen(np.isfinite(column.values))
    steps = table.steps_of(column)
    return Course(None if np.isnan(steps).any() else steps, column.values)
