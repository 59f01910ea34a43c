"""The bytes of a document are those of the standard library's JSON, indented by two."""

import json
from collections import Counter
from enum import IntEnum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from receipt_cli.documents.canonical import canonical_bytes
from tests.tools.examples import costly


class Level(IntEnum):
    LOW = 1


LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4))


def expected(document: Any) -> bytes:
    return (json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2) + "\n").encode()


@given(st.dictionaries(st.text(max_size=4), VALUES, max_size=5))
def test_they_are_those_of_the_standard_library(document: dict[str, Any]) -> None:
    assert canonical_bytes(document) == expected(document)


@pytest.mark.parametrize(
    "document", [{}, {"a": ()}, {"a": (1, [])}, {"a": Counter("ab")}, {1: "a", None: 2}, {"a": Level.LOW}, {"a": 1e16, "b": -0.0}]
)
def test_so_are_those_of_other_containers_and_keys(document: Any) -> None:
    assert canonical_bytes(document) == expected(document)


@pytest.mark.parametrize("value", [float("nan"), float("-inf"), {1}, b"text", object(), {(1, 2): 3}, "\ud800"])
def test_what_is_not_json_is_refused_alike(value: Any) -> None:
    with pytest.raises((ValueError, TypeError)) as theirs:
        expected({"a": value})
    with pytest.raises(theirs.type):
        canonical_bytes({"a": value})


@settings(max_examples=costly(90))
@given(st.dictionaries(st.text(max_size=4), VALUES, min_size=16, max_size=20))
def test_a_large_object_may_be_in_a_document_at_several_depths(large: dict[str, Any]) -> None:
    document = {"a": large, "b": [{"c": large, "d": "\n  "}, large], "e": {**large, "f": large}}
    assert canonical_bytes(document) == expected(document)


def test_a_circle_is_refused() -> None:
    circle: dict[str, Any] = {}
    circle["a"] = circle
    with pytest.raises(ValueError, match="Circular"):
        canonical_bytes(circle)
