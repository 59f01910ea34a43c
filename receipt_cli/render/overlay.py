"""Plot several runs over one another in the terminal: one plot for each metric, with a legend."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from receipt_cli.render.console import Page, Span
from receipt_cli.render.metrics import metric_label
from receipt_cli.render.plot import Curve, Frame, braille_cells, value_range
from receipt_cli.render.scale import count, measure
from receipt_cli.render.style import SERIES, Role, Style

MOST_RUNS = 12
"""Most curves of one plot that can be told apart."""
_MANY = "+"
"""Mark of a cell that several curves share, without colour."""
_EMPTY = 0x2800


@dataclass(frozen=True, slots=True)
class OverlaidRun:
    """The curves of a run by metric; ``last`` are the last values of metrics without a curve, ``why`` the reason."""

    name: str
    curves: Mapping[str, Curve]
    last: Mapping[str, float]
    why: str = ""


def render_overlay(runs: Sequence[OverlaidRun], metrics: Sequence[str], height: int, style: Style, axis: str = "step") -> str:
    """Return a plot of each metric with a legend of all ``runs``, at most ``MOST_RUNS``, on common axes.

    With colour and Unicode a run has a colour and its dots are braille; else its dots are its letter.
    """
    page = Page(style)
    for metric in metrics:
        _plot(page, runs, metric, height, axis)
    return page.text()


def _plot(page: Page, runs: Sequence[OverlaidRun], metric: str, height: int, axis: str) -> None:
    style = page.style
    drawn = {number: _finite(run.curves[metric]) for number, run in enumerate(runs) if metric in run.curves}
    drawn = {number: points for number, points in drawn.items() if len(points) > 1}
    page.gap()
    if not drawn:
        page.line(Span(metric_label(metric), "strong"), Span("  no run has a curve", "dim"))
    else:
        every = [points for run in drawn.values() for points in run]
        steady = [runs[number].curves[metric].bounds for number in drawn]
        known = [bounds for bounds in steady if bounds is not None]
        limits = (min(low for low, _ in known), max(high for _, high in known)) if len(known) == len(steady) else None
        low, high, outside = value_range(limits, [value for _, value in every])
        ends = min(place for place, _ in every), max(place for place, _ in every)
        frame = Frame(metric, ends, (low, high), height, axis, style)
        page.line(Span(metric_label(metric), "strong"), Span(f"  {frame.unit}".rstrip(), "dim"))
        colored = style.color and style.unicode
        grids = {number: frame.dots(points, colored) for number, points in drawn.items()}
        frame.write(page, _colored(grids) if colored else _lettered(grids))
        if outside:
            page.prose(f"{count(outside)} outside of the steady state, at the edge", "dim", indent=frame.margin + 2)
    for number, run in enumerate(runs):
        _legend(page, number, run, metric, drawn.get(number))


def _finite(curve: Curve) -> list[tuple[float, float]]:
    pairs = zip(curve.steps, curve.values, strict=True)
    return sorted((place, value) for place, value in pairs if math.isfinite(place) and math.isfinite(value))


def _letter(number: int) -> str:
    return chr(ord("A") + number)


def _role(number: int) -> Role:
    return SERIES[number % len(SERIES)]


def _colored(grids: Mapping[int, Sequence[bytearray]]) -> list[list[Span]]:
    """Return the lines in braille; a cell of several curves has the dots of all and the colour of the last."""
    cells = {number: braille_cells(grid) for number, grid in grids.items()}
    height, width = (len(found := next(iter(cells.values()))), len(found[0]))
    lines: list[list[Span]] = []
    for y in range(height):
        spans: list[Span] = []
        for x in range(width):
            bits, owner = 0, None
            for number, rows in cells.items():
                if rows[y][x]:
                    bits, owner = bits | rows[y][x], number
            character, role = (chr(_EMPTY + bits), _role(owner)) if owner is not None else (" ", "plain")
            if spans and spans[-1].role == role:
                spans[-1] = Span(spans[-1].text + character, role)
            else:
                spans.append(Span(character, role))
        lines.append(spans)
    return lines


def _lettered(grids: Mapping[int, Sequence[bytearray]]) -> list[list[Span]]:
    height, width = (len(found := next(iter(grids.values()))), len(found[0]))
    lines: list[list[Span]] = []
    for y in range(height):
        marks = ([number for number, grid in grids.items() if grid[y][x]] for x in range(width))
        text = "".join(_MANY if len(here) > 1 else _letter(here[0]) if here else " " for here in marks)
        lines.append([Span(text.rstrip())])
    return lines


def _legend(page: Page, number: int, run: OverlaidRun, metric: str, points: Sequence[tuple[float, float]] | None) -> None:
    facts = [Span(f"{_letter(number)} ", _role(number)), Span(page.say(run.name))]
    if points is not None:
        facts.append(Span(f"  last {measure(metric, points[-1][1])}, {count(len(points))} records", "dim"))
    elif metric in run.last:
        facts.append(Span(f"  last {measure(metric, run.last[metric])}; not drawn: {run.why or 'too few records'}", "dim"))
    else:
        lacks = "no two finite values with a place on this axis" if metric in run.curves else "no such metric"
        facts.append(Span(f"  {lacks}", "dim"))
    page.line(*facts, indent=2)
