"""``receipt compare --target``: what each run needed to reach a value."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from .conftest import ROOT, Invoke

NANOGPT = ROOT / "fixtures" / "logs" / "nanogpt"
FIRST, OTHER = NANOGPT / "char-sigint.log", NANOGPT / "char-ok.log"


def compared(invoke: Invoke, *arguments: object) -> dict[str, Any]:
    done = invoke("compare", *arguments, "--json")
    assert done.code in (0, 1), done.stderr
    return dict(json.loads(done.stdout))


def test_a_target_has_the_first_step_that_reaches_it(invoke: Invoke) -> None:
    document = compared(invoke, OTHER, FIRST, "--target", "val_loss=2.7", "--target", "loss=0.1")
    assert document["schema_version"] == "comparison/1.4"
    reached, missed = document["targets"]
    for run, log in zip(reached["runs"], (OTHER, FIRST), strict=True):
        printed = [
            (int(step), float(value)) for step, value in re.findall(r"step (\d+):.* val loss ([\d.]+)", log.read_text("utf-8"))
        ]
        good = [step for step, value in printed if value <= 2.7]
        assert (run["reached"], run["step"]) == (bool(good), good[0] if good else None)
        assert run["best"] == min(value for _, value in printed)
    assert [run["reached"] for run in missed["runs"]] == [False, False]
    assert all(run["step"] is None and run["best"] > 0.1 for run in missed["runs"])


def test_a_target_counts_tokens_and_time(invoke: Invoke) -> None:
    [target] = compared(invoke, OTHER, FIRST, "--target", "loss=2.9")["targets"]
    run = target["runs"][1]
    printed = re.findall(r"iter (\d+): loss ([\d.]+), time ([\d.]+)ms", FIRST.read_text("utf-8"))
    step = next(int(step) for step, loss, _ in printed if float(loss) <= 2.9)
    each = int(re.findall(r"tokens per iteration will be: ([\d,]+)", FIRST.read_text("utf-8"))[0].replace(",", ""))
    assert (run["step"], run["tokens"]) == (step, step * each)
    passed = sum(5 * float(time) / 1000 for number, _, time in printed if 0 < int(number) <= step)  # a record every 5 steps
    assert run["time_s"] == pytest.approx(passed)
    shown = invoke("compare", OTHER, FIRST, "--target", "loss=2.9").stdout.decode()
    assert "loss 2.9" in shown and "held from" in shown
    assert "### loss 2.9" in invoke("compare", OTHER, FIRST, "--target", "loss=2.9", "--markdown", "-").stdout.decode()


def test_a_receipt_answers_whether(invoke: Invoke, tmp_path: Path) -> None:
    receipt = tmp_path / "a.receipt.json"
    assert invoke("parse", FIRST, "-o", receipt).code == 0
    [target] = compared(invoke, receipt, OTHER, "--target", "loss=2.9")["targets"]
    assert (target["runs"][0]["reached"], target["runs"][0]["step"]) == (True, None)


@pytest.mark.parametrize("target", ["nothing=1", "loss", "loss=low", "loss=nan", "step_time_s=1=2", "learning_rate=1"])
def test_a_target_is_a_metric_with_a_direction(invoke: Invoke, target: str) -> None:
    done = invoke("compare", OTHER, FIRST, "--target", target)
    assert (done.code, "is not a target" in done.stderr) == (2, True)
