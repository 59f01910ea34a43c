"""Reported against derived: the trainer's own figures recomputed from its batch and its step time."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import NamedTuple

from receipt_cli.events.phases import Phase
from receipt_cli.events.printed_digits import Digits
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


def compare(
    metric: str, reported: Statistic | None, derived: Statistic | None, digits: Digits | None = None
) -> Comparison | None:
    """Return the comparison of two medians, or None where one is missing or zero, or the ratio is beyond float64.

    They agree, too, where they are nearer to each other than half a unit of the last digit printed: of ``digits``, if known.
    """
    if reported is None or derived is None or not reported.median or not derived.median:
        return None
    ratio = reported.median / derived.median
    if not math.isfinite(ratio):
        return None
    near = abs(reported.median - derived.median) <= (_half_digit(reported) if digits is None else (digits.unit or 0.0) / 2)
    return Comparison(metric, reported.median, derived.median, ratio, near or abs(ratio - 1) <= TOLERANCE)


MEAN = "mean_over_the_run"
"""Definition of a rate that a trainer prints once, at its end: its work over its own time."""
_SESSION = 0.1
"""Share by which the steps that such a rate stands for may differ from those of the log."""


def of_session(first: int, last: int, records: int, metrics: Mapping[str, Statistic], seconds: float | None) -> list[Comparison]:
    """Return the means over the run that count other steps than those from ``first`` to ``last``, which took ``seconds``.

    After a resume, and where a run stops early, trainers divide the steps of the plan by the time of this session. Records are
    a stride apart: the first may be of a run that began a stride before it, and steps may follow the last.
    """
    steps = metrics.get("steps_per_s")
    if steps is None or steps.definition != MEAN or not steps.last or not seconds or records < 2 or last <= first:
        return []
    stride = (last - first) / (records - 1)
    begun = 0.0 if first <= 1.5 * stride else first - stride
    counted, done = steps.last * seconds, last - begun
    if done * (1 - _SESSION) - 1 <= counted <= (done + stride) * (1 + _SESSION) + 1:
        return []
    ratio = counted / done
    printed = {name: s.last for name, s in metrics.items() if s.definition == MEAN and name.endswith("s_per_s") and s.last}
    return [Comparison(name, rate, rate / ratio, ratio, False) for name, rate in printed.items()]


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
