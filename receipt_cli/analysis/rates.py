"""Work per second of each step record: tokens or samples, from its batch and its step time."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from receipt_cli.events.model import Event
from receipt_cli.events.rows import RowRun
from receipt_cli.events.series import Figure
from receipt_cli.numeric.array_types import Floats, Mask
from receipt_cli.numeric.arrays import distinct_values


class StepRate(NamedTuple):
    """Parts of a rate: units per sample (sequence length for tokens, 1 for samples), and units per step without a batch size."""

    per_sample: float | str | None
    constant: float | None

    @property
    def figure(self) -> Figure:
        """The rate per record [units/s], for records that have one."""
        return Figure(self._rate, self._rates)

    def amounts(self, events: Iterable[Event]) -> set[float]:
        """Return the distinct units per step of records that have a rate."""
        found: set[float] = set()
        for event in events:
            amount = self._units(event)
            if amount is not None and self._rate(event) is not None:
                found.add(amount)
            if event.run is not None:
                found |= self._run_amounts(event.run)
        return found

    def _units(self, event: Event) -> float | None:
        samples = event.metrics.get("global_batch_size")  # of this step: batches may ramp up
        if samples is not None and isinstance(self.per_sample, float) and 0 < samples * self.per_sample < math.inf:
            return samples * self.per_sample
        return self.constant

    def _rate(self, event: Event) -> float | None:
        seconds, amount = event.metrics.get("step_time_s"), self._units(event)
        return amount / seconds if amount is not None and seconds is not None and seconds > 0 else None

    def _rates(self, run: RowRun) -> tuple[Floats, Mask | None] | None:
        seconds, amounts = run.filled("step_time_s"), self._run_units(run)
        if seconds is None or amounts is None:
            return None
        known = (seconds > 0) & ~np.isnan(amounts)
        with np.errstate(all="ignore"):
            rates = amounts / seconds
        return rates, None if bool(known.all()) else known

    def _run_units(self, run: RowRun) -> Floats | None:
        """Return the units of each step, NaN if unknown; None if all are unknown."""
        samples = run.filled("global_batch_size")
        missing = math.nan if self.constant is None else self.constant
        if samples is None or not isinstance(self.per_sample, float):
            return None if self.constant is None else np.full(len(run), missing)
        with np.errstate(all="ignore"):
            amounts = samples * self.per_sample
        return np.where((amounts > 0) & (amounts < math.inf), amounts, missing)

    def _run_amounts(self, run: RowRun) -> set[float]:
        seconds, amounts = run.filled("step_time_s"), self._run_units(run)
        if seconds is None or amounts is None:
            return set()
        return set(distinct_values(amounts[(seconds > 0) & ~np.isnan(amounts)]).tolist())


def scaled(figure: Figure, factor: float) -> Figure:
    """Return the figure times ``factor``."""

    def of_event(event: Event) -> float | None:
        value = figure.of_event(event)
        return None if value is None else value * factor

    def of_run(run: RowRun) -> tuple[Floats, Mask | None] | None:
        found = figure.of_run(run)
        return None if found is None else (found[0] * factor, found[1])

    return Figure(of_event, of_run)
