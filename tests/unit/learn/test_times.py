"""Times of an unknown trainer whose unit a blank parts from the number."""

import pytest

from tests.tools.logs import receipt_of


@pytest.mark.parametrize(
    ("printed", "metric", "seconds"),
    [
        ("batch_cost: 0.31 sec", "step_time_s", 0.31),
        ("step_time: 310.5 ms", "step_time_s", 0.3105),
        ("step_time = 0.25 s, lr = 0.1", "step_time_s", 0.25),
        ("reader_cost: 0.02 secs", "data_time_s", 0.02),
    ],
)
def test_a_time_has_the_unit_behind_it(printed: str, metric: str, seconds: float) -> None:
    log = "".join(f"engine: iter {n}/400 loss: {3 - n / 50:.4f} {printed}\n" for n in range(10, 50))
    summary = receipt_of(log)["summary"]
    assert summary["metrics"][metric]["last"] == pytest.approx(seconds)
    assert summary["metrics"]["loss"]["last"] == 2.02


@pytest.mark.parametrize("printed", ["batch_cost: 0.31", "batch_cost: 0.31 sets", "batch_cost: 0.31 of 3"])
def test_a_cost_without_a_unit_is_no_time(printed: str) -> None:
    log = "".join(f"engine: iter {n}/400 loss: {3 - n / 50:.4f} {printed}\n" for n in range(10, 50))
    assert "step_time_s" not in receipt_of(log)["summary"]["metrics"]
