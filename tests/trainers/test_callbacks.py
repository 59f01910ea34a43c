"""The callbacks of ``receipt_cli.emit`` in the real libraries: what the receipt of each run contains.

They need torch, Transformers, Lightning, Accelerate and Keras in the interpreter that ``TRAINER_PYTHON`` names.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from runpy import run_path

import pytest

HERE = Path(__file__).resolve().parent
PYTHON = os.environ.get("TRAINER_PYTHON", sys.executable)
ORDER = run_path(str(HERE / "protocol.py"))["ORDER"]
ALWAYS = {"loss", "learning_rate", "host_memory_bytes", "val_loss"}
RUNS = {  # library: its module, step records, planned steps, evaluations, checkpoints, what is read besides
    "hugging_face": ("transformers", 20, 40, 2, 2, {"grad_norm", "tokens_per_s", "step_time_s", "eval_duration_s"}),
    "lightning": ("lightning", 9, 40, 4, 2, {"grad_norm", "step_time_s", "eval_duration_s"}),
    "accelerate": ("accelerate", 20, 40, 2, 0, {"grad_norm"}),
    "keras": ("keras", 20, 80, 4, 0, {"step_time_s", "eval_duration_s", "train_accuracy", "val_accuracy"}),
    "torch": ("torch", 21, 40, 2, 2, {"grad_norm", "tokens_per_s", "step_time_s"}),
}

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("library", RUNS)
def test_a_real_run_is_read(tmp_path: Path, library: str) -> None:
    module, records, planned, evaluations, checkpoints, besides = RUNS[library]
    asked = [PYTHON, "-c", f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"]
    if subprocess.run(asked, capture_output=True, check=False).returncode != 0:
        pytest.skip(f"{PYTHON} has no {module}: make test-trainers")
    log, events, receipt = (tmp_path / name for name in ("run.log", "events", "run.receipt.json"))
    with log.open("wb") as out:
        script = [PYTHON, str(HERE / f"emit_{library}.py"), str(events)]
        env = {**os.environ, "PYTHONPATH": str(HERE.parents[1])}
        done = subprocess.run(script, stdout=out, stderr=subprocess.STDOUT, cwd=tmp_path, env=env, timeout=300, check=False)
    assert done.returncode == 0, log.read_text("utf-8", "replace")
    assert re.fullmatch(ORDER[library], " ".join(events.read_text().split()))
    parse = [sys.executable, "-m", "receipt_cli", "parse", str(log), "-o", str(receipt)]
    subprocess.run(parse, check=True, capture_output=True, timeout=60)
    document = json.loads(receipt.read_bytes())
    assert document["derivation"]["grammars"][0]["id"] == "receipt-emit"
    steps, metrics = document["summary"]["steps"], document["summary"]["metrics"]
    assert (steps["record_count"], steps["last"], steps["planned"]) == (records, planned, planned)
    assert metrics.keys() >= ALWAYS | besides
    assert document["checks"]["completed"] is True
    printed = log.read_bytes()
    assert printed.count(b"[receipt] eval step=") == evaluations
    assert printed.count(b"[receipt] checkpoint step=") == checkpoints
    assert b"was not printed" not in printed
