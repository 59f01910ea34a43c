"""Compare printed figures with those recomputed from batch and step time."""

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
    """A reported and a derived median; ``ratio`` = reported / derived."""

    metric: str
    reported: float
    derived: float
    ratio: float
    consistent: bool


def tokens_per_step(facts: Mapping[str, float | str]) -> float | None:
    """Return the tokens of one optimizer step: printed, or samples times sequence length; None if unknown."""
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
    """Return the comparison of two medians; None if one is missing or zero, or if the ratio is beyond float64.

    They also agree if they differ by at most half a unit of the last printed digit (of ``digits``, if known).
    """
    if reported is None or derived is None or not reported.median or not derived.median:
        return None
    ratio = reported.median / derived.median
    if not math.isfinite(ratio):
        return None
    near = abs(reported.median - derived.median) <= (_half_digit(reported) if digits is None else (digits.unit or 0.0) / 2)
    return Comparison(metric, reported.median, derived.median, ratio, near or abs(ratio - 1) <= TOLERANCE)


MEAN = "mean_over_the_run"
"""Definition of a rate printed once, at the end: all work over its time."""
_SESSION = 0.1
"""Tolerance between the steps counted by such a rate and the log's steps."""


def of_session(first: int, last: int, records: int, metrics: Mapping[str, Statistic], seconds: float | None) -> list[Comparison]:
    """Return the means over the run that count other steps than ``first`` to ``last``, which took ``seconds``.

    After a resume or an early stop, trainers divide all planned steps by the time of this session. Records are a stride apart:
    the session may begin up to a stride before the first and end after the last.
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
    """Return half a unit of the last printed decimal; 0.0 for whole numbers, which show none."""
    shown = [value for value in (printed.first, printed.last, printed.min, printed.max) if value is not None]
    exponents = [Decimal(repr(value)).normalize().as_tuple().exponent for value in shown]
    finest = min((e for e in exponents if isinstance(e, int)), default=0)
    return 0.5 * 10.0**finest if finest < 0 else 0.0


def phase_facts(phase: Phase, before: Mapping[str, float | str]) -> dict[str, float | str]:
    """Return the facts of the phase, completed by batch and world facts of earlier phases."""
    own: dict[str, float | str] = {}
    for event in phase.standalone_events:
        for name, value in event.facts.items():
            own.setdefault(name, value)
    return {**{k: v for k, v in before.items() if k not in ("parameter_count", "training_time_s", "exit_code")}, **own}
