"""Values → statistics: exact sums, medians of the exact values, what is not finite counted and null."""

import json
import math
import random
import statistics
from fractions import Fraction

from receipt_cli.numeric.statistics import describe, exact_mean, exact_median
from tests.tools.logs import receipt_of


def iterations(losses: list[str]) -> str:
    return "".join(f"iter {n}: loss {loss}, time 100.00ms, mfu 40.00%\n" for n, loss in enumerate(losses))


def test_no_values_have_no_figures() -> None:
    assert exact_mean([]) is None
    assert exact_median([]) is None


def test_means_do_not_depend_on_the_order() -> None:
    values = [random.Random(7).uniform(-1, 1) * 10**power for power in range(-8, 9) for _ in range(20)]
    shuffled = random.Random(8).sample(values, len(values))
    assert exact_mean(values) == exact_mean(shuffled)
    exact = sum(map(Fraction, values)) / len(values)
    assert math.isclose(exact_mean(values) or 0.0, float(exact), rel_tol=2**-52)


def test_an_empty_window_still_has_first_and_last() -> None:
    found = describe([1.0, 2.0], [], "steady", scope="global", definition="x")
    assert (found.first, found.last, found.min, found.mean, found.record_count) == (1.0, 2.0, None, None, 0)


def test_nan_is_counted_and_null() -> None:
    document = receipt_of(iterations(["2.5", "nan", "1.5", "inf", "3.5"]))
    loss = document["summary"]["metrics"]["loss"]
    assert (loss["record_count"], loss["nonfinite_count"], loss["mean"], loss["last"]) == (5, 2, 2.5, 3.5)
    assert document["summary"]["steps"]["record_count"] == 5
    json.dumps(document, allow_nan=False)


def test_a_first_or_last_that_is_nan_is_null() -> None:
    loss = receipt_of(iterations(["nan", "2.5", "nan"]))["summary"]["metrics"]["loss"]
    assert (loss["first"], loss["last"], loss["min"], loss["max"]) == (None, None, 2.5, 2.5)


def test_nothing_but_nan() -> None:
    loss = receipt_of(iterations(["nan"] * 4))["summary"]["metrics"]["loss"]
    assert (loss["nonfinite_count"], loss["mean"], loss["median"], loss["min"]) == (4, None, None, None)


def test_first_and_last_are_those_printed() -> None:
    losses = [f"{11 - n / 100:.4f}" for n in range(300)]
    metrics = receipt_of(iterations(losses))["summary"]["metrics"]
    assert (metrics["loss"]["first"], metrics["loss"]["last"]) == (float(losses[0]), float(losses[-1]))
    assert metrics["loss"]["mean"] == math.fsum(map(float, losses)) / 300
    assert metrics["loss"]["median"] == statistics.median(map(float, losses))


def test_units_are_scaled_in_decimal() -> None:
    log = "".join(f"iter {n}: loss 1.0, time 131.97ms, mfu 29.53%\n" for n in range(5))
    metrics = receipt_of(log)["summary"]["metrics"]
    assert (metrics["step_time_s"]["last"], metrics["mfu_ratio"]["last"]) == (0.13197, 0.2953)
    assert metrics["step_time_s"]["median"] == 0.13197
