"""Values of a foreign document: units, types, ranges, and a problem for each one that is left out."""

import pytest

from receipt_cli.importers.text import JsonText
from receipt_cli.importers.values import IGNORED, STEP, Fields, Names, ProblemCounter, fact, metric, other, read_record

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
