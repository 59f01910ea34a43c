"""Whether runs are comparable, and whether one reproduces another."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.comparison.comparable import describe_run, judge
from receipt_cli.comparison.load import make_run, short_names
from receipt_cli.comparison.policy import DEFAULT
from receipt_cli.comparison.rerun import METRICS, Points, Side, reproducibility

EXAMPLE = Path(__file__).resolve().parents[3] / "fixtures" / "receipts" / "receipt-1.2" / "valid" / "everything.json"
LOSSES = [(step, 3.0 - 0.01 * step) for step in range(20)]


@pytest.fixture
def a() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(EXAMPLE.read_bytes())
    return document


@pytest.fixture
def b(a: dict[str, Any]) -> dict[str, Any]:
    return copy.deepcopy(a)


def test_other_hardware_is_not_comparable(a: dict[str, Any], b: dict[str, Any]) -> None:
    b["header"]["hardware"]["accelerators"] = [{"name": "another", "count": 1, "memory_bytes": None}]
    judgement = judge(a, b, DEFAULT)
    assert judgement.verdict == "not_comparable"
    assert judgement.reasons[0] == "/header/hardware/accelerators differs"


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


def answer(a: dict[str, Any], b: dict[str, Any], points: dict[str, Points] | None, **options: Any) -> dict[str, Any]:
    return reproducibility(Side("a", a, {"loss": LOSSES}), Side("b", b, points), DEFAULT, **options)


def test_the_first_different_loss_is_named(a: dict[str, Any], b: dict[str, Any]) -> None:
    found = answer(a, b, {"loss": [*LOSSES[:7], (7, 9.0), *LOSSES[8:]]})
    assert found["reproduced"] == "no"
    assert found["curves"][0]["departs"] == {"step": 7, "a": LOSSES[7][1], "b": 9.0}


def test_equal_losses_count_only_with_equal_seeds(a: dict[str, Any], b: dict[str, Any]) -> None:
    assert answer(a, b, {"loss": LOSSES})["curves"][0]["same"] is True
    a["header"]["seeds"], b["header"]["seeds"] = {"seed": 1}, {"seed": 2}
    found = answer(a, b, {"loss": LOSSES})
    assert (found["seeds"]["same"], found["reproduced"]) == (False, "no")


def test_a_tolerance_is_relative(a: dict[str, Any], b: dict[str, Any]) -> None:
    near = [(step, value * 1.01) for step, value in LOSSES]
    assert answer(a, b, {"loss": near}, tolerance=0.02)["curves"][0]["same"] is True
    assert answer(a, b, {"loss": near}, tolerance=0.001)["curves"][0]["same"] is False


def test_without_losses_the_answer_is_unknown_at_best(a: dict[str, Any], b: dict[str, Any]) -> None:
    found = answer(a, b, None)
    assert found["reproduced"] != "yes"
    assert found["curves"][0]["metric"] == METRICS[0] and found["curves"][0]["same"] is None


def test_a_receipt_is_a_run_without_steps(a: dict[str, Any]) -> None:
    run = make_run("a", a, None)
    assert (run.name, run.steady, run.curves) == ("a", {}, {})


def test_short_names_stay_distinct() -> None:
    assert short_names(["x/a/run.log", "x/b/run.log"]) == ["a/run.log", "b/run.log"]
    assert short_names(["x/a.log", "y/b.log"]) == ["a.log", "b.log"]
