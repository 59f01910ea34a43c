"""Reported against derived: the trainer's own figures recomputed from its batch and its step time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal

from receipt_cli.events.phases import Phase
from receipt_cli.lazy_dataclass import NamedTuple
from receipt_cli.numeric.precision import TOLERANCE
from receipt_cli.numeric.statistics import Statistic


class Comparison(NamedTuple):
    """A reported median beside the derived one; ``ratio`` = reported / derived."""

    metric: str
    reported: float
    derived: float
    ratio: float
    consistent: bool


def tokens_per_step(facts: Mapping[str, float | str]) -> float | None:
    """Return the tokens of one optimizer step: printed, or samples times sequence length; None when unknown."""
    tokens = facts.get("tokens_per_step")
    if isinstance(tokens, float) and 0 < tokens < math.inf:
        return tokens
    samples, length = facts.get("samples_per_step"), facts.get("sequence_length")
    if isinstance(samples, float) and isinstance(length, float) and 0 < samples * length < math.inf:
        return samples * length
    return None


def compare(metric: str, reported: Statistic | None, derived: Statistic | None) -> Comparison | None:
    """Return the comparison of two medians, or None where one is missing or zero, or the ratio is beyond float64.

    They agree, too, where they are nearer to each other than half a unit of the last digit printed.
    """
    if reported is None or derived is None or not reported.median or not derived.median:
        return None
    ratio = reported.median / derived.median
    if not math.isfinite(ratio):
        return None
    near = abs(reported.median - derived.median) <= _half_digit(reported)
    return Comparison(metric, reported.median, derived.median, ratio, near or abs(ratio - 1) <= TOLERANCE)


def _half_digit(printed: Statistic) -> float:
    """Return half a unit of the last decimal that the printed figures show; 0.0 for whole numbers, which show none."""
    shown = [value for value in (printed.first, printed.last, printed.min, printed.max) if value is not None]
    exponents = [Decimal(repr(value)).normalize().as_tuple().exponent for value in shown]
    finest = min((e for e in exponents if isinstance(e, int)), default=0)
    return 0.5 * 10.0**finest if finest < 0 else 0.0


def phase_facts(phase: Phase, before: Mapping[str, float | str]) -> dict[str, float | str]:
    """Return what the phase printed about itself, over what earlier phases printed about the batch and the world."""
    own: dict[str, float | str] = {}
    for event in phase.standalone_events:
        for name, value in event.facts.items():
            own.setdefault(name, value)
    return {**{k: v for k, v in before.items() if k not in ("parameter_count", "training_time_s", "exit_code")}, **own}
