"""Documents of other systems: their text, their JSON, and values that are read, or left out with a problem."""

import gzip
import hashlib
import math
from pathlib import Path

import pytest

from receipt_cli.errors import InputError
from receipt_cli.importers import text as module
from receipt_cli.importers.derive import statistic
from receipt_cli.importers.model import DeclaredStatistic, last, single
from receipt_cli.importers.text import JsonText, NotJson, Number, at, read_beside, read_document
from receipt_cli.importers.values import IGNORED, STEP, Fields, Names, ProblemCounter, fact, metric, other, read_record


def test_a_compressed_document_has_the_digest_of_its_text(tmp_path: Path) -> None:
    path = tmp_path / "state.json.gz"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbf{}\nx"))
    document = read_document(str(path))
    assert (document.text, document.size_bytes, document.line_count) == ("{}\nx", 7, 2)
    assert document.sha256 == hashlib.sha256(b"\xef\xbb\xbf{}\nx").hexdigest()


@pytest.mark.parametrize(("data", "why"), [(b" \n", "empty"), (b"\xff{}", "UTF-8"), (b"x" * 101, "too large")])
def test_what_cannot_be_a_document_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, why: str) -> None:
    monkeypatch.setattr(module, "MAX_BYTES", 100)
    (tmp_path / "x.json").write_bytes(data)
    with pytest.raises(InputError, match=why):
        read_document(str(tmp_path / "x.json"))


def test_files_beside_a_document_are_optional(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.yaml").write_text("a: 1\n")
    here = str(tmp_path / "wandb-summary.json")
    found = read_beside(here, "config.yaml")
    assert found.text == "a: 1\n"
    assert read_beside(here, "missing.json") is read_beside("-", "config.yaml") is None
    monkeypatch.setattr(module, "MAX_SIDECAR", 3)
    assert read_beside(here, "config.yaml") is None


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


NAMES = Names(
    {
        "it": STEP, "time": IGNORED, "ms": metric("step_time_s", "ms", definition="mean"), "seed": fact("seed"),
        "lr": metric("learning_rate"), "extra": other("extra"), "acc": metric("val_accuracy"),
    }
)  # fmt: skip


def test_a_record_is_read_by_the_table_of_its_format() -> None:
    problems = ProblemCounter()
    record = JsonText('{"it": 12, "time": 1, "ms": 250, "seed": 7, "lr": null, "extra": 3, "unknown": 4, "note": "x"}').value()
    assert isinstance(record, dict)
    values = read_record(record, NAMES, problems, 1, "/0")
    assert (values.step, values.metrics, values.meanings) == (12, {"step_time_s": 0.25}, {"step_time_s": (None, "mean")})
    assert (values.others, values.facts, problems.kinds.total()) == ({"extra": 3.0, "unknown": 4.0}, {"seed": 7.0}, 0)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"it": 1.5}', "wrong_type"), ('{"lr": "x"}', "wrong_type"), ('{"acc": 70}', "value_out_of_range"),
        ('{"seed": -1}', "value_out_of_range"), ('{"peak_mem_gb": 3}', "ambiguous_unit"),
    ],
)  # fmt: skip
def test_a_doubtful_value_is_left_out_with_a_problem(text: str, kind: str) -> None:
    problems = ProblemCounter()
    record = JsonText(text).value()
    assert isinstance(record, dict)
    values = read_record(record, NAMES, problems, 3, "/0")
    assert (values.metrics, values.step, values.facts) == ({}, None, {})
    assert [(p.kind, p.line_number) for p in problems.first] == [(kind, 3)]


def test_fields_are_read_by_their_path() -> None:
    problems = ProblemCounter()
    fields = Fields(JsonText('{"a": {"n": 3, "neg": -1, "half": 0.5, "s": " x ", "t": "NaN"}}').value(), problems, "file#")
    assert (fields.count("a", "n"), fields.whole("a", "neg"), fields.words("a", "s")) == (3, -1, "x")
    assert fields.number(metric("step_time_s", "ms"), "a", "n") == 0.003
    assert (fields.whole("a", "missing"), fields.words("a", "n"), problems.kinds.total()) == (None, None, 0)
    assert (fields.count("a", "neg"), fields.whole("a", "half"), fields.seconds("a", "t")) == (None, None, None)
    assert [(p.kind, p.detail.partition(":")[0]) for p in problems.first] == [
        ("value_out_of_range", "file#/a/neg"), ("wrong_type", "file#/a/half"), ("value_out_of_range", "file#/a/t")
    ]  # fmt: skip


def test_only_the_first_problems_are_kept() -> None:
    problems = ProblemCounter()
    for number in range(30):
        problems.add("wrong_type", number, "detail")
    assert (problems.kinds.total(), len(problems.first)) == (30, 20)


def test_a_single_value_is_every_figure() -> None:
    found = statistic("loss", single(2.5), ProblemCounter())
    assert (found.record_count, found.first, found.last, found.min, found.max, found.mean, found.median) == (1, *[2.5] * 6)


def test_a_statistic_with_missing_figures_has_no_count() -> None:
    found = statistic("loss", last(2.5, definition="smoothed"), ProblemCounter())
    assert (found.record_count, found.last, found.first, found.definition) == (0, 2.5, None, "smoothed")


@pytest.mark.parametrize(
    ("figures", "kind"),
    [
        ({"min": 2.0, "max": 1.0}, "figures_contradict"), ({"min": 1.0, "max": 2.0, "mean": 3.0}, "figures_contradict"),
        ({"mean": math.nan}, "figure_not_finite"),
    ],
)  # fmt: skip
def test_impossible_figures_are_left_out(figures: dict[str, float], kind: str) -> None:
    problems = ProblemCounter()
    assert statistic("loss", DeclaredStatistic(figures), problems) is None
    assert [p.kind for p in problems.first] == [kind]


def test_ends_may_lie_outside_of_a_steady_window() -> None:
    declared = DeclaredStatistic({"first": 9.0, "min": 1.0, "max": 2.0}, 5, "steady")
    assert statistic("loss", declared, ProblemCounter()) is not None
