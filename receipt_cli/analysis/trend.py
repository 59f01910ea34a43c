"""How a metric developed over the steady state of a phase: its course, fitted line and quarters."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np

from receipt_cli.events.model import Event
from receipt_cli.events.series import Selection, Series
from receipt_cli.numeric.array_types import Floats
from receipt_cli.numeric.statistics import exact_mean, exact_median, exact_sum

Numbers: TypeAlias = "list[float] | Floats"


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

    steps: Numbers | None
    values: Numbers

    @cached_property
    def line(self) -> Line | None:
        """The least-squares line over steps, or over indices if steps are unknown.

        None without two distinct steps and two distinct values, or beyond float64.
        """
        return _line([float(i) for i in range(len(self.values))] if self.steps is None else self.steps, self.values)

    @property
    def slope(self) -> float | None:
        """The slope of the line per step; 0 if all values are equal, None without steps."""
        if self.steps is None or len(self.values) < 2 or self.steps[0] == self.steps[-1]:
            return None
        return self.line.slope if self.line is not None else 0.0 if self.least == self.largest else None

    @property
    def least(self) -> float:
        """The smallest value. Raises ``ValueError`` if there is none."""
        return float(min(self.values) if isinstance(self.values, list) else self.values.min())

    @property
    def largest(self) -> float:
        """The largest value. Raises ``ValueError`` if there is none."""
        return float(max(self.values) if isinstance(self.values, list) else self.values.max())

    def minus(self, other: Course) -> Course:
        """Return the difference of two courses with the same records."""
        if isinstance(self.values, list) and isinstance(other.values, list):
            return Course(self.steps, [a - b for a, b in zip(self.values, other.values, strict=True)])
        return Course(self.steps, np.asarray(self.values, np.float64) - np.asarray(other.values, np.float64))

    @property
    def quarters(self) -> tuple[float, float] | None:
        """The medians of the first and last quarters of the values; None for fewer than eight."""
        size = len(self.values) // 4
        if size < 2:
            return None
        first, last = exact_median(self.values[:size]), exact_median(self.values[-size:])
        return None if first is None or last is None else (first, last)


def course(series: Series, name: str) -> Course:
    """Return the course of a metric over the steady step records, and other records from their start on.

    If several ranks print it between steps, the one with most records counts, the lowest on a tie.
    """
    within = series.selection
    begin = next((at for e in series.events if e.rule.event == "step" for at in _first_steady(e, within)), None)
    printing = [e for e in series.events if e.prints(name) and (e.rule.event == "step" or begin is None or e.at >= begin)]
    counts: Counter[tuple[bool, int]] = Counter()
    for event in printing:
        counts[_speaker(event)] += event.records
    speaker = min(counts, key=lambda one: (-counts[one], one), default=None)
    return _course([event for event in printing if _speaker(event) == speaker], name, within)


def _speaker(event: Event) -> tuple[bool, int]:
    return event.rule.event != "step", event.rank


def _first_steady(event: Event, within: Selection | None) -> Iterator[int]:
    """Yield the positions of the first steady records of an event and its run."""
    if _is_steady(event, within):
        yield event.at
    if event.run is not None:
        mask = within.masks.get(id(event)) if within is not None else None
        index = 0 if mask is None else int(mask.argmax())
        if mask is None or mask[index]:
            yield event.run.record(index)[0]


def _is_steady(event: Event, within: Selection | None) -> bool:
    return within is None or id(event) in within.events


def _course(events: Sequence[Event], name: str, within: Selection | None) -> Course:
    steps: list[Numbers] = [[]]
    values: list[Numbers] = [[]]
    numbered = True
    for event in events:
        number = event.metrics.get(name)
        if number is not None and math.isfinite(number) and (event.rule.event != "step" or _is_steady(event, within)):
            numbered = numbered and event.step is not None
            _append(steps, float(event.step or 0))
            _append(values, number)
        found = event.run.metric(name) if event.run is not None else None
        if event.run is not None and found is not None:
            numbers, known = found
            chosen = np.isfinite(numbers)
            chosen = chosen if known is None else chosen & known
            mask = within.masks.get(id(event)) if within is not None else None
            chosen = chosen if mask is None else chosen & mask
            placed = event.run.steps
            numbered = numbered and len(placed) == len(event.run)
            if numbered:
                steps += [placed[chosen].astype(np.float64), []]
            values += [numbers[chosen], []]
    return Course(_joined(steps) if numbered else None, _joined(values))


def _append(parts: list[Numbers], value: float) -> None:
    last = parts[-1]
    assert isinstance(last, list)
    last.append(value)


def _joined(parts: Sequence[Numbers]) -> Numbers:
    if len(parts) == 1:
        return parts[0]
    joined: Floats = np.concatenate(parts)
    return joined


def _line(steps: Numbers, values: Numbers) -> Line | None:
    middle, level = exact_mean(steps), exact_mean(values)
    if middle is None or level is None:
        return None
    if isinstance(steps, list) and isinstance(values, list):
        away, off = [step - middle for step in steps], [value - level for value in values]
        products: list[Numbers] = [
            [a * b for a, b in zip(left, right, strict=True)] for left, right in ((away, off), (away, away), (off, off))
        ]
    else:
        with np.errstate(over="ignore", invalid="ignore"):
            far, gone = np.asarray(steps, np.float64) - middle, np.asarray(values, np.float64) - level
            products = [far * gone, far * far, gone * gone]
    try:
        both, across, along = (exact_sum(part) for part in products)
    except OverflowError:
        return None
    if not across or not along:
        return None
    slope = both / across
    line = Line(slope, slope * (float(steps[-1]) - float(steps[0])), slope * both / along)
    return line if all(map(math.isfinite, line)) else None
