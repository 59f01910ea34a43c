"""How a metric developed: the line and the quarters."""

from __future__ import annotations

import random

import numpy as np
import pytest

from receipt_cli.analysis.trend import Course

STEPS = np.array([float(10 * i) for i in range(40)])
NOISE = np.array([random.Random(i).gauss(5, 2) + i / 7 for i in range(40)])


def test_the_line_is_that_of_polyfit() -> None:
    course = Course(STEPS, NOISE)
    slope, _ = np.polyfit(STEPS, NOISE, 1)
    line = course.line
    assert line is not None
    assert line.slope == pytest.approx(slope, rel=1e-12)
    assert line.explained == pytest.approx(np.corrcoef(STEPS, NOISE)[0, 1] ** 2, rel=1e-12)


@pytest.mark.parametrize(
    ("steps", "values", "slope"),
    [
        ([], [], None),
        ([1.0], [2.0], None),
        ([5.0, 5.0], [2.0, 3.0], None),
        ([1.0, 2.0], [3.0, 3.0], 0.0),
        ([1.0, 2.0], [1e308, -1e308], None),
    ],
)
def test_slopes_at_the_edge(steps: list[float], values: list[float], slope: float | None) -> None:
    assert Course(np.array(steps), np.array(values)).slope == slope
