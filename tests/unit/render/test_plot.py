"""Curves in the terminal: dots where the values are, axes that fit, and nothing but ASCII where it has to be."""

import math

import pytest
from rich.cells import cell_len as cells

from receipt_cli.render.plot import Curve, render_curves, render_ranges
from receipt_cli.render.style import Style

RAMP = Curve("loss", list(range(100)), [n / 10 for n in range(100)])


@pytest.mark.parametrize("width", [80, 160])
def test_a_rising_curve_goes_from_the_lower_left_to_the_upper_right(width: int) -> None:
    lines = render_curves([RAMP], 10, Style(width=width)).splitlines()
    rows = [line.partition("┤")[2] or line.partition("│")[2] for line in lines[1:11]]
    starts = [len(row) - len(row.lstrip(" ")) for row in rows]
    assert starts == sorted(starts, reverse=True)
    assert starts[-1] == 0 and len(rows[0]) > 0.9 * width - 10
    assert all(cells(line) <= width for line in lines)
    assert lines[1].split()[0].startswith("9.9") and lines[10].split()[0] == "0"
    assert lines[12].split()[0] == "0" and lines[12].split()[-1] in ("99", "step")


def test_without_unicode_there_is_no_byte_outside_of_ascii() -> None:
    shown = render_curves([RAMP], 6, Style(unicode=False)) + render_ranges({"loss": STATISTICS}, ["loss"], Style(unicode=False))
    assert shown.isascii() and "*" in shown


def test_without_colour_there_is_no_control_byte() -> None:
    assert render_curves([RAMP], 6, Style()).replace("\n", "").isprintable()
    assert "\x1b[36m" in render_curves([RAMP], 6, Style(color=True))


def test_what_is_not_finite_or_outside_of_the_steady_state_is_counted() -> None:
    curve = Curve("step_time_s", [0, 1, 2, 3, 4], [90.0, 1.0, 1.1, math.nan, 1.05], (1.0, 1.1))
    shown = render_curves([curve], 5, Style())
    assert "1 not finite; 1 outside of the steady state, at the edge" in shown
    assert "90" not in shown


@pytest.mark.parametrize(("steps", "values"), [([], []), ([1], [2.0]), ([1, 2], [math.nan, math.nan])])
def test_too_few_values_are_said_in_words(steps: list[float], values: list[float]) -> None:
    assert "no curve" in render_curves([Curve("loss", steps, values)], 10, Style())


def test_equal_values_and_one_step_are_drawn() -> None:
    assert "no curve" not in render_curves([Curve("loss", [5, 5], [1.0, 1.0])], 4, Style())


STATISTICS = {"window": "all", "min": 2.0, "max": 10.0, "median": 6.0, "first": 10.0, "last": 2.0}


def test_a_range_has_its_marks_where_they_belong() -> None:
    line = render_ranges({"loss": STATISTICS}, ["loss"], Style(width=60)).splitlines()[1]
    assert line.index("2.000") < line.index("L") < line.index("●") < line.index("F") < line.index("10.00")


def test_a_metric_without_a_finite_value_says_so() -> None:
    empty = {**STATISTICS, "min": None}
    assert "no finite value" in render_ranges({"loss": empty}, ["loss"], Style())
