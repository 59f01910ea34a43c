"""Equal documents give equal bytes: keys in their order, an indent of two, shortest floats, UTF-8, one newline."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receipt_cli.documents.canonical import canonical_bytes

LEAVES = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4))


def test_the_bytes() -> None:
    document = {"b": [(), {}], "a": {"é": -0.0, "x": 1e16}, "t": "\n\x1b\u2028"}
    want = '{\n  "b": [\n    [],\n    {}\n  ],\n  "a": {\n    "é": -0.0,\n    "x": 1e+16\n  },\n  "t": "\\n\\u001b\u2028"\n}\n'
    assert canonical_bytes(document) == want.encode()


@given(st.dictionaries(st.text(max_size=4), VALUES, max_size=5))
def test_they_hold_the_document(document: dict[str, Any]) -> None:
    read = json.loads(canonical_bytes(document))
    assert read == document and canonical_bytes(read) == canonical_bytes(document)


CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize("value", [float("nan"), float("-inf"), {1}, b"text", object(), {(1, 2): 3}, "\ud800", CIRCLE], ids=type)
def test_what_is_not_json_is_refused(value: Any) -> None:
    with pytest.raises((ValueError, TypeError)):
        canonical_bytes({"a": value})
