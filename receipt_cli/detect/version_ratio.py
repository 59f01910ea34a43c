"""Compare a printed rate with the rate from batch and step time, to tell versions of a grammar apart."""

from __future__ import annotations

from array import array

import numpy as np

from receipt_cli.grammar.model import Grammar
from receipt_cli.numeric.precision import TOLERANCE
from receipt_cli.numeric.statistics import exact_median
from receipt_cli.scan.columns import NumberColumn
from receipt_cli.scan.engine import Engine
from receipt_cli.scan.segment import SegmentBody


def version_ratio(engine: Engine, body: SegmentBody, grammar: Grammar, metric: str) -> str | None:
    """Return the ratio of the printed ``metric`` to the derived one: ``1``, ``inverse_gradient_accumulation``, or None.

    None also without gradient accumulation, because both ratios are then equal.
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
    """Return rate * time / ``tokens`` of each row with a rate and a nonzero time, finite values only."""
    rows, timed = np.asarray(rate.rows, np.int64), np.asarray(time.rows, np.int64)
    after = np.searchsorted(timed, rows, side="right")
    both = after > 0
    both[both] = timed[after[both] - 1] == rows[both]
    seconds_of = np.asarray(time.values, np.float64)[after[both] - 1]
    with np.errstate(over="ignore", invalid="ignore"):
        ratios = np.asarray(rate.values, np.float64)[both] * seconds_of / tokens
    return array("d", ratios[np.isfinite(ratios) & (seconds_of != 0)].tobytes())


def _first_fact(engine: Engine, body: SegmentBody, grammar: Grammar, name: str) -> float | None:
    found: list[tuple[int, float]] = []
    for rule in grammar.rules:
        columns = engine.columns(body, grammar, rule)
        for spec in rule.fields.values() if columns is not None else ():
            numbers = columns.numbers.get(spec.name) if columns is not None and spec.target == ("fact", name) else None
            if columns is not None and numbers is not None and numbers.rows:
                found.append((columns.at[numbers.rows[0]], numbers.values[0]))
    return min(found)[1] if found else None
