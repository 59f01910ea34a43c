"""Work per second of each step record: tokens or samples, from its batch and its step time."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from receipt_cli.events.table import Column, EventTable
from receipt_cli.numeric.arrays import distinct_values


class StepRate(NamedTuple):
    """Parts of a rate: units per sample (sequence length for tokens, 1 for samples), and units per step without a batch size."""

    per_sample: float | str | None
    constant: float | None

    def of(self, table: EventTable) -> tuple[Column, list[float]]:
        """Return the rate of the records that have one [units/s], and the distinct units per step of these."""
        seconds, samples = table.filled("step_time_s"), table.filled("global_batch_size")  # batches may ramp up
        each = self.per_sample if isinstance(self.per_sample, float) else math.nan
        with np.errstate(all="ignore"):
            amounts = samples * each
            constant = math.nan if self.constant is None else self.constant
            amounts = np.where((amounts > 0) & (amounts < math.inf), amounts, constant)
            known = (seconds > 0) & ~np.isnan(amounts)
            return table.figure(amounts / seconds, known), distinct_values(amounts[known]).tolist()


def scaled(column: Column, factor: float) -> Column:
    """Return a figure times ``factor``."""
    return column._replace(values=column.values * factor)
