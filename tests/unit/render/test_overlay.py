"""Several curves in one plot: common axes, a mark for each run, and words for what cannot be drawn."""

import math

import pytest
from rich.cells import cell_len as cells

from receipt_cli.render.plot import Curve, OverlaidRun, render_overlay
from receipt_cli.render.style import Style

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
