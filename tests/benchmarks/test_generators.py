"""Generated logs are read exactly as their generators know them: by the program, and by the loops it is measured against."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.figures import differences, load_facts, receipt_figures
from benchmarks.inputs import write
from receipt_cli.receipts.production import Request, produce

TRAINERS = {
    "dense": "megatron-lm",
    "sparse": "megatron-lm",
    "hf": "hf-trainer",
    "bars": "tqdm",
    "mllog": "mlperf",
    "ranks": "torchtitan",
    "timers": "megatron-lm",
    "evaluations": "hf-trainer",
    "fleet": "pytorch-examples",
    "frames": "hf-trainer",
    "tables": "spacy",
    "restarts": "megatron-lm",
}
LOOPS = {"dense": "megatron", "sparse": "megatron", "hf": "huggingface", "bars": "bars", "mllog": "mllog", "ranks": "ranks"}
SIZE = 150_000


@pytest.fixture(params=TRAINERS)
def generated(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, Path]:
    log = tmp_path / "generated.log"
    write(request.param, SIZE, log)
    return request.param, log


def test_program_and_loop_read_what_was_written(generated: tuple[str, Path], root: Path) -> None:
    name, log = generated
    facts = load_facts(log)
    assert SIZE <= log.stat().st_size < 8 * SIZE
    if name in LOOPS:
        command = [sys.executable, "-m", f"benchmarks.loops.{LOOPS[name]}", str(log)]
        done = subprocess.run(command, capture_output=True, check=True, env={**os.environ, "PYTHONPATH": str(root)})
        assert differences(facts, json.loads(done.stdout), exact=False) == []
    receipt = produce(Request(str(log)))
    assert receipt.document["header"]["software"]["trainer"] == TRAINERS[name]
    assert differences(facts, receipt_figures(receipt.document), exact=True) == []
