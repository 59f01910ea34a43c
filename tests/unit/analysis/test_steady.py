"""How many records of an attempt warm up: the one rule behind steady state and goodput."""

import numpy as np
import pytest

from receipt_cli.analysis.steady import warmups


@pytest.mark.parametrize(
    ("records", "want"), [(0, 0), (1, 0), (2, 0), (3, 1), (19, 1), (20, 2), (99, 9), (100, 10), (101, 10), (10**6, 10)]
)
def test_a_tenth_warms_up_between_one_and_ten_records(records: int, want: int) -> None:
    assert warmups(np.array([records])).tolist() == [want]
