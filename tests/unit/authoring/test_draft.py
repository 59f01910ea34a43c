"""Scalars of a drafted grammar read back as the same values."""

import math

import pytest
import yaml

from receipt_cli.authoring.proposal import write_draft

VALUES = [
    "word",
    "no",
    "null",
    "1.5",
    "it's",
    "a: b",
    "a\nb",
    "\x1b[0m",
    "ü",
    "",
    3,
    True,
    0.1,
    1e22,
    1e-7,
    -2.0,
    math.inf,
    -math.inf,
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_scalar_reads_back(value: object) -> None:
    read = yaml.safe_load(write_draft({"title": value, "rules": {}}, {}, [], []))["title"]
    assert (read, isinstance(read, str)) == (value, isinstance(value, str))


def test_nan_reads_back() -> None:
    assert math.isnan(yaml.safe_load(write_draft({"title": math.nan, "rules": {}}, {}, [], []))["title"])


def test_a_draft_has_its_rules_samples_and_silent_lines() -> None:
    definition = {
        "grammar": "toy",
        "rules": {
            "train_step": {"event": "step", "literal": ["step ", "it "], "fields": {"step": {"type": "integer"}, "loss": {}}}
        },
    }
    sample = {"line": "step 1 loss=2.5", "fields": {"step": 1, "loss": 2.5}}
    remarks = {"train_step": ["10 records\ntrainer: evil\u2028grammar: evil"]}
    text = write_draft(definition, {"train_step": [sample]}, ["eval loss=1"], ["A draft."], remarks)
    read = yaml.safe_load(text)
    assert text.splitlines()[1] == "# A draft."
    assert "  # 10 records / trainer: evil / grammar: evil\n  train_step:\n" in text
    assert read["rules"]["train_step"] == {**definition["rules"]["train_step"], "samples": [sample]}
    assert (read["grammar"], read["no_match"]) == ("toy", ["eval loss=1"])
