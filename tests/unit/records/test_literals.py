"""Dicts on a line are read as Python and JSON read them, with numbers as printed and within limits."""

import ast
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receipt_cli.records.literals import MAX_DEPTH, MAX_ITEMS, NotALiteral, Number, Value, parse_object

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
FINITE = st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(allow_nan=False, allow_infinity=False) | TEXTS


def nested(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    inner = st.recursive(leaves, lambda of: st.lists(of, max_size=4) | st.dictionaries(TEXTS, of, max_size=4), max_leaves=12)
    return st.dictionaries(TEXTS, inner, max_size=6)


def plain(value: Value) -> Any:
    """Return ``value`` with every number as Python reads its text."""
    if isinstance(value, Number):
        try:
            return int(value)
        except ValueError:
            return float(value)
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


@given(nested(FINITE))
def test_python_dicts(data: dict[str, Any]) -> None:
    text = repr(data)
    value, end = parse_object(text, 0)
    assert end == len(text)
    assert plain(value) == ast.literal_eval(text)


NUMBERS = ["2.3410", "0.10", "1e-05", "-0.0", "1E+3", "5.", ".5", "007", "nan", "-inf", "NaN", "Infinity", "-Infinity"]


@pytest.mark.parametrize("printed", NUMBERS)
def test_numbers_stay_as_printed(printed: str) -> None:
    value, _ = parse_object(f"{{'loss': {printed}}}", 0)
    assert isinstance(value["loss"], Number)
    assert value["loss"] == printed


WRAPPED = [
    ("np.float64(0.5)", "0.5"),
    ("np.int64(12)", "12"),
    ("numpy.float32(1e-05)", "1e-05"),
    ("np.float64(nan)", "nan"),
    ("tensor(0.5)", "0.5"),
    ("tensor(0.5, device='cuda:0')", "0.5"),
    ("tensor(2.3410, device='cuda:0', dtype=torch.float64)", "2.3410"),
    ("tensor(2.3410, device='cuda:0', grad_fn=<NllLossBackward0>)", "2.3410"),
    ("tensor(0.5, requires_grad=True)", "0.5"),
    ("Array(0.5, dtype=float32)", "0.5"),
    ("Array(0.5, dtype=float32, weak_type=True)", "0.5"),
]


@pytest.mark.parametrize(("text", "want"), WRAPPED)
def test_a_wrapper_is_the_number_inside(text: str, want: str) -> None:
    value, end = parse_object(f"x {{'loss': {text}, 'b': 1}} y", 2)
    assert value == {"loss": want, "b": "1"}
    assert isinstance(value["loss"], Number)
    assert end == len(f"x {{'loss': {text}, 'b': 1}}")


REFUSED = [
    "{",
    "{}"[:1] + "'a'",
    "{'a'}",
    "{'a': }",
    "{'a': 1",
    "{'a': 'b}",
    "{'a' 1}",
    "{'a': 1 'b': 2}",
    "{'a': x}",
    "{a: 1}",
    "{'a': b'x'}",
    "{'a': 1.2.3}",
    "{'a': 0x1f}",
    "{'a': 1j}",
    "{'a': 12ms}",
    "{'a': __import__('os')}",
    "{'a': open('x')}",
    "{'a': tensor([1, 2])}",
    "{'a': tensor(0.5}",
    "{'a': f(1, 2, }",
    "{'a': 1 + 1}",
    "{'a': nanx}",
    "{[1]: 2}",
    "{{}: 2}",
    "{'a': [1, 2}",
    "[1, 2]",
    "1",
    "",
]


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_literal(text: str) -> None:
    with pytest.raises(NotALiteral):
        parse_object(text, 0)


ESCAPES = [
    (r'{"a": "\u00e9"}', "é"),
    (r'{"a": "\ud83d\ude00"}', "\U0001f600"),
    (r'{"a": "\/\"\\\b\f\n\r\t"}', '/"\\\b\f\n\r\t'),
    (r"{'a': '\xe9\'\\'}", "é'\\"),
    (r"{'a': '\U0001f600'}", "\U0001f600"),
    (r'{"a": "\ud83d"}', "\N{REPLACEMENT CHARACTER}"),
    (r"{'a': '\U00110000'}", "\N{REPLACEMENT CHARACTER}"),
]


@pytest.mark.parametrize(("text", "want"), ESCAPES)
def test_escapes(text: str, want: str) -> None:
    value, _ = parse_object(text, 0)
    assert value == {"a": want}


def test_lenient_but_plain() -> None:
    assert parse_object("{'a': 1_000, 'b': (1, 2,), 'a': 2,}", 0)[0] == {"a": "2", "b": ["1", "2"]}
    assert parse_object("{'a': None, 'b': true, 'c': False, 1: 'x'}", 0)[0] == {"a": None, "b": True, "c": False, "1": "x"}


def deep(levels: int) -> str:
    return "{'a': " * levels + "1" + "}" * levels


def test_depth_has_a_limit() -> None:
    assert parse_object(deep(MAX_DEPTH), 0)[0]
    for text in (deep(MAX_DEPTH + 1), deep(20_000), "{'a': " + "[" * 50_000, "{'a': " + "f(" * 50_000):
        with pytest.raises(NotALiteral):
            parse_object(text, 0)


def test_size_has_a_limit() -> None:
    few = "{'a': [" + "1, " * (MAX_ITEMS - 10) + "]}"
    assert len(parse_object(few, 0)[0]["a"]) == MAX_ITEMS - 10  # type: ignore[arg-type]
    with pytest.raises(NotALiteral):
        parse_object("{'a': [" + "1, " * MAX_ITEMS + "]}", 0)
