"""Intervals: against a well-kept library where it is installed, and against what is known of the data."""

from __future__ import annotations

import math

import numpy as np
import pytest

from receipt_cli.comparison.curves import Curve, compare_curves
from receipt_cli.numeric.intervals import MIN_VALUES, Spread, block_length, half_width, spread
from receipt_cli.numeric.precision import resolution
from receipt_cli.numeric.student_t import cumulative, quantile


def dependent(count: int, phi: float, seed: int) -> np.ndarray:
    """Return an autoregressive series (count,) of variance 1 and mean 0."""
    draw = np.random.default_rng(seed)
    noise = draw.standard_normal(count) * math.sqrt(1 - phi * phi)
    made = np.empty(count)
    made[0] = draw.standard_normal()
    for i in range(1, count):
        made[i] = phi * made[i - 1] + noise[i]
    return made


class TestStudent:
    @pytest.mark.parametrize("freedom", [1, 1.5, 2, 4.2, 30, 1e3, 1e6])
    @pytest.mark.parametrize("probability", [0.025, 0.4, 0.5, 0.6, 0.9, 0.975, 0.9995])
    def test_quantiles_are_those_of_scipy(self, probability: float, freedom: float) -> None:
        stats = pytest.importorskip("scipy.stats")
        assert quantile(probability, freedom) == pytest.approx(stats.t.ppf(probability, freedom), rel=1e-8, abs=1e-12)

    @pytest.mark.parametrize(
        ("probability", "freedom", "value"), [(0.975, 1, 12.706205), (0.975, 10, 2.228139), (0.95, 4, 2.131847)]
    )
    def test_quantiles_are_those_of_printed_tables(self, probability: float, freedom: float, value: float) -> None:
        assert quantile(probability, freedom) == pytest.approx(value, abs=1e-6)

    @pytest.mark.parametrize("t", [-40.0, -1.0, 0.0, 0.3, 2.5, 100.0])
    def test_the_distribution_is_symmetric(self, t: float) -> None:
        assert cumulative(t, 3.5) + cumulative(-t, 3.5) == pytest.approx(1)


class TestSpread:
    @pytest.mark.parametrize("estimate", ["mean", "median"])
    def test_few_values_give_none_and_constant_ones_no_error(self, estimate: str) -> None:
        assert spread([1.0] * (MIN_VALUES - 1), estimate) is None  # type: ignore[arg-type]
        found = spread([2.5] * MIN_VALUES, estimate)  # type: ignore[arg-type]
        assert found == Spread(2.5, 0.0, float(MIN_VALUES))

    def test_independent_values_have_the_textbook_error(self) -> None:
        found = spread(dependent(2000, 0.0, 7), "mean")
        assert found is not None
        assert found.error == pytest.approx(1 / math.sqrt(2000), rel=0.15)

    def test_dependent_values_are_less_sure(self) -> None:
        free, bound = (spread(dependent(2000, phi, 7), "mean") for phi in (0.0, 0.8))
        assert free is not None
        assert bound is not None
        assert bound.error == pytest.approx(3 / math.sqrt(2000), rel=0.35)  # sqrt((1 + phi) / (1 - phi)) times as much
        assert bound.blocks < free.blocks / 4

    def test_the_same_values_give_the_same_figures(self) -> None:
        values = dependent(500, 0.5, 3)
        assert spread(values, "median") == spread(values.tolist(), "median")

    def test_long_runs_are_thinned_and_keep_their_value(self) -> None:
        values = dependent(100_000, 0.5, 5)
        for estimate, exact in (("mean", values.mean()), ("median", np.median(values))):
            found = spread(values, estimate)  # type: ignore[arg-type]
            assert found is not None
            assert found.value == exact

    def test_blocks_are_longer_where_values_depend_on_one_another(self) -> None:
        lengths = [block_length(dependent(1000, phi, 1)) for phi in (0.0, 0.5, 0.9)]
        assert lengths == sorted(lengths)
        assert lengths[0] < 6 < 20 < lengths[2]

    @pytest.mark.parametrize("estimate", ["mean", "median"])
    def test_the_interval_covers_the_truth_about_as_often_as_it_says(self, estimate: str) -> None:
        held = 0
        for seed in range(200):
            found = spread(dependent(300, 0.6, seed), estimate)  # type: ignore[arg-type]
            assert found is not None
            held += abs(found.value) <= half_width([found])
        assert 180 <= held <= 198  # 95 % of 200 is 190; benchmarks/coverage.py counts more of them

    def test_two_sides_add_up_as_welch_says(self) -> None:
        stats = pytest.importorskip("scipy.stats")
        a, b = [10.0, 11.0, 12.5, 10.2], [14.0, 12.0, 15.5]
        parts = [Spread(float(np.mean(v)), float(np.std(v, ddof=1) / math.sqrt(len(v))), len(v)) for v in (a, b)]
        middle = parts[1].value - parts[0].value
        bounds = stats.ttest_ind(b, a, equal_var=False).confidence_interval(0.95)
        assert (middle - half_width(parts), middle + half_width(parts)) == pytest.approx((bounds.low, bounds.high))


class TestPrecision:
    @pytest.mark.parametrize(
        ("values", "unit"),
        [([131.9, 132.0], 0.1), ([0.13197, 0.4], 0.00001), ([1.0, 2.0], 0.0), ([], 0.0), ([1e-7], 1e-7), ([1500.0, 2e15], 0.0)],
    )
    def test_the_finest_digit_counts(self, values: list[float], unit: float) -> None:
        assert resolution(values) == pytest.approx(unit)


class TestCurves:
    def test_curves_without_common_places_are_not_compared(self) -> None:
        assert compare_curves(Curve([1, 2, 3], [1, 1, 1]), Curve([4, 5, 6], [1, 1, 1])) is None
        assert compare_curves(Curve([], []), Curve([], []), between=True) is None

    def test_of_a_place_that_comes_twice_the_last_value_counts(self) -> None:
        a = Curve([1, 2, 2, 3, 4], [5.0, 9.0, 4.0, 3.0, 2.0])
        found = compare_curves(a, Curve([1, 2, 3, 4], [5.0, 4.0, 3.0, 2.0]))
        assert found is not None
        assert (found.common, found.first_difference) == (4, None)

    def test_what_is_not_finite_is_left_out(self) -> None:
        found = compare_curves(Curve([1, 2, 3, 4, 5], [1, math.nan, 3, 4, math.inf]), Curve([1, 2, 3, 4, 5], [1, 2, 3, 4, 5]))
        assert found is None

    def test_a_constant_gap_is_a_departure_from_the_start(self) -> None:
        places = list(range(100))
        found = compare_curves(Curve(places, [5.0] * 100), Curve(places, [5.25] * 100))
        assert found is not None
        assert (found.departure, found.departure_delta, found.end_delta) == (0, 0.25, 0.25)
