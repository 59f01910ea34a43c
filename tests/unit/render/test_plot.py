"""Curves in the terminal: dots where the values are, axes that fit or are common, and ASCII alone where it has to be."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len as cells

from receipt_cli.render.metrics import BLOCKS, GAP, sparkline
from receipt_cli.render.plot import Curve, OverlaidRun, render_curves, render_overlay, render_ranges
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


UP = OverlaidRun("up", {"loss": Curve("loss", list(range(100)), [float(n) for n in range(100)])}, {})
DOWN = OverlaidRun("down", {"loss": Curve("loss", list(range(0, 200, 2)), [float(99 - n) for n in range(100)])}, {})


def rows(shown: str, height: int) -> list[str]:
    return [line.partition("┤")[2] or line.partition("│")[2] for line in shown.splitlines()[1 : height + 1]]


@pytest.mark.parametrize("width", [60, 120])
def test_two_runs_share_their_axes(width: int) -> None:
    shown = render_overlay([UP, DOWN], ["loss"], 12, Style(width=width))
    drawn = rows(shown, 12)
    half = len(drawn[-1].rstrip()) // 2
    assert "A" in drawn[0] and drawn[0].startswith("B"), "the one ends at the top, half the way; the other begins there"
    assert drawn[-1].startswith("A") and drawn[-1].endswith("B")
    assert max(at for row in drawn for at, mark in enumerate(row) if mark == "A") <= half + 1
    assert "+" in "".join(drawn), "they cross"
    assert all(cells(line) <= width for line in shown.splitlines())
    assert shown.isprintable() or "\x1b" not in shown


def test_a_colour_is_of_one_run() -> None:
    shown = render_overlay([UP, DOWN], ["loss"], 6, Style(color=True))
    assert "\x1b[36mA" in shown and "\x1b[33mB" in shown
    assert any(0x2800 < ord(character) < 0x2900 for character in shown)


def test_without_unicode_letters_are_drawn_in_colour_or_not() -> None:
    for color in (False, True):
        shown = render_overlay([UP, DOWN], ["loss"], 6, Style(color=color, unicode=False))
        assert shown.isascii() and "A" in shown.splitlines()[6]


def test_what_cannot_be_drawn_is_said() -> None:
    bare = OverlaidRun("receipt.json", {}, {"loss": 2.5}, "a receipt has no records")
    broken = OverlaidRun("nan", {"loss": Curve("loss", [1, 2], [math.nan, math.nan])}, {})
    other = OverlaidRun("other", {}, {})
    shown = render_overlay([UP, bare, broken, other], ["loss", "mfu_ratio"], 5, Style()).splitlines()
    assert shown[-5].startswith("MFU") and "no run has a curve" in shown[-5]
    legend = [line.strip() for line in shown if line.startswith("  ") and line.strip()[:2] in ("A ", "B ", "C ", "D ")]
    assert legend[1].endswith("last 2.500; not drawn: a receipt has no records")
    assert legend[2].endswith("no two finite values with a place on this axis")
    assert legend[3].endswith("no such metric")


def test_a_name_is_no_control_sequence() -> None:
    run = OverlaidRun("\x1b[31mred", UP.curves, {})
    assert "\x1b" not in render_overlay([run, DOWN], ["loss"], 5, Style())


def test_the_axis_bounds_are_those_of_all_steady_states() -> None:
    a = OverlaidRun("a", {"step_time_s": Curve("step_time_s", [0, 1, 2], [90.0, 1.0, 1.1], (1.0, 1.1))}, {})
    b = OverlaidRun("b", {"step_time_s": Curve("step_time_s", [0, 1, 2], [2.0, 2.1, 2.0], (2.0, 2.1))}, {})
    shown = render_overlay([a, b], ["step_time_s"], 5, Style())
    assert "1 outside of the steady state" in shown and "90" not in shown


NAN = math.nan


@pytest.mark.parametrize(
    ("values", "width", "want"),
    [
        ([], 8, ""),
        ([1, 2, 3], 0, ""),
        ([NAN, NAN], 8, ""),
        ([5.0], 8, "▄"),
        ([5, 5, 5], 8, "▄▄▄"),
        ([0, 1, 2, 3, 4, 5, 6, 7], 8, "▁▂▃▄▅▆▇█"),
        ([7, 6, 5, 4, 3, 2, 1, 0], 8, "█▇▆▅▄▃▂▁"),
        ([0, 0, 7, 7], 2, "▁█"),
        ([0, NAN, 7], 8, "▁ █"),
        ([0, NAN, 7, NAN], 2, "▁█"),  # a share with one finite value has its mean
        ([math.inf, 1, 2], 8, " ▁█"),
    ],
)
def test_sparkline(values: Sequence[float], width: int, want: str) -> None:
    assert sparkline(values, width) == want


@given(st.lists(st.floats()), st.integers(0, 40), st.floats(0, 1))
def test_every_series_has_a_line(values: list[float], width: int, least_span: float) -> None:
    line = sparkline(values, width, least_span=least_span)
    assert len(line) in (0, min(width, len(values)))
    assert set(line) <= {*BLOCKS, GAP}


@pytest.mark.parametrize("value", [8.98846567431158e307, -1.1984620899082105e308, 1.7e308, -1.7e308])
def test_one_value_near_the_limit_of_floats_has_a_line(value: float) -> None:
    assert sparkline([value], 1, least_span=1.0) != ""
    assert len(sparkline([value, -value], 2)) == 2
