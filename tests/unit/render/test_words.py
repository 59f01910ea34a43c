"""Words for comparisons."""

from typing import Any

import pytest

from receipt_cli.render.comparison.words import change, interval


def metric(name: str, a: float, b: float, low: float | None = None, high: float | None = None) -> dict[str, Any]:
    return {"name": name, "a": a, "b": b, "delta": b - a, "ratio": b / a if a else None, "low": low, "high": high}


@pytest.mark.parametrize(
    ("m", "words"),
    [
        (metric("tokens_per_s", 1000.0, 1010.0), "+1.00 %"),
        (metric("tokens_per_s", 1000.0, 1000.0), "0"),
        (metric("tokens_per_s", 1000.0, 999.99), "−<0.01 %"),
        (metric("loss", 2.0, 1.5), "−0.5000"),
        (metric("step_time_s", 0.0, 0.25), "+250 ms"),
    ],
)
def test_a_change_is_in_percent_or_in_the_unit(m: dict[str, Any], words: str) -> None:
    assert change(m) == words


def test_an_interval_has_its_unit_once() -> None:
    assert interval(metric("tokens_per_s", 100.0, 101.0, -1.0, 3.0)) == "−1.00 … +3.00 %"
    assert interval(metric("tokens_per_s", 100.0, 101.0)) == "–"


@pytest.mark.parametrize(
    ("low", "high", "outcome", "words"),
    [
        (-20.0, 120.0, "no_evidence", "too noisy to tell"),
        (-90.0, 99.0, "no_evidence", "−90.0 … +99.0 %"),
        (150.0, 250.0, "better", "+150 … +250 %"),
        (None, None, "no_evidence", "too few records"),
        (None, None, "different", "–"),
    ],
)
def test_an_interval_that_says_nothing_is_words(low: float | None, high: float | None, outcome: str, words: str) -> None:
    assert interval({**metric("tokens_per_s", 100.0, 101.0, low, high), "outcome": outcome}) == words
