"""The step records of a phase as columns, by attempt, with those that stand apart from those that were superseded."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TypeGuard

import numpy as np

from receipt_cli.events.phases import Phase
from receipt_cli.events.table import LARGE, NO_STEP, EventTable, mask_of
from receipt_cli.numeric.array_types import Array, Floats, Integers, Mask
from receipt_cli.numeric.spill import gathered, picked, slices
from receipt_cli.numeric.statistics import exact_sum

TIME, DATA, DISPATCH = "step_time_s", "data_time_s", "dispatch_wait_s"
CUMULATIVE = ("mean_since_start", "mean_since_timing_began")
"""Definitions of a figure whose last value is the mean of all steps."""
LONGEST = 1e9
"""Longest possible time in seconds, thirty years: a larger figure is no time."""
MISSING = 0.1
"""Share of the steps that may lack a time; the median is taken for them."""
MOST = 1 << 17
"""Number of records whose figures are summed together."""


def is_time(value: object) -> TypeGuard[float]:
    """Return whether a printed figure can be a time in seconds."""
    return isinstance(value, float) and 0 <= value <= LONGEST


class Records(EventTable):
    """Step records (n) of several attempts (k), attempt by attempt in log order.

    ``starts`` and ``stops`` are the index of the first record of each attempt and the index after its last. The records of an
    attempt before ``standing`` stand; a later attempt superseded the others (int64 [k] each).
    """

    def __init__(self, table: EventTable, starts: Integers, standing: Integers | None = None) -> None:
        """Without ``standing``, all records stand."""
        super().__init__(table.log, table.rows)
        self.starts = starts
        self.stops: Integers = np.append(starts[1:], self.count)[: len(starts)]
        self.standing = self.stops if standing is None else standing
        self.lengths: Integers = self.stops - starts
        self._times: dict[str, Floats] = {}

    # --- columns ---------------------------------------------------------------------------------------------------

    @cached_property
    def numbered(self) -> bool:
        """Whether all records have a step."""
        return not any(bool(np.isnan(self.steps[part]).any()) for part in slices(self.count))

    @cached_property
    def covers(self) -> Integers:
        """The number of steps since the record before (int64 [n]), 1 if unknown; for the first of an attempt see ``leads``."""

        def block(part: slice) -> Integers:
            step, before = self.step[part], self._before(self.step, part)
            found = np.where((step != NO_STEP) & (before != NO_STEP), np.maximum(step - before, 0), 1)
            low, high = np.searchsorted(self.starts, [part.start, part.stop])
            found[self.starts[low:high] - part.start] = self.leads[low:high]
            return found

        return gathered(np.int64, self.count, map(block, slices(self.count)))

    @cached_property
    def by_epoch(self) -> bool:
        """Whether each record is of a later epoch than the one before: between them lies what ends an epoch, read or not."""
        epochs = self.filled("epoch")
        parts = ((self.rises(epochs, part), epochs[part]) for part in slices(self.count))
        return self.gaps > 0 and not any(bool((rise < 1).any() or np.isnan(epoch).any()) for rise, epoch in parts)

    def times(self, name: str) -> Floats:
        """Return for each record a figure that is a time in seconds (float64 [n]); NaN if it prints none."""
        if name not in self._times:
            values = self.filled(name)
            parts = (values[part] for part in slices(self.count))
            possible = (np.where((each >= 0) & (each <= LONGEST), each, math.nan) for each in parts)
            self._times[name] = gathered(np.float64, self.count, possible)
        return self._times[name]

    def rises(self, column: Floats, part: slice) -> Floats:
        """Return the rise of a column from the record before to each in ``part``; NaN for the first of an attempt."""
        found: Floats = column[part] - self._before(column, part)
        low, high = np.searchsorted(self.starts, [part.start, part.stop])
        found[self.starts[low:high] - part.start] = math.nan
        return found

    def _before(self, column: Array, part: slice) -> Array:
        """Return the value before each value in a part of a column; before its very first value that value itself."""
        return column[part.start - 1 : part.stop - 1] if part.start else np.append(column[:1], column[: part.stop - 1])

    # --- attempts --------------------------------------------------------------------------------------------------

    @cached_property
    def strides(self) -> Integers:
        """The steps from the first record of each attempt to the second (int64 [k]); 0 if unknown."""
        first, second = self.step[self.starts], self.step[np.minimum(self.starts + 1, self.stops - 1)]
        return np.where((first != NO_STEP) & (second != NO_STEP), second - first, 0)

    @cached_property
    def leads(self) -> Integers:
        """The number of steps that the first record of each attempt covers (int64 [k]): one stride, but no more than there are
        from the beginning of training to this record; 1 if the stride is unknown."""
        step, stride = self.step[self.starts], self.strides
        many = np.minimum(stride, np.where((step + 1) % np.maximum(stride, 1) == 0, step + 1, step))
        return np.where((step <= 1) | (stride <= 1), 1, many)

    @property
    def superseded(self) -> int:
        """The number of attempts with superseded records."""
        return int(np.count_nonzero(self.standing < self.stops))

    @property
    def gaps(self) -> int:
        """The number of pairs of neighbouring records in one attempt."""
        return self.count - len(self.starts)

    def first(self, counts: Integers) -> Integers:
        """Return the indexes of the first ``counts`` records of each attempt (``counts``: int64 [k])."""
        ends = np.cumsum(counts)
        found: Integers = np.repeat(self.starts - ends + counts, counts) + np.arange(counts.sum())
        return found

    def stands(self, records: Integers) -> Mask:
        """Return the mask of ``records`` (indexes) that stand."""

        def stand(part: slice) -> Mask:
            found: Mask = records[part] < self.standing[np.searchsorted(self.starts, records[part], "right") - 1]
            return found

        return mask_of(len(records), stand)

    # --- sums ------------------------------------------------------------------------------------------------------

    def steps_in(self, begins: Integers, ends: Integers) -> Integers:
        """Return the number of steps in each stretch of records, from ``begins`` to ``ends`` (exclusive), none of them empty.
        If the first or the last record of a stretch has no step, the number of its records is returned."""
        first, last = picked(self.step, begins), picked(self.step, ends - 1)
        return np.where((first != NO_STEP) & (last != NO_STEP), picked(self.covers, begins) + last - first, ends - begins)

    def totals(self, begins: Integers, ends: Integers, name: str, definition: str | None, median: float) -> list[float | None]:
        """Return for each stretch, from ``begins`` to ``ends`` (exclusive), the sum over its steps of a figure of one step.

        The figure of a record counts for each step since the record before; ``median`` counts for steps without one. The sum is
        None if too many steps lack it. Empty stretches are left out.
        """
        begins, ends = begins[begins < ends], ends[begins < ends]
        found: list[float | None] = []
        low = 0
        while low < len(begins):  # stretches of about ``MOST`` records together, or a longer one alone
            high = max(low + 1, int(np.searchsorted(ends, begins[low] + MOST)))
            found += self._totals(begins[low:high], ends[low:high], name, definition, median)
            low = high
        return found

    def _totals(self, begins: Integers, ends: Integers, name: str, definition: str | None, median: float) -> list[float | None]:
        start, stop = int(begins[0]), int(ends[-1])
        values, covers, whole = self.times(name)[start:stop], self.covers[start:stop], self.steps_in(begins, ends)
        begins, ends = begins - start, ends - start
        known = ~np.isnan(values)
        kept = _sums(known)
        first, last = kept[begins], kept[ends]
        if definition in CUMULATIVE:
            shown = np.append(values[known], math.nan)[last - 1] * whole
            return [total if low < high else None for total, low, high in zip(shown.tolist(), first, last, strict=True)]
        timed = _sums(np.where(known, covers, 0))
        with_time = timed[ends] - timed[begins]
        without = whole - with_time
        dark = (with_time == 0) | (without > MISSING * whole)
        figures = (values * covers)[known]
        products = figures.tolist() if len(begins) > 1 else figures
        every = zip(first.tolist(), last.tolist(), without.tolist(), dark.tolist(), strict=True)
        return [None if unknown else exact_sum(products[low:high]) + missing * median for low, high, missing, unknown in every]


def _sums(values: Array) -> Integers:
    """Return the sum of the first 0, 1, ... values (int64 [n + 1])."""
    found = np.zeros(len(values) + 1, np.int64)
    np.cumsum(values, out=found[1:])
    return found


def are_countable(phase: Phase) -> bool:
    """Return whether ``EventTable.step`` can hold the steps of a phase."""
    steps = phase.step_events.steps
    return not any(bool((np.abs(steps[part]) >= LARGE).any()) for part in slices(len(steps)))
