"""Golden curves in a CI job: the ruling on each, and the drawing of one that the run leaves."""

from __future__ import annotations

from collections.abc import Iterator

from receipt_cli.ci.rulings import Ruling
from receipt_cli.comparison.golden import Held, HeldCurve
from receipt_cli.render.metrics import metric_label
from receipt_cli.render.plot import Curve, OverlaidRun, render_overlay
from receipt_cli.render.style import Style


def golden_rulings(held: Held, *, unknown_fails: bool) -> Iterator[Ruling]:
    """Yield a ruling for each golden curve: no if the run leaves it, unknown if the run lacks its steps."""
    if held.reason is not None:
        yield Ruling("gate", "golden", None, unknown_fails, "the golden curves", f"unknown: {held.reason}")
    for curve in held.curves:
        name, wanted = (
            f"golden.{curve.metric}",
            "the golden curve" + (", exactly" if curve.rule == "exact" else ", with tolerance"),
        )
        departure = curve.departure
        if departure is not None:
            where = f" (line {departure.line})" if departure.line is not None else ""
            bound = f" ± {departure.tolerance:.3g}" if departure.tolerance else ""
            found = f"departs at step {departure.step}{where}: {departure.found}, golden {departure.golden}{bound}"
            yield Ruling("gate", name, False, True, wanted, f"{found}; {curve.inside} of {curve.compared} steps are inside")
        elif curve.missing:
            found = f"unknown: {curve.missing} of {curve.compared + curve.missing} golden steps are not printed"
            yield Ruling("gate", name, None, unknown_fails, wanted, found)
        else:
            yield Ruling("gate", name, True, False, wanted, f"all {curve.compared} steps")


def departed(held: Held) -> list[HeldCurve]:
    """Return the curves that the run leaves, as they stand in the golden document."""
    return [curve for curve in held.curves if curve.departure is not None and len(curve.steps) > 1]


def title_of(curve: HeldCurve) -> str:
    """Return the heading of a departure: figure and step."""
    return f"{metric_label(curve.metric)} leaves the golden curve at step {curve.departure.step if curve.departure else '-'}"


_BEFORE, _BEHIND = 30, 60
"""Values before and behind a departure that are drawn."""


def draw(curve: HeldCurve, style: Style, height: int = 10) -> str:
    """Return the golden curve and that of the run over one another, around the departure, as lines of text."""
    at = curve.steps.index(curve.departure.step) if curve.departure is not None else 0
    shown = slice(max(0, at - _BEFORE), at + _BEHIND)
    both = {"golden": curve.golden[shown], "this run": curve.found[shown]}
    curves = {name: Curve(curve.metric, curve.steps[shown], values) for name, values in both.items()}
    runs = [OverlaidRun(name, {curve.metric: drawn}, {}) for name, drawn in curves.items()]
    return render_overlay(runs, [curve.metric], height, style)
