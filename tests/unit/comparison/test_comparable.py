"""Whether runs are comparable, and whether one reproduces another."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.comparison.comparable import DEFAULT, describe_run, judge
from receipt_cli.comparison.load import make_run, short_names

EXAMPLE = Path(__file__).resolve().parents[3] / "fixtures" / "receipts" / "receipt-1.2" / "valid" / "everything.json"


@pytest.fixture
def a() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(EXAMPLE.read_bytes())
    return document


@pytest.fixture
def b(a: dict[str, Any]) -> dict[str, Any]:
    return copy.deepcopy(a)


def test_other_rules_are_a_caveat(a: dict[str, Any], b: dict[str, Any]) -> None:
    before = judge(a, b, DEFAULT).reasons
    b["derivation"]["rules"] = "derive/0"
    judgement = judge(a, b, DEFAULT)
    assert judgement.verdict == "caveats"
    added = [reason for reason in judgement.reasons if reason not in before]
    assert added == [f"derived by other rules: {a['derivation']['rules']} and derive/0"]


def test_a_run_is_described_by_its_configuration_alone(a: dict[str, Any]) -> None:
    fields = describe_run(a)
    assert fields["/run/lane"] == a["run"]["lane"]
    assert not [pointer for pointer in fields if pointer.startswith(("/header/sources", "/summary/metrics", "/checks"))]


def test_a_receipt_is_a_run_without_steps(a: dict[str, Any]) -> None:
    run = make_run("a", a, None)
    assert (run.name, run.steady, run.curves) == ("a", {}, {})


def test_short_names_stay_distinct() -> None:
    assert short_names(["x/a/run.log", "x/b/run.log"]) == ["a/run.log", "b/run.log"]
    assert short_names(["x/a.log", "y/b.log"]) == ["a.log", "b.log"]
