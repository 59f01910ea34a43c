"""The calibration of comparisons: its committed table keeps its bound, and a part of it is counted anew."""

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.calibration import DEPENDENCE, MOST, STALLS, STEPS, outcome, step_times
from receipt_cli.numeric.intervals import INTERVAL_RULE

RESULTS = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "calibration.json"


def test_the_committed_table_is_of_this_rule_and_keeps_its_bound() -> None:
    table = json.loads(RESULTS.read_text(encoding="utf-8"))
    assert table["rule"] == INTERVAL_RULE
    assert len(table["simulated"]) == len(STEPS) * len(DEPENDENCE) * len(STALLS)
    assert {cell["series"] for cell in table["real"]} == {"halves", "circular shifts"}
    assert max(cell["wrong"] for cell in [*table["simulated"], *table["real"]]) <= MOST


@pytest.mark.parametrize("phi", [0.9, 0.97])
def test_rare_stalls_do_not_make_equal_runs_differ(phi: float) -> None:
    draw = np.random.default_rng(5)
    a, b = (step_times(300, 100, phi, 0.02, 1, draw) for _ in "ab")
    assert sum(outcome(x, y) in ("better", "worse") for x, y in zip(a, b, strict=True)) <= 10


@pytest.mark.parametrize(("steps", "phi", "least"), [(100, 0.0, 38), (300, 0.5, 38), (2000, 0.9, 38)])
def test_a_run_that_is_two_percent_slower_is_found(steps: int, phi: float, least: int) -> None:
    draw = np.random.default_rng(6)
    a, b = (step_times(steps, 40, phi, 0.02, 1, draw) for _ in "ab")
    assert sum(outcome(x, 1.02 * y) == "worse" for x, y in zip(a, b, strict=True)) >= least
