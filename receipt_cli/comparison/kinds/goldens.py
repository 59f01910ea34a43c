"""Compare two documents of golden curves: the same figures of the same systems, and where they depart."""

from __future__ import annotations

from typing import Any

from receipt_cli.comparison.golden import System
from receipt_cli.comparison.kinds.contrast import Cells, Document, Reasons, places


def compare_goldens(a: Document, b: Document) -> dict[str, Any]:
    """Return the comparison of two golden documents: their ``curves``, each with the first step at which the values differ.

    Not comparable are documents without a common system, or without a common figure of it.
    """
    reasons = Reasons()
    sides = [{System(**reference["system"]): reference for reference in side["references"]} for side in (a, b)]
    common = [system for system in sides[0] if system in sides[1]]
    if not common:
        reasons.blocking.append("they have no system in common")
    curves = [curve for system in common for curve in _curves(system, sides[0][system], sides[1][system])]
    if common and not curves:
        reasons.blocking.append("they have no figure of a system in common")
    others = [{"system": str(system), "side": "a" if system in sides[0] else "b"}
              for system in dict.fromkeys([*sides[0], *sides[1]]) if system not in common]  # fmt: skip
    return {**reasons.document(), "curves": curves, "unmatched": others}


def _curves(system: System, a: Document, b: Document) -> list[dict[str, Any]]:
    found = []
    theirs = {curve["metric"]: curve for curve in b["curves"]}
    for mine in a["curves"]:
        other = theirs.get(mine["metric"])
        if other is None:
            continue
        left, right = places(mine["steps"]), places(other["steps"])
        cells, first = Cells(), None
        for step in sorted(left.keys() & right.keys()):
            values = mine["values"][left[step]], other["values"][right[step]]
            cells.add(*(float(value) if value not in ("nan", "inf", "-inf") else None for value in values), step=step)
            if values[0] != values[1] and first is None:
                first = {"step": step, "a": values[0], "b": values[1]}
        about = {"system": str(system), "metric": mine["metric"], "a_rule": mine["rule"], "b_rule": other["rule"]}
        found.append({**about, **cells.document(), "first": first})
    return found
