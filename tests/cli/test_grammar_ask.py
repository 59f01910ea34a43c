"""``receipt grammar learn --ask``: the questions of a draft on a terminal."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke

pty = pytest.importorskip("pty")  # POSIX

ROOT = Path(__file__).resolve().parents[2]
LINES = "".join(f"zug={n} guete={4 - n / 10:.1f} gang={n}.5\n" for n in range(1, 9))


def test_answers_of_the_terminal_settle_the_draft(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text(LINES, "utf-8")
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "receipt_cli", "grammar", "learn", "run.log", "--ask", "-o", "own.yaml"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=tmp_path, stdin=follower, stderr=subprocess.PIPE, env=env) as job:
        os.close(follower)
        # the step and the loss by the numbers of their answers, the time in words of our own
        os.write(leader, b"1\n1\ngang=time:ms\n")
        _, told = job.communicate(timeout=60)
    os.close(leader)
    assert job.returncode == 0, told
    assert b"'zug' (1, 2, 3) rises; is it the step?" in told and b"1) zug=step  2) zug=skip" in told
    text = (tmp_path / "own.yaml").read_text("utf-8")
    assert "loss: {type: number}" in text and "step_time_s: {type: number, printed_in: ms}" in text
    assert "?" not in [line.split("  ")[-1][:1] for line in text.splitlines() if line.startswith("#  ")]


def test_without_a_terminal_it_names_the_other_way(tmp_path: Path, process: Invoke) -> None:
    (tmp_path / "run.log").write_text(LINES, "utf-8")
    done = process("grammar", "learn", tmp_path / "run.log", "--ask", stdin=subprocess.DEVNULL)
    assert done.code == 2 and "--ask needs a terminal" in done.stderr and "--answer NAME=ROLE" in done.stderr
