"""``spikes/2`` on any values: it is the rule as it is written down, however the values are divided into blocks."""

from __future__ import annotations

import math
import statistics

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from receipt_cli.analysis import spikes
from receipt_cli.analysis.spikes import LEAST, MAX_FIRST, WINDOW

POSITIVE = st.floats(min_value=1e-6, max_value=1e6)
NOISY = st.floats(min_value=0.2, max_value=5.0)
VALUES = st.lists(st.one_of(POSITIVE, NOISY, NOISY, st.sampled_from([0.0, math.nan, math.inf])), max_size=700)
Found = tuple[int, int, list[tuple[int, float, float]]]


def spikes_of(values: list[float]) -> Found | None:
    return spikes.spikes_of(np.array(values, np.float64), 2.0, 10.0)


@given(VALUES)
def test_they_are_those_of_the_rule(values: list[float]) -> None:
    seen: list[float] = []
    found: list[tuple[int, float, float]] = []
    for place, value in enumerate(values):
        if 0 < value < math.inf:
            if len(seen) >= LEAST and value > 2.0 * (median := statistics.median(seen[-WINDOW:])):
                found.append((place, value, median))
            seen.append(value)
    worse = sum(value > 10.0 * median for _, value, median in found)
    assert spikes_of(values) == (None if len(seen) <= LEAST else (len(found), worse, found[:MAX_FIRST]))


@given(VALUES, st.integers(0, 1300))
def test_what_comes_later_changes_nothing_before(values: list[float], cut: int) -> None:
    whole, part = spikes_of(values), spikes_of(values[:cut])
    if whole is not None and part is not None:
        assert whole[2][: len(part[2])] == part[2] and part[0] <= whole[0]


@given(st.lists(POSITIVE, min_size=LEAST + 1, max_size=600), st.sampled_from([0.5, 2.0, 1024.0]))
def test_a_scale_changes_no_spike(values: list[float], factor: float) -> None:
    one, other = spikes_of(values), spikes_of([value * factor for value in values])
    assert one is not None and other is not None
    assert one[:2] == other[:2] and [s[0] for s in one[2]] == [s[0] for s in other[2]]
