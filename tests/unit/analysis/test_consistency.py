"""What a trainer reports beside what its batch and its step times give."""

import math

import pytest

from receipt_cli.analysis.flops import tokens_per_step
from receipt_cli.analysis.recompute import compare
from receipt_cli.numeric.precision import TOLERANCE
from receipt_cli.numeric.statistics import Statistic, describe

BATCHES: list[tuple[str, dict[str, float | str], float | None]] = [
    ("printed", {"tokens_per_step": 524288.0}, 524288.0),
    ("printed wins", {"tokens_per_step": 524288.0, "samples_per_step": 8.0, "sequence_length": 16.0}, 524288.0),
    ("samples times length", {"samples_per_step": 8.0, "sequence_length": 16.0}, 128.0),
    ("one of two", {"samples_per_step": 8.0}, None),
    ("nothing", {}, None),
    ("text", {"tokens_per_step": "many"}, None),
    ("zero", {"tokens_per_step": 0.0}, None),
    ("nan", {"tokens_per_step": math.nan}, None),
    ("infinite", {"tokens_per_step": math.inf}, None),
    ("infinite, but known otherwise", {"tokens_per_step": math.inf, "samples_per_step": 8.0, "sequence_length": 2.0}, 16.0),
    ("a product beyond float64", {"samples_per_step": 1e200, "sequence_length": 1e200}, None),
]


@pytest.mark.parametrize(("facts", "want"), [row[1:] for row in BATCHES], ids=[row[0] for row in BATCHES])
def test_tokens_per_step(facts: dict[str, float | str], want: float | None) -> None:
    assert tokens_per_step(facts) == want


def median(value: float) -> Statistic:
    return describe([value], [value], "all", scope=None, definition=None)


COMPARED = [
    ("equal", 100.0, 100.0, (1.0, True)),
    ("half", 50.0, 100.0, (0.5, False)),
    ("within the tolerance", 100.0 * (1 + TOLERANCE / 2), 100.0, (1 + TOLERANCE / 2, True)),
    ("beyond it", 100.0 * (1 + TOLERANCE * 2), 100.0, (1 + TOLERANCE * 2, False)),
    ("nothing reported", 0.0, 100.0, None),
    ("nothing derived", 100.0, 0.0, None),
    ("not a number", math.nan, 100.0, None),
    ("a ratio beyond float64", 1e308, 1e-10, None),
]


@pytest.mark.parametrize(("reported", "derived", "want"), [row[1:] for row in COMPARED], ids=[row[0] for row in COMPARED])
def test_compare(reported: float, derived: float, want: tuple[float, bool] | None) -> None:
    found = compare("tokens_per_s", median(reported), median(derived))
    if want is None:
        assert found is None
    else:
        assert found is not None and (found.reported, found.derived) == (reported, derived)
        assert (found.ratio, found.consistent) == (pytest.approx(want[0]), want[1])


def test_a_missing_side_is_not_compared() -> None:
    assert compare("tokens_per_s", None, median(1.0)) is None
    assert compare("tokens_per_s", median(1.0), None) is None
