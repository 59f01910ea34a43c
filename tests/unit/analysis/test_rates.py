"""Rates of step records, from their batch and their step time."""

import pytest

from receipt_cli.analysis.recompute import StepRate, scaled
from tests.tools.tables import table_of


@pytest.mark.parametrize(
    ("per_sample", "constant", "metrics", "want"),
    [
        (128.0, None, {"global_batch_size": 4.0, "step_time_s": 2.0}, 256.0),
        (128.0, 64.0, {"step_time_s": 2.0}, 32.0),
        (None, 64.0, {"global_batch_size": 4.0, "step_time_s": 2.0}, 32.0),
        (128.0, None, {"step_time_s": 2.0}, None),
        (128.0, 64.0, {"step_time_s": 0.0}, None),
        (128.0, 64.0, {}, None),
    ],
)
def test_a_rate_is_the_units_of_the_step_over_its_time(
    per_sample: float | None, constant: float | None, metrics: dict[str, float], want: float | None
) -> None:
    rate, _ = StepRate(per_sample, constant).of(table_of(metrics))
    assert rate.values.tolist() == ([] if want is None else [want])
    assert scaled(rate, 3.0).values.tolist() == ([] if want is None else [3 * want])


def test_amounts_are_those_of_records_with_a_rate() -> None:
    ramp = [{"global_batch_size": size, "step_time_s": 1.0} for size in (2.0, 4.0, 4.0)]
    _, amounts = StepRate(10.0, None).of(table_of(*ramp, {"global_batch_size": 8.0}))
    assert amounts == [20.0, 40.0]
