"""Statistics of large columns have the bits that one value after the other would give."""

import math
import random
import statistics as stdlib
from array import array
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from receipt_cli.numeric.statistics import SAMPLE, Statistic, Values, describe, exact_mean, exact_median, exact_sum, quantiles

N = 6 * SAMPLE + 1
CONTAINERS: list[Callable[[list[float]], Values]] = [list, lambda values: array("d", values), lambda v: np.array(v, np.float64)]


def by_hand(printed: Sequence[float], windowed: Sequence[float]) -> Statistic:
    """The definition, one value after the other."""
    finite = [v for v in windowed if math.isfinite(v)]
    ordered = sorted(finite)
    half = len(ordered) // 2

    def mean(values: list[float]) -> float | None:
        try:
            return math.fsum(values) / len(values) if values else None
        except OverflowError:
            return None

    return Statistic(
        window="all",
        scope=None,
        definition=None,
        record_count=len(windowed),
        nonfinite_count=len(windowed) - len(finite),
        first=printed[0] if math.isfinite(printed[0]) else None,
        last=printed[-1] if math.isfinite(printed[-1]) else None,
        min=min(finite, default=None),
        max=max(finite, default=None),
        mean=mean(finite),
        median=ordered[half] if len(ordered) % 2 else mean(ordered[half - 1 : half + 1]),
    )


@cache
def draws() -> dict[str, list[float]]:
    rng = random.Random(5)
    falling = [round(2 + 8 * math.exp(-i / 9000) + rng.gauss(0, 0.05), 6) for i in range(N)]
    return {
        "losses": falling,
        "an even number": falling[:-1],
        "milliseconds": [float(f"{rng.lognormvariate(7, 0.02):.1f}e-3") for _ in range(N)],
        "all magnitudes": [rng.choice([-1, 1]) * 10 ** rng.uniform(-30, 30) for _ in range(N)],
        "more than any window": [rng.choice([-1, 1]) * 10 ** rng.uniform(-290, 150) for _ in range(N)],
        "beyond float64": [rng.choice([1, 1, -1]) * 1.7e308 for _ in range(N)],
        "close to overflow": [1e300 * rng.random() for _ in range(N)],
        "subnormal": [5e-324 * rng.randrange(99) for _ in range(N)],
        "cancelling": [v for i in range(N // 2) for v in (falling[i] * 1e16, -falling[i] * 1e16)] + [1e-9],
        "integers": [float(rng.randrange(2**53)) for _ in range(N)],
        "one value": [256.0] * N,
        "one value with all its digits": [-0.1] * N,
        "one value beyond float64": [1.7e308] * N,
        "one zero": [-0.0] * N,
        "positive and close": [2 ** rng.uniform(-10, 10.9) for _ in range(N)],
        "negative and close": [-(2 ** rng.uniform(-10, 10.9)) for _ in range(N)],
        "positive and too far apart": [2 ** rng.uniform(-12, 12) for _ in range(N)],
        "most are equal": [0.3 if rng.random() < 0.9 else rng.random() for _ in range(N)],
        "two values": [float(rng.randrange(2)) for _ in range(N)],
        "zeros of both signs": [rng.choice([0.0, -0.0]) for _ in range(N)],
        "zeros in the middle": [rng.choice([0.0, -0.0, 1.0, -1.0]) for _ in range(N)],
        "no positive value": [rng.choice([0.0, -0.0, -1.0]) for _ in range(N)],
        "no negative value": [rng.choice([-0.0, 0.0, 2.0]) for _ in range(N)],
        "some are not finite": [rng.choice([math.nan, math.inf, -math.inf, 1.5, rng.random()]) for _ in range(N)],
        "none is finite": [rng.choice([math.nan, math.inf, -math.inf]) for _ in range(N)],
        "ascending": sorted(falling),
        "a sample that misleads": [1e6 if i % (N // SAMPLE) == 0 else rng.random() for i in range(N)],
        "a rare outlier": [1.0] * (N - 1) + [-1e200],
    }


NAMES = (
    "losses", "an even number", "milliseconds", "all magnitudes", "more than any window", "beyond float64", "close to overflow",
    "subnormal", "cancelling", "integers", "one value", "one value with all its digits", "one value beyond float64", "one zero",
    "positive and close", "negative and close", "positive and too far apart", "most are equal", "two values",
    "zeros of both signs", "zeros in the middle", "no positive value", "no negative value", "some are not finite",
    "none is finite", "ascending", "a sample that misleads", "a rare outlier",
)  # fmt: skip


def test_every_drawing_has_its_test() -> None:
    assert tuple(draws()) == NAMES


@pytest.mark.parametrize("container", CONTAINERS, ids=["list", "array", "numpy"])
@pytest.mark.parametrize("name", NAMES)
def test_large_columns_have_the_same_bits(name: str, container: Callable[[list[float]], Values]) -> None:
    values = draws()[name]
    window = values[37:]
    found = describe(container(values), container(window), "all", scope=None, definition=None)
    assert repr(found) == repr(by_hand(values, window))


@pytest.mark.parametrize("name", ["losses", "two values", "zeros of both signs", "one value", "ascending", "most are equal"])
def test_large_columns_have_the_same_quantiles(name: str) -> None:
    values, shares = draws()[name], [0.0, 0.05, 0.5, 0.5 + 1 / N, 0.9, 0.99, 1.0]
    ordered = sorted(values)
    wanted = []
    for share in shares:
        low, rest = divmod(share * (N - 1), 1.0)
        above = ordered[min(int(low) + 1, N - 1)]
        wanted.append(ordered[int(low)] + (above - ordered[int(low)]) * rest)
    assert quantiles(np.array(values), shares) == wanted


@given(
    st.lists(st.floats(width=64), min_size=1, max_size=60),
    st.sampled_from([1.0, 1e-8, 1e8, 1e-300]),
)
@settings(max_examples=200)
def test_small_arrays_go_the_same_way(values: list[float], scale: float) -> None:
    values = [v * scale for v in values]
    found = describe(np.array(values), np.array(values), "all", scope=None, definition=None)
    assert repr(found) == repr(by_hand(values, values))


def test_lists_and_arrays_have_one_sum() -> None:
    values = draws()["losses"]
    assert exact_sum(values) == math.fsum(values) == exact_sum(np.array(values))
    assert exact_mean(np.array(values)) == math.fsum(values) / N
    assert exact_median(np.array(values)) == stdlib.median(values)
    assert exact_mean(np.array([])) is None and exact_median(np.array([])) is None


def test_a_column_can_grow_again() -> None:
    column = array("d", draws()["losses"])
    describe(column, column, "all", scope=None, definition=None)
    column.append(1.0)  # no view of it lives on
    assert len(column) == N + 1
