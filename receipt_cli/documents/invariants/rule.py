"""The type of a rule between the fields of a document; rules of the statistics of one metric."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

from receipt_cli.patterns import compile_later
from receipt_cli.problems import pointer, split_pointer, value_at

Severity = Literal["error", "note"]
Document = dict[str, Any]
Broken = Iterator[tuple[str, str]]
"""(JSON pointer, reason) for each place where a rule is broken."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule: its name, the top-level parts that it reads (whose shape must be valid), and the check."""

    name: str
    parts: tuple[str, ...]
    check: Callable[[Document], Broken]
    severity: Severity = "error"


def said(check: bool | None) -> str:
    """Return the value of a check as JSON text."""
    return "null" if check is None else str(check).lower()


_ABSENT: Any = object()
PHASES = ("phases", "summary")
"""Parts of a receipt that ``summaries`` reads."""


def summaries(document: Document) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (pointer, summary) for each phase, or for ``/summary`` if there is no phase."""
    for number, phase in enumerate(document["phases"]):
        yield pointer("phases", number, "summary"), phase["summary"]
    if not document["phases"] and document["summary"] is not None:
        yield "/summary", document["summary"]


def each(check: Callable[..., Broken], placed: Callable[[Document], Iterable[tuple[Any, ...]]]) -> Callable[[Document], Broken]:
    """Return the check of a document that gives ``check`` each of the parts that ``placed`` yields."""
    return lambda document: chain.from_iterable(check(*part) for part in placed(document))


def withheld(document: Document) -> frozenset[str]:
    """Return the pointers of fields that a problem made null; those in ``/summary`` also for the phases equal to it."""
    named = (field for problem in document["derivation"]["problems"]["first"] for field in problem.get("fields", ()))
    found = {field for field in named if value_at(document, split_pointer(field), _ABSENT) is None}
    if not found:
        return frozenset()
    inside = [field.removeprefix("/summary") for field in found if field.startswith("/summary/")]
    primary = [n for n, phase in enumerate(document["phases"]) if phase["summary"] == document["summary"]]
    return frozenset(found | {pointer("phases", n, "summary") + field for n in primary for field in inside})


def excused(found: Broken, null: frozenset[str]) -> Broken:
    """Return the findings but for those on fields that are null because a problem withheld them, or on the parents of these."""
    above = {at for figure in null for at in (figure, figure.rpartition("/")[0])}
    return ((at, reason) for at, reason in found if at not in above)


def is_import(document: Document) -> bool:
    """Return whether the receipt was imported from another system's document, which has values without records."""
    rules: str = document["derivation"]["rules"]
    return rules.startswith("import/")


_CONTROL = compile_later(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")
"""C0 without the tab, DEL and C1."""


def check_once(entries: Iterable[tuple[str, object]]) -> Broken:
    """Yield the pointers of the entries whose key an earlier entry has."""
    seen: set[object] = set()
    for at, key in entries:
        if key in seen:
            yield at, "appears twice"
        seen.add(key)


def check_lengths(columns: Iterable[tuple[str, Sequence[object] | None]], wanted: int) -> Broken:
    """Yield the pointers of the columns, if they are there, that have another number of entries than ``wanted`` steps."""
    for at, column in columns:
        if column is not None and len(column) != wanted:
            yield at, f"has {len(column)} entries for {wanted} steps"


def check_texts(texts: Iterable[tuple[str, str | None]]) -> Broken:
    """Yield the pointers of texts with a control character."""
    for at, text in texts:
        if text is not None and _CONTROL.search(text):
            yield at, "contains a control character"


Figures = dict[str, Any]
Placed = Iterable[tuple[str, Figures]]
"""(JSON pointer, figures) of each metric of a document."""
Column = Sequence[float | None]
"""One value for each step; None if missing or not finite."""

_MIDDLES = ("mean", "median")
_HUGE = 1e290
"""Least magnitude of values whose mean may overflow float64 and is then null."""
_SLACK = 1e-9


def figure_rules(
    parts: tuple[str, ...], placed: Callable[[Document], Placed], whole: Callable[[Document], Placed] | None = None
) -> tuple[Rule, ...]:
    """Return the general rules of statistics for those that ``placed`` yields from ``parts`` of a document.

    ``whole`` yields those that lack none of their figures, if these are not all.
    """
    return (
        Rule("statistic_counts", parts, each(_counts, placed)),
        Rule("statistic_nulls", parts, each(_nulls, whole or placed)),
        Rule("statistic_order", parts, each(_order, placed)),
    )


def _counts(at: str, figures: Figures) -> Broken:
    """Check that ``nonfinite_count`` is at most ``record_count``."""
    if (figures["nonfinite_count"] or 0) > (figures["record_count"] or 0) and figures["record_count"] is not None:
        yield f"{at}/nonfinite_count", f"is above record_count, {figures['record_count']}"


def _nulls(at: str, figures: Figures) -> Broken:
    """Check that a statistic is null if, and only if, it has no finite value; ``_counts`` reports wrong counts."""
    if None in (figures["record_count"], figures["nonfinite_count"]):
        return  # a problem made the counts unknown
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


def _order(at: str, figures: Figures) -> Broken:
    """Check that every statistic is between min and max, if these are known."""
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
    """Check the statistics against ``column``, in which None is a missing or non-finite value."""
    finite = [value for value in column if value is not None]
    missing = len(column) - len(finite)
    if figures["record_count"] - figures["nonfinite_count"] != len(finite) or figures["nonfinite_count"] > missing:
        yield f"{at}/record_count", f"{len(finite)} of {len(column)} values are finite"
        return
    for name, wanted in column_figures(finite).items():
        stated = figures[name]
        if name in ("first", "last") and stated is None and figures["nonfinite_count"]:
            continue  # the first or last value may be non-finite
        if not close(stated, wanted) and not (name in _MIDDLES and stated is None and _is_huge(figures)):
            yield f"{at}/{name}", f"is {stated}, but {wanted} by its values"


def close(stated: float | None, wanted: float | None) -> bool:
    """Return whether both are None, or equal except for rounding."""
    if stated is None or wanted is None:
        return stated is wanted
    return math.isclose(stated, wanted, rel_tol=_SLACK, abs_tol=1e-300)


def ratio(above: float | None, below: float | None) -> float | None:
    """Return ``above / below``, or None if a part is unknown or ``below`` is 0."""
    return None if above is None or not below else float(above) / float(below)


def column_figures(finite: Sequence[float]) -> Figures:
    """Return first, last, min, max, mean and median of finite values; each None without values."""
    if not finite:
        return dict.fromkeys(("first", "last", "min", "max", *_MIDDLES))
    ordered = sorted(finite)
    ends = {"first": finite[0], "last": finite[-1], "min": ordered[0], "max": ordered[-1]}
    return {**ends, "mean": _mean(finite), "median": _median(ordered)}


def layer_figures(curves: Iterable[tuple[int, Iterable[float | None]]]) -> Figures:
    """Return the smallest and the largest value of curves by layer, None without any, and the first layer that has it."""
    values = [(value, layer) for layer, curve in curves for value in curve if value is not None]
    smallest = min(values, default=(None, None))
    largest = max(values, key=lambda one: (one[0], -one[1]), default=(None, None))
    return {"min": smallest[0], "min_layer": smallest[1], "max": largest[0], "max_layer": largest[1]}


def _mean(finite: Sequence[float]) -> float:
    try:
        return math.fsum(finite) / len(finite)
    except OverflowError:  # the sum overflows float64, the mean does not
        return math.fsum(value / len(finite) for value in finite)


def _median(ordered: Sequence[float]) -> float:
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    middle = (low + high) / 2
    return middle if math.isfinite(middle) else low / 2 + high / 2


def _is_over_all(figures: Figures) -> bool:
    return bool(figures.get("window", "all") == "all")


def _is_huge(figures: Figures) -> bool:
    return any(figures[name] is not None and abs(figures[name]) >= _HUGE for name in ("min", "max"))
