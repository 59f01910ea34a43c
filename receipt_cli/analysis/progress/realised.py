"""Realised throughput: steps, tokens and samples over elapsed time, with waits, evaluations and stalls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from receipt_cli.analysis.consistency import tokens_per_step
from receipt_cli.analysis.flops import Facts, positive
from receipt_cli.analysis.goodput.timestamps import Life
from receipt_cli.events.model import Event
from receipt_cli.numeric.statistics import Statistic

FINE = 20
"""Timestamp grains in a time from which on its error is below 5 %."""
CLOCK_DIGITS = 6
"""Decimals of seconds in timestamps; further ones of a difference are float64 noise."""
BATCH = "global_batch_size"


class Realised(NamedTuple):
    """Work from the first to the last step record, and ``duration_s`` by their timestamps.

    An amount and its rate are None if the log does not show them.
    """

    duration_s: float
    step_count: int | None
    tokens: float | None
    samples: float | None
    steps_per_s: float | None
    tokens_per_s: float | None
    samples_per_s: float | None


def realise(steps: Sequence[Event], facts: Facts, metrics: Mapping[str, Statistic], life: Life | None) -> Realised | None:
    """Return the realised throughput of a phase's step records over ``life``; None without good timestamps.

    Tokens and samples are the difference of printed totals, else those per step (from ``facts`` or a constant batch size) times
    the steps.
    """
    if life is None or len(steps) + sum(len(event.run) for event in steps if event.run is not None) < 2:
        return None
    if life.seconds <= 0 or life.seconds < FINE * life.grain:
        return None
    first, last = steps[0].step, steps[-1].last_step
    count = last - first if first is not None and last is not None and last > first else None
    samples = _samples_per_step(facts, metrics)
    tokens = _tokens_per_step(facts, metrics, samples)
    amounts = (_total(steps, metrics, "tokens_total", tokens, count), _total(steps, metrics, "samples_total", samples, count))
    seconds = round(life.seconds, CLOCK_DIGITS)
    rates = (None if amount is None else amount / seconds for amount in (count, *amounts))
    return Realised(seconds, count, *amounts, *rates)


def _samples_per_step(facts: Facts, metrics: Mapping[str, Statistic]) -> float | None:
    """Return the samples per step: the printed batch size if it is constant, else the fact."""
    batch = metrics.get(BATCH)
    if batch is not None:
        return batch.min if batch.min is not None and batch.min == batch.max and batch.min > 0 else None
    return positive(facts, "samples_per_step")


def _tokens_per_step(facts: Facts, metrics: Mapping[str, Statistic], samples: float | None) -> float | None:
    if metrics.get(BATCH) is None:
        return tokens_per_step(facts)
    length = positive(facts, "sequence_length")
    return None if samples is None or length is None else samples * length


def _total(
    steps: Sequence[Event], metrics: Mapping[str, Statistic], name: str, each: float | None, count: int | None
) -> float | None:
    """Return the growth of a counter from the first to the last record, else ``each`` times the steps."""
    counter = metrics.get(name)
    if counter is not None and counter.scope in (None, "global"):
        first, last = steps[0].metrics.get(name), _last(steps[-1], name)
        if first is not None and last is not None and last > first:
            return last - first
    return None if each is None or count is None else each * count


def _last(event: Event, name: str) -> float | None:
    return event.metrics.get(name) if event.run is None else event.run.values(len(event.run) - 1)[1].get(name)
