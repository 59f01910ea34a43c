"""Figures of one metric (count, first, last, min, max, mean, median): do they fit one another and their values?"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any

from receipt_cli.documents.invariants.rule import Broken, Document, Rule

Figures = dict[str, Any]
Placed = Iterable[tuple[str, Figures]]
"""(JSON pointer, figures) of each metric of a document."""
Column = Sequence[float | None]
"""One value a step; None where there is none or it is not finite."""

_MIDDLES = ("mean", "median")
_HUGE = 1e290
"""Where values are this large, a mean may lie beyond float64 and then is null."""
_SLACK = 1e-9


def figure_rules(parts: tuple[str, ...], placed: Callable[[Document], Placed]) -> tuple[Rule, ...]:
    """Return the rules that any figures keep, for those that ``placed`` finds in ``parts`` of a document."""
    return (
        Rule("statistic_counts", parts, lambda document: over(check_counts, placed(document))),
        Rule("statistic_nulls", parts, lambda document: over(check_nulls, placed(document))),
        Rule("statistic_order", parts, lambda document: over(check_order, placed(document))),
    )


def over(check: Callable[[str, Figures], Broken], placed: Placed) -> Broken:
    """Yield what ``check`` finds in each of the figures."""
    return chain.from_iterable(check(at, figures) for at, figures in placed)


def check_counts(at: str, figures: Figures) -> Broken:
    """No more values are not finite than there are."""
    if (figures["nonfinite_count"] or 0) > (figures["record_count"] or 0) and figures["record_count"] is not None:
        yield f"{at}/nonfinite_count", f"is above record_count, {figures['record_count']}"


def check_nulls(at: str, figures: Figures) -> Broken:
    """A figure is null exactly where no finite value is there for it; ``check_counts`` reports wrong counts."""
    if None in (figures["record_count"], figures["nonfinite_count"]):
        return  # a problem leaves open how many there are
    finite = figures["record_count"] - figures["nonfinite_count"]
    for name in ("min", "max", *_MIDDLES):
        if finite == 0 and figures[name] is not None:
            yield f"{at}/{name}", "has no finite value to come from"
        elif finite > 0 and figures[name] is None and (name not in _MIDDLES or not _is_huge(figures)):
            yield f"{at}/{name}", f"is null though {finite} finite values are counted"
    for name in ("first", "last") if _is_over_all(figures) else ():
        if finite == 0 and figures[name] is not None:
            yield f"{at}/{name}", "has no finite value to come from"
        elif figures[name] is None and finite == figures["record_count"] > 0:
            yield f"{at}/{name}", "is null though every value is finite"


def check_order(at: str, figures: Figures) -> Broken:
    """Every figure lies between min and max, as far as those are known."""
    low, high = figures["min"], figures["max"]
    if low is not None and high is not None and low > high:
        yield f"{at}/min", f"is above max, {high}"
        return
    slack = _SLACK * max(abs(low or 0), abs(high or 0))
    for name in (*_MIDDLES, "first", "last") if _is_over_all(figures) else _MIDDLES:
        value = figures[name]
        if value is not None and low is not None and value < low - slack:
            yield f"{at}/{name}", f"{value} is below min, {low}"
        elif value is not None and high is not None and value > high + slack:
            yield f"{at}/{name}", f"{value} is above max, {high}"


def check_column(at: str, figures: Figures, column: Column) -> Broken:
    """The figures are those of ``column``; a null in it is a value that is missing or not finite."""
    finite = [value for value in column if value is not None]
    missing = len(column) - len(finite)
    if figures["record_count"] - figures["nonfinite_count"] != len(finite) or figures["nonfinite_count"] > missing:
        yield f"{at}/record_count", f"{len(finite)} of {len(column)} values are finite"
        return
    for name, wanted in column_figures(finite).items():
        stated = figures[name]
        if name in ("first", "last") and stated is None and figures["nonfinite_count"]:
            continue  # the value in that place may be one that is not finite
        if not close(stated, wanted) and not (name in _MIDDLES and stated is None and _is_huge(figures)):
            yield f"{at}/{name}", f"is {stated}, its values say {wanted}"


def close(stated: float | None, wanted: float | None) -> bool:
    """Return whether both are unknown, or are the same but for a rounding."""
    if stated is None or wanted is None:
        return stated is wanted
    return math.isclose(stated, wanted, rel_tol=_SLACK, abs_tol=1e-300)


def ratio(above: float | None, below: float | None) -> float | None:
    """Return the quotient, or None where a part is unknown or ``below`` is 0."""
    return None if above is None or not below else float(above) / float(below)


def column_figures(finite: Sequence[float]) -> Figures:
    """Return first, last, min, max, mean and median of finite values; each None where there is no value."""
    if not finite:
        return dict.fromkeys(("first", "last", "min", "max", *_MIDDLES))
    ordered = sorted(finite)
    ends = {"first": finite[0], "last": finite[-1], "min": ordered[0], "max": ordered[-1]}
    return {**ends, "mean": _mean(finite), "median": _median(ordered)}


def _mean(finite: Sequence[float]) -> float:
    try:
        return math.fsum(finite) / len(finite)
    except OverflowError:  # the sum lies beyond float64, the mean does not
        return math.fsum(value / len(finite) for value in finite)


def _median(ordered: Sequence[float]) -> float:
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    middle = (low + high) / 2
    return middle if math.isfinite(middle) else low / 2 + high / 2


def _is_over_all(figures: Figures) -> bool:
    return bool(figures.get("window", "all") == "all")


def _is_huge(figures: Figures) -> bool:
    return any(figures[name] is not None and abs(figures[name]) >= _HUGE for name in ("min", "max"))
