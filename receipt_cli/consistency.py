"""Reported against derived: the trainer's own figures recomputed from its batch and its step time."""

from __future__ import annotations

import math
from array import array
from collections.abc import Mapping
from decimal import Decimal
from typing import NamedTuple

from receipt_cli.columns import NumberColumn
from receipt_cli.grammar import Grammar
from receipt_cli.magnitude import is_large
from receipt_cli.phases import Phase
from receipt_cli.scan import Engine
from receipt_cli.statistics import Statistic, exact_median
from receipt_cli.stretch import Body

TOLERANCE = 0.02
"""Reported and derived medians that differ by no more than this share are consistent: printed digits and async timing."""


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


def version_ratio(engine: Engine, body: Body, grammar: Grammar, metric: str) -> str | None:
    """Say what the printed ``metric`` is of the derived one: ``1``, ``inverse_gradient_accumulation``, or unknown.

    Unknown (None) also when the gradient is not accumulated, since both are then the same number.
    """
    accumulation = _first_fact(engine, body, grammar, "gradient_accumulation_steps")
    tokens = _first_fact(engine, body, grammar, "tokens_per_step")
    if metric != "tokens_per_s" or not tokens or not accumulation or accumulation <= 1:
        return None
    ratios = array("d")
    for rule in grammar.rules:
        columns = engine.columns(body, grammar, rule)
        if columns is None or rule.event != "step":
            continue
        values = {f.target[1]: columns.numbers.get(f.name) for f in rule.fields.values() if f.target[0] == "metric"}
        rate, time = values.get("tokens_per_s"), values.get("step_time_s")
        if rate is not None and time is not None:
            ratios += _ratios(rate, time, tokens)
    middle = exact_median(ratios)
    if middle is None:
        return None
    if abs(middle - 1) <= TOLERANCE:
        return "1"
    return "inverse_gradient_accumulation" if abs(middle * accumulation - 1) <= TOLERANCE else None


def _ratios(rate: NumberColumn, time: NumberColumn, tokens: float) -> array[float]:
    """Return rate times time over ``tokens`` of each row that has a rate and a time other than zero, where finite."""
    if not is_large(len(rate.rows)):
        seconds = dict(zip(time.rows, time.values, strict=True))
        found = (v * seconds[r] / tokens for r, v in zip(rate.rows, rate.values, strict=True) if seconds.get(r))
        return array("d", (ratio for ratio in found if math.isfinite(ratio)))
    import numpy as np

    rows, timed = np.asarray(rate.rows, np.int64), np.asarray(time.rows, np.int64)
    after = np.searchsorted(timed, rows, side="right")
    both = after > 0
    both[both] = timed[after[both] - 1] == rows[both]
    seconds_of = np.asarray(time.values, np.float64)[after[both] - 1]
    with np.errstate(over="ignore", invalid="ignore"):
        ratios = np.asarray(rate.values, np.float64)[both] * seconds_of / tokens
    return array("d", ratios[np.isfinite(ratios) & (seconds_of != 0)].tobytes())


def _first_fact(engine: Engine, body: Body, grammar: Grammar, name: str) -> float | None:
    found: list[tuple[int, float]] = []
    for rule in grammar.rules:
        columns = engine.columns(body, grammar, rule)
        for spec in rule.fields.values() if columns is not None else ():
            numbers = columns.numbers.get(spec.name) if columns is not None and spec.target == ("fact", name) else None
            if columns is not None and numbers is not None and numbers.rows:
                found.append((columns.at[numbers.rows[0]], numbers.values[0]))
    return min(found)[1] if found else None


def phase_facts(phase: Phase, before: Mapping[str, float | str]) -> dict[str, float | str]:
    """Return what the phase printed about itself, over what earlier phases printed about the batch and the world."""
    own: dict[str, float | str] = {}
    for event in phase.singles:
        for name, value in event.facts.items():
            own.setdefault(name, value)
    return {**{k: v for k, v in before.items() if k not in ("parameter_count", "training_time_s", "exit_code")}, **own}
