"""Figures that mean different things have no difference: what a number is over is part of what it is."""

from __future__ import annotations

from typing import Any

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
