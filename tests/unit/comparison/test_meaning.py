"""Figures that mean different things have no difference: what a number is over is part of what it is."""

from typing import Any

import numpy as np
import pytest

from receipt_cli.comparison.metrics import Figures, compare_metrics
from receipt_cli.definitions.metrics import load_registry


def rate(**meaning: str | None) -> dict[str, Figures]:
    statistic: dict[str, Any] = {"definition": None, "scope": "global", "window": "steady", **meaning}
    return {"tokens_per_s": Figures({**statistic, **dict.fromkeys(("first", "last", "min", "max", "median"), 1000.5)})}


@pytest.mark.parametrize(
    ("key", "a", "b"),
    [
        ("definition", "mean_since_last_record", "mean_over_the_run"),
        ("definition", "mean_since_last_record", None),
        ("scope", "global", "device"),
        ("window", "steady", "all"),
    ],
)
def test_figures_that_mean_something_else_are_not_compared(key: str, a: str, b: str | None) -> None:
    (found,) = compare_metrics([rate(**{key: a})], [rate(**{key: b})], load_registry())
    assert found.outcome == "incomparable"
    assert f"{key} differs" in (found.reason or "")


def test_figures_of_one_meaning_are() -> None:
    (found,) = compare_metrics([rate(definition="mean_over_the_run")], [rate(definition="mean_over_the_run")], load_registry())
    assert (found.outcome, found.reason) == ("equal", None)


@pytest.mark.parametrize("count", [12, 20, 30, 100, 300])
@pytest.mark.parametrize("phi", [0.0, 0.9, 0.99])
def test_no_interval_says_that_a_positive_figure_may_be_negative(count: int, phi: float) -> None:
    for seed in range(20):
        draw = np.random.default_rng([seed, count])
        sides = []
        for _ in "ab":
            wave = np.zeros(count)
            for i in range(1, count):
                wave[i] = phi * wave[i - 1] + draw.standard_normal()
            values = (0.4 * np.exp(0.1 * wave)).tolist()
            ends = {"first": values[0], "last": values[-1], "min": min(values), "max": max(values)}
            statistic = {**rate()["tokens_per_s"].statistic, **ends, "median": float(np.median(values)), "record_count": count}
            sides.append({"step_time_s": Figures(statistic, values)})
        (found,) = compare_metrics(sides[:1], sides[1:], load_registry())
        assert found.a and (found.low is None or found.a + found.low > 0)
        assert found.records == [count, count]
        if count < 20:
            assert (found.reason or "").startswith("no interval: fewer than 20")
        elif found.low is None:
            assert found.outcome == "no_evidence" and "too few records" in (found.reason or "")
