import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receipt_cli.render.metrics import BLOCKS, GAP, sparkline

NAN = math.nan


@pytest.mark.parametrize(
    ("values", "width", "want"),
    [
        ([], 8, ""),
        ([1, 2, 3], 0, ""),
        ([NAN, NAN], 8, ""),
        ([5.0], 8, "▄"),
        ([5, 5, 5], 8, "▄▄▄"),
        ([0, 1, 2, 3, 4, 5, 6, 7], 8, "▁▂▃▄▅▆▇█"),
        ([7, 6, 5, 4, 3, 2, 1, 0], 8, "█▇▆▅▄▃▂▁"),
        ([0, 0, 7, 7], 2, "▁█"),
        ([0, NAN, 7], 8, "▁ █"),
        ([0, NAN, 7, NAN], 2, "▁█"),  # a share with one finite value has its mean
        ([math.inf, 1, 2], 8, " ▁█"),
    ],
)
def test_sparkline(values: Sequence[float], width: int, want: str) -> None:
    assert sparkline(values, width) == want


@given(st.lists(st.floats()), st.integers(0, 40), st.floats(0, 1))
def test_every_series_has_a_line(values: list[float], width: int, least_span: float) -> None:
    line = sparkline(values, width, least_span=least_span)
    assert len(line) in (0, min(width, len(values)))
    assert set(line) <= {*BLOCKS, GAP}


@pytest.mark.parametrize("value", [8.98846567431158e307, -1.1984620899082105e308, 1.7e308, -1.7e308])
def test_one_value_near_the_limit_of_floats_has_a_line(value: float) -> None:
    assert sparkline([value], 1, least_span=1.0) != ""
    assert len(sparkline([value, -value], 2)) == 2
