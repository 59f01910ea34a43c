"""JSON of other systems: numbers as printed, the line of each record, and arrays that a crash left open."""

import pytest

from receipt_cli.importers.text import JsonText, NotJson, Number, at


def test_numbers_stay_as_printed() -> None:
    value = JsonText('{"a": 412.10, "b": 1e-05, "c": NaN, "d": "412.10", "e": 12345678901234567890123}').value()
    assert isinstance(value, dict)
    assert [str(value[key]) for key in "abce"] == ["412.10", "1e-05", "NaN", "12345678901234567890123"]
    assert [isinstance(value[key], Number) for key in "abcde"] == [True, True, True, False, True]


def test_a_key_that_stands_twice_with_two_values_counts_for_nothing() -> None:
    text = JsonText('{"a": 1, "b": {"c": 1, "c": 2}, "a": 1}')
    assert text.value() == {"a": "1", "b": {}}
    assert text.repeated == ["c"]


def test_each_record_has_its_line() -> None:
    text = JsonText('{"x": {"y": [0]},\n "h": {"rows": [\n{"s": 1},\n\n{"s":\n 2}, {"s": 3}]}}')
    assert [(r.line, at(r.value, "s")) for r in text.array(("h", "rows"))] == [(3, "1"), (5, "2"), (6, "3")]


@pytest.mark.parametrize(
    ("text", "steps", "broken", "closed"),
    [
        pytest.param('[\n{"s": 1},\n{"s": 2}\n]', "12", [], True, id="whole"),
        pytest.param('[\n{"s": 1},\n{"s": 2}', "12", [3], False, id="no-end"),
        pytest.param('[\n{"s": 1},\n{"s": 2},\n', "12", [3], False, id="comma-at-the-end"),
        pytest.param('[\n{"s": 1},\n{"s": 2, "l', "1", [3], False, id="cut-in-a-record"),
        pytest.param('[\n{"s": 1}\n{"s": 2}\n]', "12", [], True, id="no-comma"),
        pytest.param('[\n{"s": 1},\n{"s" 2},\n{"s": 3}\n]', "13", [3], True, id="broken-in-the-middle"),
        pytest.param('[\n{"s": 1}\n],\n{"s": 2}\n]', "12", [3], True, id="appended-behind-the-end"),
        pytest.param('[\n{"s": 1}\n]\n[\n{"s": 2}\n]', "12", [3], True, id="two-arrays"),
        pytest.param("[", "", [1], False, id="nothing"),
    ],
)
def test_an_open_array_is_read_as_far_as_it_goes(text: str, steps: str, broken: list[int], closed: bool) -> None:
    array = JsonText(text).open_array()
    assert "".join(str(at(record.value, "s")) for record in array.records) == steps
    assert [line for line, _ in array.broken] == broken
    assert array.closed is closed


@pytest.mark.parametrize("text", ["", "{", "[1, 2", '{"a": }', "[" * 50_000, '{"a": 1} x', "nul"])
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(NotJson):
        JsonText(text).value()
