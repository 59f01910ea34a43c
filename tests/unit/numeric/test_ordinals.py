"""Detection over columns: sets of ordinals agree with Python's sets."""

import itertools
from array import array
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from receipt_cli.numeric import ordinals
from receipt_cli.numeric.column import Cells
from receipt_cli.numeric.ordinals import OrdinalSet, count_switches, ordinals_at
from receipt_cli.scan.columns import POSITION_BITS, NumberColumn

LARGE = 1 << 32
"""From here on an ordinal needs more than 32 bits."""
Members = st.sets(st.one_of(st.integers(0, 50), st.integers(0, 1 << 18), st.sampled_from([LARGE - 1, LARGE, LARGE + 7])))


def switches(left: set[int], right: set[int]) -> int:
    merged = sorted([(at, 0) for at in left] + [(at, 1) for at in right])
    return sum(1 for a, b in itertools.pairwise(merged) if a[1] != b[1])


@given(Members, Members, st.integers(0, 8))
@settings(max_examples=150)
def test_switches_of_owners_are_counted(a: set[int], b: set[int], most: int) -> None:
    one, two = OrdinalSet(a), OrdinalSet(b)
    assert count_switches(one, two, len(a) + len(b)) == switches(a, b)
    assert count_switches(one, two, most) == min(most, switches(a, b))


@given(values=st.lists(st.integers(0, 2**40) | st.integers(0, 2**60)), ascend=st.booleans(), data=st.data())
@settings(max_examples=60)
def test_columns_become_sets(values: list[int], ascend: bool, data: st.DataObject) -> None:
    column = Cells("q", sorted(values) if ascend else values)
    rows = array("q", sorted(data.draw(st.sets(st.integers(0, len(values) - 1) if values else st.nothing()))))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordinals, "PIECE", 5)
        found = ordinals_at(column, POSITION_BITS, rows)
        assert list(found) == sorted({at >> POSITION_BITS for row, at in enumerate(column) if row not in set(rows)})
        assert list(ordinals_at(column, 0)) == sorted(set(values))
    column.append(1)  # no view of it lives on


# What detection is, said with sets.


def column(rows: Sequence[int], values: Sequence[float]) -> NumberColumn:
    made = NumberColumn()
    for row, value in zip(rows, values, strict=True):
        made.append(row, value)
    return made
