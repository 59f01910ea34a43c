"""A new trainer takes one new file in ``grammars/``: nothing else is edited, registered or built."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINE = "Fancy fit:  10%|#  | {n}/40 [00:10<01:30,  1.20it/s, loss={loss}]"
GRAMMAR = r"""
grammar: fancy
version: 1
title: A trainer that nobody knew
upstream: https://example.org/fancy
trainer: fancy
rules:
  train_step:
    event: step
    redraw: true
    literal: 'Fancy fit: '
    pattern: >-
      Fancy fit: [^|]{1,8}+\|[^|]{1,40}+\| (?P<step>\d++)/(?P<planned_steps>\d++)
      \[[^],]{1,30}+, [^],]{1,30}+, loss=(?P<loss>[\d.]++)\]
    fields: {step: {type: integer}, planned_steps: {type: integer}, loss: {type: number}}
    samples:
      - line: 'Fancy fit:  25%|##   | 10/40 [00:10<01:30,  1.20it/s, loss=3.5]'
        fields: {step: 10, planned_steps: 40, loss: 3.5}
"""


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the program with one more file."""
    root = tmp_path_factory.mktemp("installation")
    for folder in ("receipt_cli", "grammars", "schemas"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", root)
    (root / "grammars" / "fancy").mkdir()
    (root / "grammars" / "fancy" / "v1.yaml").write_text(GRAMMAR, "utf-8")
    return root


def receipt(installation: Path, *arguments: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(installation)}
    command = [sys.executable, "-m", "receipt_cli", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment, cwd=installation)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_log_of_the_new_trainer_is_read(installation: Path) -> None:
    log = installation / "run.log"
    log.write_text("".join(LINE.format(n=n, loss=4 - n / 10) + "\r" for n in range(1, 11)) + "\n", "utf-8")
    document = json.loads(receipt(installation, "parse", "--json", str(log)))
    assert [g["id"] for g in document["derivation"]["grammars"]] == ["fancy"]  # though its bars are of a common format
    assert document["summary"]["steps"]["record_count"] == 10
    assert document["summary"]["metrics"]["loss"]["last"] == 3.0


def test_the_new_trainer_is_listed_and_proves_itself(installation: Path) -> None:
    assert "fancy@v1" in receipt(installation, "grammar", "list")
    receipt(installation, "grammar", "lint", str(installation / "grammars" / "fancy" / "v1.yaml"))
