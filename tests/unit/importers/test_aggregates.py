"""Declared statistics: kept where they agree, left out with a problem where they cannot all be true."""

import math

import pytest

from receipt_cli.importers.derive import statistic
from receipt_cli.importers.model import DeclaredStatistic, last, single
from receipt_cli.importers.values import ProblemCounter


def test_a_single_value_is_every_figure() -> None:
    found = statistic("loss", single(2.5), ProblemCounter())
    assert (found.record_count, found.first, found.last, found.min, found.max, found.mean, found.median) == (1, *[2.5] * 6)


def test_a_statistic_with_missing_figures_has_no_count() -> None:
    found = statistic("loss", last(2.5, definition="smoothed"), ProblemCounter())
    assert (found.record_count, found.last, found.first, found.definition) == (0, 2.5, None, "smoothed")


@pytest.mark.parametrize(
    ("figures", "kind"),
    [
        ({"min": 2.0, "max": 1.0}, "figures_contradict"), ({"min": 1.0, "max": 2.0, "mean": 3.0}, "figures_contradict"),
        ({"mean": math.nan}, "figure_not_finite"),
    ],
)  # fmt: skip
def test_impossible_figures_are_left_out(figures: dict[str, float], kind: str) -> None:
    problems = ProblemCounter()
    assert statistic("loss", DeclaredStatistic(figures), problems) is None
    assert [p.kind for p in problems.first] == [kind]


def test_ends_may_lie_outside_of_a_steady_window() -> None:
    declared = DeclaredStatistic({"first": 9.0, "min": 1.0, "max": 2.0}, 5, "steady")
    assert statistic("loss", declared, ProblemCounter()) is not None
