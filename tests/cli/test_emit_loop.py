"""A plain loop that uses ``receipt_cli.emit``: what it prints is read back, every value exactly."""

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke

ROOT = Path(__file__).resolve().parents[2]
LOOP = ROOT / "tests" / "runs" / "emit_loop.py"


def run(folder: Path, *options: str) -> tuple[int, Path]:
    """Run the loop; return its exit code and its log."""
    log = folder / "loop.log"
    with log.open("wb") as file:
        done = subprocess.run(
            [sys.executable, str(LOOP), *options],
            stdout=file,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            timeout=120,
            check=False,
        )
    return done.returncode, log


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("loop")
    kept, evaluation = str(folder / "values.json"), str(folder / "evaluation.json")
    code, _ = run(folder, "--steps", "25", "--values", kept, "--evaluation", evaluation)
    assert code == 0
    return folder


def test_every_value_is_read_exactly(finished: Path, invoke: Invoke) -> None:
    rows = list(csv.DictReader(io.StringIO(invoke("export", finished / "loop.log", "--to", "csv").stdout.decode())))
    kept = json.loads((finished / "values.json").read_text("utf-8"))
    steps = {int(row["step"]): row for row in rows if row["loss"]}
    assert list(steps) == [values["step"] for values in kept["step"]]
    for values in kept["step"]:
        row = steps[values["step"]]
        for name, value in values.items():
            printed = row["other/weights/first"] if name == "weights/first" else row[name]
            assert float(printed) == value, name
    for name in ("val_loss", "eval_duration_s"):
        assert [float(row[name]) for row in rows if row[name]] == [values[name] for values in kept["eval"]]


def test_the_receipt_of_the_loop(finished: Path, invoke: Invoke) -> None:
    done = invoke("parse", finished / "loop.log", "--json")
    assert done.code == 0, done.stderr
    document = done.document
    assert [grammar["id"] for grammar in document["derivation"]["grammars"]] == ["receipt-emit"]
    assert document["derivation"]["problems"]["count"] == 0
    assert document["derivation"]["lines"]["unmatched"] == 1  # the script's own line about goodput
    assert document["summary"]["steps"] | {"superseded_count": 0} == {
        "first": 0, "last": 24, "planned": 25, "record_count": 25, "restart_count": 0, "superseded_count": 0,
        "first_line": 3, "last_line": 30,
    }  # fmt: skip
    assert document["header"]["seeds"] == {"seed": 1337}
    assert document["header"]["model"] == {"architecture": "linear model", "parameter_count": 3}
    assert document["checks"]["completed"] is True
    assert document["goodput"]["evidence"].startswith("log_timestamps")


def test_its_evaluation_is_valid(finished: Path, invoke: Invoke) -> None:
    assert invoke("schema", "check", finished / "evaluation.json").code == 0
    document = json.loads((finished / "evaluation.json").read_text("utf-8"))
    kept = json.loads((finished / "values.json").read_text("utf-8"))["step"]
    assert document["series"]["metrics"]["loss"] == [values["loss"] for values in kept]
    assert document["summary"]["step_count"] == 25
    assert b"emit-loop" in invoke("show", finished / "evaluation.json").stdout


def test_a_loop_that_raises_prints_no_end(tmp_path: Path, invoke: Invoke) -> None:
    code, log = run(tmp_path, "--steps", "25", "--fail-at", "12")
    assert code == 1
    document = invoke("parse", log, "--json", "--job-exit", "1").document
    assert document["summary"]["steps"]["last"] == 11
    assert document["checks"]["completed"] is not True
    assert document["failure"]["reason"] == "traceback"
