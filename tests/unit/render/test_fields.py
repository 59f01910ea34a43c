"""Fields of documents that nobody has validated."""

import math

import pytest

from receipt_cli.render.fields import child, items, mapping, real, text, truth, whole

DOCUMENT = {"a": {"b": [1, 2]}, "text": "x", "empty": "", "yes": True, "n": 3.0, "nan": math.nan, "half": 0.5, "big": 10**400}


def test_values_are_found_by_path() -> None:
    assert child(DOCUMENT, "a", "b") == [1, 2]
    assert list(items(DOCUMENT, "a", "b")) == [1, 2]
    assert mapping(DOCUMENT, "a") == {"b": [1, 2]}
    assert (text(DOCUMENT, "text"), truth(DOCUMENT, "yes"), whole(DOCUMENT, "n"), real(DOCUMENT, "half")) == ("x", True, 3, 0.5)


@pytest.mark.parametrize("key", ["text", "yes", "nan", "big", "absent"])
def test_what_is_not_a_finite_number_is_unknown(key: str) -> None:
    assert real(DOCUMENT, key) is None
    assert whole(DOCUMENT, key) is None


def test_the_wrong_type_reads_as_unknown() -> None:
    assert whole(DOCUMENT, "half") is None
    assert text(DOCUMENT, "empty") is None and text(DOCUMENT, "n") is None
    assert truth(DOCUMENT, "n") is None
    assert items(DOCUMENT, "text") == () and mapping(DOCUMENT, "n") == {}
    assert child(DOCUMENT, "text", "deeper") is None
    assert mapping({"m": {1: "left out", "kept": 2}}, "m") == {"kept": 2}
