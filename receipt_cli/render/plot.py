"""Plot curves in the terminal, of one run or of several over one another: braille dots, or characters without Unicode."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

from rich.cells import cell_len as cells

from receipt_cli.render.console import Page, Span
from receipt_cli.render.metrics import metric_label
from receipt_cli.render.scale import count, duration, measure, scale_for, si
from receipt_cli.render.style import SERIES, Role, Style

_DOTS = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""Bits of a braille character (U+2800) by row and column of its dots."""
_BLANK = 0x2800
_FRAME = {True: ("│", "┤", "└", "─", "┴"), False: ("|", "+", "+", "-", "+")}
_MARGIN = 0.05
_EVERY = 14
"""Least cells between two labels of the step axis."""


@dataclass(frozen=True, slots=True)
class Curve:
    """The values of a metric, in base units, at ``steps`` (or other places along the axis); NaN and infinities too.

    ``bounds`` are the limits of its steady state; values outside, such as the warm-up, are drawn at the edge.
    """

    metric: str
    steps: Sequence[float]
    values: Sequence[float]
    bounds: tuple[float, float] | None = None


def render_curves(curves: Sequence[Curve], height: int, style: Style, axis: str = "step") -> str:
    """Return a plot of each curve, ``height`` lines and an axis; a sentence for a curve without finite values.

    ``axis`` is step, tokens, samples or time (seconds).
    """
    page = Page(style)
    for curve in curves:
        _curve(page, curve, height, axis)
    return page.text()


def _curve(page: Page, curve: Curve, height: int, axis: str) -> None:
    unicode = page.style.unicode
    pairs = sorted(zip(curve.steps, curve.values, strict=True), key=lambda pair: pair[0])
    finite = [(step, value) for step, value in pairs if math.isfinite(value)]
    bad = len(pairs) - len(finite)
    page.gap()
    if len(finite) < 2:
        what = "no value has a step" if not pairs else f"{count(len(finite))} value with a step"
        page.line(Span(metric_label(curve.metric), "strong"), Span(f"  no curve: {what}", "dim"))
        return
    low, high, outside = value_range(curve.bounds, [value for _, value in finite])
    frame = Frame(curve.metric, (finite[0][0], finite[-1][0]), (low, high), height, axis, page.style)
    last = measure(curve.metric, finite[-1][1])
    heading = [Span(metric_label(curve.metric), "strong"), Span(f"  {frame.unit}".rstrip(), "dim")]
    page.line(*heading, Span(f"  last {last}", "dim"))
    grid = frame.dots(finite, unicode)
    if unicode:
        lines = ["".join(chr(_BLANK + bits) if bits else " " for bits in row) for row in braille_cells(grid)]
    else:
        lines = ["".join("*" if dot else " " for dot in line) for line in grid]
    frame.write(page, [[Span(line.rstrip(), "accent")] for line in lines])
    notes = [f"{count(bad)} not finite"] if bad else []
    notes += [f"{count(outside)} outside of the steady state, at the edge"] if outside else []
    if notes:
        page.prose(f"{count(len(pairs))} records; {'; '.join(notes)}", "warn" if bad else "dim", indent=frame.margin + 2)


class Frame:
    """The two axes of a plot: ``ends`` of the steps, ``bounds`` of the values."""

    def __init__(
        self, metric: str, ends: tuple[float, float], bounds: tuple[float, float], height: int, axis: str, style: Style
    ) -> None:
        low, high = bounds
        scale = scale_for(metric, [max(abs(low), abs(high))])
        self._labels = {row: scale.format(high - (high - low) * row / (height - 1)) for row in _label_rows(height)}
        self._ends, self._bounds, self._axis, self._unicode = ends, bounds, axis, style.unicode
        self.unit = scale.unit
        self.margin = max(map(cells, self._labels.values()))
        self.width, self.height = style.width - self.margin - 3, height

    def dots(self, points: Sequence[tuple[float, float]], fine: bool) -> list[bytearray]:
        """Return the lines of a curve, joined; ``fine`` has two columns and four rows of dots in a cell."""
        size = (self.width * 2, self.height * 4) if fine else (self.width, self.height)
        return _drawn(points, self._ends, self._bounds, size)

    def write(self, page: Page, rows: Sequence[Sequence[str]]) -> None:
        """Add the lines of the plot with the axes around them."""
        wall, tick, corner, floor, notch = _FRAME[self._unicode]
        for row, spans in enumerate(rows):
            label = self._labels.get(row, "")
            blanks = " " * (self.margin - cells(label))
            page.line(Span(f"{blanks}{label} ", "dim"), Span(tick if label else wall, "dim"), *spans)
        places = _step_places(*self._ends, self.width, self._axis)
        line = "".join(notch if x in places else floor for x in range(self.width))
        page.line(Span(" " * (self.margin + 1) + corner + line, "dim"))
        page.line(Span(" " * (self.margin + 2) + _step_labels(places, self.width, self._axis), "dim"))


def value_range(bounds: tuple[float, float] | None, values: Sequence[float]) -> tuple[float, float, int]:
    """Return the least and the greatest value of the axis, and how many values are beyond them."""
    low, high = bounds or (min(values), max(values))
    if bounds is not None or low == high:
        room = (high - low) * _MARGIN or abs(high) * _MARGIN or 1.0
        low, high = (max(low - room, 0.0) if low >= 0 else low - room), high + room
    return low, high, sum(not low <= value <= high for value in values)


def _label_rows(height: int) -> list[int]:
    most = max(1, min(4, (height - 1) // 2))
    parts = next((n for n in range(most, 1, -1) if (height - 1) % n == 0), most)  # evenly, if possible
    return [round(part * (height - 1) / parts) for part in range(parts + 1)]


def _drawn(
    points: Sequence[tuple[float, float]],
    ends: tuple[float, float],
    bounds: tuple[float, float],
    size: tuple[int, int],
) -> list[bytearray]:
    """Return a curve as lines of dots: in each column the span from its least to its greatest value, joined."""
    columns, rows = size
    spans: dict[int, tuple[float, float]] = {}
    for step, value in points:
        x = min(columns - 1, int((step - ends[0]) / ((ends[1] - ends[0]) or 1.0) * (columns - 1) + 0.5))
        kept = min(max(value, bounds[0]), bounds[1])
        old = spans.get(x)
        spans[x] = (kept, kept) if old is None else (min(old[0], kept), max(old[1], kept))
    height = (bounds[1] - bounds[0]) or 1.0

    def row(value: float) -> int:
        return int((bounds[1] - value) / height * (rows - 1) + 0.5)

    grid = [bytearray(columns) for _ in range(rows)]
    before: tuple[int, int, int] | None = None
    for x in sorted(spans):
        top, bottom = row(spans[x][1]), row(spans[x][0])
        for y in range(top, bottom + 1):
            grid[y][x] = 1
        if before is not None:
            _join(grid, before, (x, top, bottom))
        before = (x, top, bottom)
    return grid


def _join(grid: Sequence[bytearray], a: tuple[int, int, int], b: tuple[int, int, int]) -> None:
    """Draw the line from one column's span to the next one's."""
    start = min(max(b[1], a[1]), a[2])
    end = min(max(a[1], b[1]), b[2])
    steps = max(b[0] - a[0], abs(end - start))
    for i in range(1, steps):
        grid[round(start + (end - start) * i / steps)][round(a[0] + (b[0] - a[0]) * i / steps)] = 1


def braille_cells(grid: Sequence[bytearray]) -> list[list[int]]:
    """Return the bits of the braille character of each cell."""
    dots = [(y, dx, bit) for y, pair in enumerate(_DOTS) for dx, bit in enumerate(pair)]
    return [
        [sum(bit for y, dx, bit in dots if grid[line + y][x + dx]) for x in range(0, len(grid[line]), 2)]
        for line in range(0, len(grid), 4)
    ]


def _place(axis: str, value: float) -> str:
    return duration(value) if axis == "time" else si(value) if axis in ("tokens", "samples") and value >= 1e4 else count(value)


def _step_places(first: float, last: float, width: int, axis: str) -> dict[int, str]:
    """Return the labels of the step axis by cell: both ends, and steps between them."""
    parts = max(1, width // _EVERY)
    steps = {round(first + (last - first) * part / parts) for part in range(parts + 1)}
    spread = (last - first) or 1.0
    return {round((step - first) / spread * (width - 1)): _place(axis, step) for step in sorted(steps) if first <= step <= last}


def _step_labels(places: Mapping[int, str], width: int, axis: str) -> str:
    """Return the labels in one line: the first begins at its cell, the last ends there, the others are centred."""
    line = ""
    for x in sorted(places):
        label = places[x]
        at = 0 if x == 0 else min(width - len(label), x - len(label) // 2)
        if at >= len(line) + (1 if line else 0):
            line = line.ljust(at) + label
    return line + (f"  {axis}" if len(line) + 2 + len(axis) <= width else "")


def render_ranges(metrics: Mapping[str, Mapping[str, Any]], names: Sequence[str], style: Style) -> str:
    """Return for each metric the line from its least to its greatest value, with its median, first and last value on it."""
    page = Page(style)
    for name in names:
        entry = metrics[name]
        known = {key: entry[key] for key in ("min", "max", "median", "first", "last")}
        if any(value is None for value in known.values()):
            page.line(Span(metric_label(name), "strong"), Span("  no finite value", "dim"))
            continue
        _range_line(page, name, known, steady=entry["window"] == "steady")
    page.gap()
    page.line(Span("F first, L last, ● median" if style.unicode else "F first, L last, o median", "dim"), indent=2)
    return page.text()


def _range_line(page: Page, name: str, known: Mapping[str, float], *, steady: bool) -> None:
    page.gap()
    facts = " · ".join(f"{key} {measure(name, known[key])}" for key in ("first", "last", "median"))
    window = " (median and range: steady)" if steady else ""
    page.line(Span(metric_label(name), "strong"), Span(f"  {facts}{window}", "dim"))
    ends = measure(name, known["min"]), measure(name, known["max"])
    width = page.style.width - cells(ends[0]) - cells(ends[1]) - 4
    low, high = known["min"], known["max"]
    line = ["─" if page.style.unicode else "-"] * width
    line[0], line[-1] = ("├", "┤") if page.style.unicode else ("|", "|")
    marks = {"first": "F", "last": "L", "median": "●" if page.style.unicode else "o"}
    for key, mark in marks.items():
        if low <= known[key] <= high:
            line[round((known[key] - low) / ((high - low) or 1.0) * (width - 1))] = mark
    page.line(Span(f"{ends[0]} ", "dim"), Span("".join(line), "accent"), Span(f" {ends[1]}", "dim"), indent=2)


MOST_RUNS = 12
"""Most curves of one plot that can be told apart."""
_MANY = "+"
"""Mark of a cell that several curves share, without colour."""


@dataclass(frozen=True, slots=True)
class OverlaidRun:
    """The curves of a run by metric. ``why``: the reason if it has none. ``last``: the last values of metrics without a curve."""

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


def _colored(grids: Mapping[int, Sequence[bytearray]]) -> list[list[str]]:
    """Return the lines in braille; a cell of several curves has the dots of all and the colour of the last."""
    cells = {number: braille_cells(grid) for number, grid in grids.items()}
    height, width = (len(found := next(iter(cells.values()))), len(found[0]))
    lines: list[list[str]] = []
    for y in range(height):
        spans: list[tuple[Role, str]] = []
        for x in range(width):
            bits, owner = 0, None
            for number, rows in cells.items():
                if rows[y][x]:
                    bits, owner = bits | rows[y][x], number
            spans.append((_role(owner), chr(_BLANK + bits)) if owner is not None else ("plain", " "))
        lines.append([Span("".join(text for _, text in run), role) for role, run in groupby(spans, key=itemgetter(0))])
    return lines


def _lettered(grids: Mapping[int, Sequence[bytearray]]) -> list[list[str]]:
    height, width = (len(found := next(iter(grids.values()))), len(found[0]))
    lines: list[list[str]] = []
    for y in range(height):
        marks = ([number for number, grid in grids.items() if grid[y][x]] for x in range(width))
        text = "".join(_MANY if len(here) > 1 else _letter(here[0]) if here else " " for here in marks)
        lines.append([text.rstrip()])
    return lines


def _legend(page: Page, number: int, run: OverlaidRun, metric: str, points: Sequence[tuple[float, float]] | None) -> None:
    facts = [Span(f"{_letter(number)} ", _role(number)), run.name]
    if points is not None:
        facts.append(Span(f"  last {measure(metric, points[-1][1])}, {count(len(points))} records", "dim"))
    elif metric in run.last:
        facts.append(Span(f"  last {measure(metric, run.last[metric])}; not drawn: {run.why or 'too few records'}", "dim"))
    else:
        lacks = "no two finite values with a place on this axis" if metric in run.curves else "no such metric"
        facts.append(Span(f"  {lacks}", "dim"))
    page.line(*facts, indent=2)
