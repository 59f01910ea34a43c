"""What differs between two documents: kinds, order, exactness."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receipt_cli.documents.diff import ABSENT, Difference, differences

CASES = [
    ("same", {"a": [1, {"b": None}]}, {"a": [1, {"b": None}]}, []),
    ("changed", {"a": 1}, {"a": 2}, [("/a", "changed", 1, 2)]),
    ("gained from null", {"a": None}, {"a": 0}, [("/a", "gained", None, 0)]),
    ("gained from nothing", {}, {"a": 0}, [("/a", "gained", ABSENT, 0)]),
    ("lost to null", {"a": False}, {"a": None}, [("/a", "lost", False, None)]),
    ("lost to nothing", {"a": False}, {}, [("/a", "lost", False, ABSENT)]),
    ("null and absent", {"a": None}, {}, [("/a", "changed", None, ABSENT)]),
    ("a part is one difference", {"a": None}, {"a": {"b": 1, "c": 2}}, [("/a", "gained", None, {"b": 1, "c": 2})]),
    ("another type", {"a": {"b": 1}}, {"a": [1]}, [("/a", "changed", {"b": 1}, [1])]),
    ("integer and float", {"a": 1}, {"a": 1.0}, [("/a", "changed", 1, 1.0)]),
    ("true and one", {"a": True}, {"a": 1}, [("/a", "changed", True, 1)]),
    ("minus zero", {"a": 0.0}, {"a": -0.0}, [("/a", "changed", 0.0, -0.0)]),
    ("array by index", [1, 2, 3], [1, 4], [("/1", "changed", 2, 4), ("/2", "lost", 3, ABSENT)]),
    ("array that grows", {"a": [1]}, {"a": [1, 2]}, [("/a/1", "gained", ABSENT, 2)]),
    ("names with slashes", {"a/b": {"~": 1}}, {"a/b": {"~": 2}}, [("/a~1b/~0", "changed", 1, 2)]),
    ("the whole document", 1, "1", [("", "changed", 1, "1")]),
    ("order of fields", {"a": 1, "b": 2}, {"b": 2, "a": 1}, [("", "changed", ["a", "b"], ["b", "a"])]),
    (
        "in the order of the fields, what was lost where it stood",
        {"a": 1, "x": 1, "b": 2, "y": 1},
        {"a": 2, "b": 3, "z": 1},
        [
            ("/a", "changed", 1, 2),
            ("/x", "lost", 1, ABSENT),
            ("/b", "changed", 2, 3),
            ("/z", "gained", ABSENT, 1),
            ("/y", "lost", 1, ABSENT),
        ],
    ),
]


@pytest.mark.parametrize(("old", "new", "want"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_differences(old: Any, new: Any, want: list[Any]) -> None:
    found = differences(old, new)
    assert repr(found) == repr([Difference(*entry) for entry in want])  # repr tells 1 from 1.0 and 0.0 from -0.0


def test_as_json_a_side_without_the_field_is_left_out() -> None:
    assert [d.document() for d in differences({"a": None}, {"a": 1, "b": 2})] == [
        {"pointer": "/a", "kind": "gained", "old": None, "new": 1},
        {"pointer": "/b", "kind": "gained", "new": 2},
    ]


LEAVES = st.none() | st.booleans() | st.integers(-2, 2) | st.floats(-2, 2) | st.sampled_from(["", "a"])
DOCUMENTS = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3), max_leaves=8
)


@given(DOCUMENTS, DOCUMENTS)
def test_nothing_differs_exactly_where_the_text_is_the_same(old: Any, new: Any) -> None:
    assert (differences(old, new) == []) == (json.dumps(old) == json.dumps(new))


@given(DOCUMENTS, DOCUMENTS)
def test_the_other_way_round_what_was_gained_is_lost(old: Any, new: Any) -> None:
    turned = {"gained": "lost", "lost": "gained", "changed": "changed"}
    there = {(d.pointer, d.kind) for d in differences(old, new)}
    assert there == {(d.pointer, turned[d.kind]) for d in differences(new, old)}
