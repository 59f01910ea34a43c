"""Intervals: against a well-kept library where it is installed, and against what is known of the data."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from receipt_cli.comparison.contrasts import Curve, compare_curves
from receipt_cli.numeric.intervals import (
    MIN_VALUES,
    Spread,
    cumulative,
    difference,
    drift,
    interval,
    mean_spread,
    median_spread,
    quantile,
)
from receipt_cli.numeric.precision import resolution


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


def stalling(values: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Return step times (count,) around 1 s with a spread of 2 %, of which a ``share`` takes 20 % longer or more."""
    draw = np.random.default_rng(seed)
    slow = draw.random(len(values)) < share
    return 1 + 0.02 * values + slow * (0.2 + draw.exponential(1.0, len(values)))


SPREADS = pytest.mark.parametrize("spread", [mean_spread, median_spread])


class TestSpread:
    @SPREADS
    def test_few_values_give_none_and_constant_ones_no_error(self, spread: Callable[..., Spread | None]) -> None:
        assert spread([1.0] * (MIN_VALUES - 1)) is None
        assert spread([2.5] * MIN_VALUES) == Spread(2.5, 0.0, 0.0, float(MIN_VALUES))

    def test_independent_values_have_the_textbook_error(self) -> None:
        for spread, expected in ((mean_spread, 1 / math.sqrt(2000)), (median_spread, math.sqrt(math.pi / 2 / 2000))):
            found = [spread(dependent(2000, 0.0, seed)) for seed in range(20)]
            errors = [(part.down + part.up) / 2 for part in found if part is not None]
            assert sum(errors) / 20 == pytest.approx(expected, rel=0.1)

    def test_dependent_values_are_less_sure(self) -> None:
        free, bound = (mean_spread(dependent(2000, phi, 7)) for phi in (0.0, 0.8))
        assert free is not None
        assert bound.up == pytest.approx(3 / math.sqrt(2000), rel=0.35)  # sqrt((1 + phi) / (1 - phi)) times as much
        assert bound.freedom < free.freedom / 4

    def test_stalls_do_not_hide_dependence(self) -> None:
        calm = median_spread(stalling(dependent(2000, 0.9, 3), 0.0, 3))
        stalled = median_spread(stalling(dependent(2000, 0.9, 3), 0.05, 3))
        assert calm is not None
        assert stalled.up + stalled.down == pytest.approx(calm.up + calm.down, rel=0.25)
        assert stalled.freedom == pytest.approx(calm.freedom, rel=0.25)

    def test_a_run_of_two_speeds_is_known_no_better_than_its_two_speeds(self) -> None:
        found = median_spread([1.0, 2.0] * 50 + [1.0])
        assert (found.value, found.value + 1.96 * found.up) == (1.0, 2.0)

    @SPREADS
    def test_a_list_and_an_array_give_the_same_figures(self, spread: Callable[..., Spread | None]) -> None:
        values = dependent(500, 0.5, 3)
        assert spread(values) == spread(values.tolist())

    @SPREADS
    def test_the_interval_covers_the_truth_about_as_often_as_it_says(self, spread: Callable[..., Spread | None]) -> None:
        held = 0
        for seed in range(200):
            found = spread(dependent(300, 0.6, seed))
            assert found is not None
            low, high = interval(found)
            held += low <= 0 <= high
        assert 180 <= held <= 199  # 95 % of 200 is 190; make calibrate counts more of them

    def test_two_sides_add_up_as_welch_says(self) -> None:
        stats = pytest.importorskip("scipy.stats")
        a, b = [10.0, 11.0, 12.5, 10.2], [14.0, 12.0, 15.5]
        errors = [float(np.std(v, ddof=1) / math.sqrt(len(v))) for v in (a, b)]
        parts = [Spread(float(np.mean(v)), e, e, len(v) - 1) for v, e in zip((a, b), errors, strict=True)]
        bounds = stats.ttest_ind(b, a, equal_var=False).confidence_interval(0.95)
        assert difference(*parts) == pytest.approx((bounds.low, bounds.high))


class TestDrift:
    def test_halves_of_an_even_run_do_not_differ(self) -> None:
        assert sum(drift(dependent(300, 0.6, seed)) > 0 for seed in range(40)) <= 2

    @pytest.mark.parametrize("shape", [np.repeat([0.0, 0.5], 200), np.repeat([0.0, 0.5, 0.0], [100, 200, 100])])
    def test_a_step_and_a_hump_are_as_large_as_they_are(self, shape: np.ndarray) -> None:
        assert drift(shape + 0.01 * dependent(400, 0.3, 5)) == pytest.approx(0.5, abs=0.02)

    def test_a_run_that_grows_slower_throughout_says_little_about_its_median(self) -> None:
        found = median_spread(np.linspace(0, 1, 400) + 0.01 * dependent(400, 0.3, 5))
        assert found is not None
        low, high = interval(found)
        assert high - low > 0.5


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
        assert (found["common"], found["first_difference"]) == (4, None)

    def test_what_is_not_finite_is_left_out(self) -> None:
        found = compare_curves(Curve([1, 2, 3, 4, 5], [1, math.nan, 3, 4, math.inf]), Curve([1, 2, 3, 4, 5], [1, 2, 3, 4, 5]))
        assert found is None

    def test_a_constant_gap_is_a_departure_from_the_start(self) -> None:
        places = list(range(100))
        found = compare_curves(Curve(places, [5.0] * 100), Curve(places, [5.25] * 100))
        assert [found[key] for key in ("departure", "departure_delta", "end_delta")] == [0, 0.25, 0.25]
