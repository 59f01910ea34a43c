"""``spikes/1`` on any values: short and long columns agree in every bit, and both with the rule as it is written down."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from receipt_cli.analysis.spikes import ALPHA, LEAST, MAX_FIRST, spikes_of

POSITIVE = st.floats(min_value=1e-6, max_value=1e6)
VALUES = st.lists(st.one_of(POSITIVE, POSITIVE, POSITIVE, st.sampled_from([0.0, math.nan, math.inf])), max_size=1300)


def plainly(values: list[float], warning: float) -> list[int]:
    """Return the places of spikes, by the recurrence itself; those within rounding of the threshold are left out."""
    average, seen, found = math.nan, 0, []
    for place, value in enumerate(values):
        if not 0 < value < math.inf:
            continue
        if seen >= LEAST and value > warning * average * (1 + 1e-9):
            found.append(place)
        average = value if not seen else (1 - ALPHA) * average + ALPHA * value
        seen += 1
    return found


@given(VALUES)
def test_lists_and_arrays_agree_in_every_bit(values: list[float]) -> None:
    assert spikes_of(values, 2.0, 10.0) == spikes_of(np.array(values, np.float64), 2.0, 10.0)


@given(VALUES)
def test_they_are_those_of_the_recurrence(values: list[float]) -> None:
    found, wanted = spikes_of(values, 2.0, 10.0), plainly(values, 2.0)
    if found is not None:
        assert found[0] >= len(wanted)
        assert set(wanted[: MAX_FIRST // 2]) <= {place for place, _, _ in found[2]}
        assert all(value > 2.0 * average > 0 for _, value, average in found[2])
        assert found[1] <= found[0] and len(found[2]) == min(found[0], MAX_FIRST)
    else:
        assert sum(0 < value < math.inf for value in values) <= LEAST


@given(VALUES, st.integers(0, 1300))
def test_what_comes_later_changes_nothing_before(values: list[float], cut: int) -> None:
    whole, part = spikes_of(values, 2.0, 10.0), spikes_of(values[:cut], 2.0, 10.0)
    if whole is not None and part is not None:
        assert whole[2][: len(part[2])] == part[2] and part[0] <= whole[0]


@given(st.lists(POSITIVE, min_size=LEAST + 1, max_size=600), st.sampled_from([0.5, 2.0, 1024.0]))
def test_a_scale_changes_no_spike(values: list[float], factor: float) -> None:
    one, other = spikes_of(values, 2.0, 10.0), spikes_of([value * factor for value in values], 2.0, 10.0)
    assert one[:2] == other[:2] and [s[0] for s in one[2]] == [s[0] for s in other[2]]
