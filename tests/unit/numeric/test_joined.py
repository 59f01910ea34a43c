"""Numbers in several parts read as those of one list."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from receipt_cli.numeric.arrays import Joined

parts = st.lists(st.tuples(st.booleans(), st.lists(st.floats(allow_nan=False), max_size=5)), max_size=4)
bounds = st.none() | st.integers(-12, 12)
steps = st.none() | st.sampled_from([1, 2, 3, 7, -1, -2])


@given(parts, bounds, bounds, steps)
def test_a_slice_is_that_of_all_numbers(of: list[tuple[bool, list[float]]], start: int, stop: int, step: int) -> None:
    every = [number for _, numbers in of for number in numbers]
    joined = Joined([np.array(numbers) if array else numbers for array, numbers in of])
    assert list(joined) == every and len(joined) == len(every)
    assert [joined[place] for place in range(len(joined))] == every
    assert joined[start:stop:step] == every[start:stop:step]
