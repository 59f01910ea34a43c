"""Texts as forms and digits: each comes back as it was, however the columns were merged."""

import pickle
from array import array
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receipt_cli.scan import row_texts
from receipt_cli.scan.row_texts import RowTexts, places_of, with_digits

TEXTS = st.one_of(
    st.text("0019.é \t-", max_size=40),
    st.sampled_from(["", "12.50\t3", "9" * 40, "1.2.3", "0123456789.0", ".5", "5.", "٣7", "1e-05"]),
)


def column_of(texts: list[str], *, every: int = 1) -> RowTexts:
    made = RowTexts()
    for number, text in enumerate(texts):
        made.append(number * every, text)
    return made


@given(st.lists(TEXTS))
def test_texts_come_back(texts: list[str]) -> None:
    column = column_of(texts, every=2)
    assert (column.values, list(column.rows), len(column)) == (texts, [2 * n for n in range(len(texts))], len(texts))
    assert pickle.loads(pickle.dumps(column)).values == texts


@given(st.lists(TEXTS), st.lists(TEXTS))
def test_pieces_merge(left: list[str], right: list[str]) -> None:
    merged = column_of(left)
    merged.extend(column_of(right), 100)
    assert merged.values == [*left, *right]
    assert list(merged.rows) == [*range(len(left)), *range(100, 100 + len(right))]


def test_forms_are_those_of_the_texts() -> None:
    """An engine that is kept for many logs hands over the forms of all of them."""
    column = RowTexts()
    column.extend_bytes(array("q", [0, 1, 2]).tobytes(), array("q", [3, 1, 3]).tobytes(), ["of another log", "b", "c", "d"])
    assert (column.forms, column.values) == (["d", "b"], ["d", "b", "d"])


@given(st.lists(TEXTS, min_size=1))
def test_pieces_have_all_texts_by_form(texts: list[str]) -> None:
    column, found = column_of(texts), {}
    for begin, groups in column.pieces([*range(7, len(column), 7), len(column)]):
        for form, at, digits in groups:
            assert digits.shape == (len(at), len(places_of(form)))
            for place, numbers in zip((begin + at).tolist(), digits.tolist(), strict=True):
                found[place] = with_digits(form, places_of(form), numbers)
    assert [found[place] for place in range(len(texts))] == texts
    import numpy as np

    with patch.object(row_texts, "STRETCH", 4):
        for first in range(len(texts)):
            assert column.at(np.arange(first, len(texts))[::-1]) == texts[first:][::-1]


@pytest.mark.parametrize(
    ("form", "places"),
    [("000.00", [(0, 6)]), ("0.0.0", [(0, 3), (4, 5)]), ("0" * 19, [(0, 18), (18, 19)]), ("0000000000.0", [(0, 10), (11, 12)])],
)
def test_where_numbers_are(form: str, places: list[tuple[int, int]]) -> None:
    assert list(places_of(form)) == places
