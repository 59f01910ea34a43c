"""``receipt run`` beside the same command alone: outcome, output and files are the same, byte for byte."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
RECEIPT = [sys.executable, "-m", "receipt_cli"]
ENV = {**os.environ, "PYTHONPATH": str(ROOT)}
LIMIT = 1 << 16


def limited() -> None:
    """Let no file grow beyond ``LIMIT``, as a full disk does."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, LIMIT))


CASES: dict[str, tuple[str, Callable[[], None] | None]] = {
    "success": ("echo out; echo err >&2; echo x > file", None),
    "an exit code": ("echo out; exit 7", None),
    "killed": ("echo out; kill -9 $$", None),
    "terminated": ("echo out; kill -15 $$; sleep 9", None),
    "no end of line": ("printf 'a\\r\\nb\\000c\\377'", None),
    "a background child": ("(sleep 5; echo late; echo $? > file) & echo early", None),
    "three hundred children": ("for n in $(seq 300); do (sleep 1; echo child) & done; wait; echo x > file", None),
    "a child that is killed": ("sh -c 'kill -9 $$'; echo $?", None),
    "a full disk": ("seq 60000; seq 60000 > file; echo $?", limited),
    "a dead reader": ("(seq 90000; echo $? > file) | head -n 3; echo done", None),
}


def outcome(folder: Path, command: list[str], before: Callable[[], None] | None) -> tuple[int, bytes, bytes, dict[str, bytes]]:
    """Return exit status, both streams and the files of a command that runs in ``folder``, to the end of its output."""
    folder.mkdir()
    done = subprocess.run(command, cwd=folder, env=ENV, capture_output=True, timeout=120, check=False, preexec_fn=before)
    files = {path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith("job.")}
    return done.returncode, done.stdout, done.stderr, files


@pytest.mark.parametrize("case", CASES)
def test_nothing_differs(case: str, tmp_path: Path) -> None:
    script, before = CASES[case]
    command = ["sh", "-c", script]
    alone = outcome(tmp_path / "alone", command, before)
    wrapped = outcome(tmp_path / "wrapped", [*RECEIPT, "run", "-q", "--log", "job.log", "--", *command], before)
    assert wrapped[:2] == alone[:2]
    assert wrapped[2].startswith(alone[2])  # our notes come behind what the command says
    assert wrapped[3] == alone[3]
    run = json.loads((tmp_path / "wrapped" / "job.receipt.json").read_bytes())["run"]
    assert run["exit_code"] == alone[0]
    assert run["log_complete"] is (case != "a full disk")
    log = (tmp_path / "wrapped" / "job.log").read_bytes()
    if case == "a full disk":
        assert log == alone[1][: len(log)]
        assert run["log_loss"]["first_byte"] == len(log) == LIMIT
    elif case == "a background child":
        assert log.startswith(b"early\nreceipt run: a process that the command left behind holds its output open")
    else:  # two streams that are read within one pause have no order
        assert log in (alone[1] + alone[2], alone[2] + alone[1])


TRAINING = "; ".join(
    (
        "import time",
        "line = 'iter %d: loss %.4f, time 5.00ms, mfu 1.00%%'",
        "[(print(line % (n, 4 - n / 100), flush=True), time.sleep(0.02)) for n in range(80)]",
        "open('end', 'w').write('over')",
    )
)


def receipt_of(folder: Path) -> dict[str, Any]:
    """Return the receipt of the log and the header that ``receipt run`` left behind, and of the exit code, which nobody saw."""
    command = [*RECEIPT, "parse", "job.log", "--header", "job.header.json", "--exit-code", "0", "--json"]
    document = json.loads(subprocess.run(command, cwd=folder, env=ENV, capture_output=True, timeout=60, check=True).stdout)
    assert isinstance(document, dict)
    return document


def test_ten_kills_at_random_leave_the_training_alive_and_its_log_whole(tmp_path: Path) -> None:
    draw = random.Random(9)
    receipts = []
    for number in range(10):
        folder = tmp_path / str(number)
        folder.mkdir()
        process = subprocess.Popen(
            [*RECEIPT, "run", "--log", "job.log", "--", sys.executable, "-c", TRAINING],
            cwd=folder, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        assert process.stdout is not None
        first = os.read(process.stdout.fileno(), 1 << 16)
        time.sleep(draw.uniform(0, 1.2))
        process.kill()
        rest = process.communicate(timeout=60)[0]  # to the end of the output
        assert process.returncode == -signal.SIGKILL
        assert (folder / "end").read_text() == "over"
        assert (folder / "job.log").read_bytes() == first + rest
        receipts.append(receipt_of(folder))
    undisturbed = tmp_path / "undisturbed"
    undisturbed.mkdir()
    command = [*RECEIPT, "run", "-q", "--log", "job.log", "--", sys.executable, "-c", TRAINING]
    assert subprocess.run(command, cwd=undisturbed, env=ENV, capture_output=True, timeout=60, check=False).returncode == 0
    whole = json.loads((undisturbed / "job.receipt.json").read_bytes())
    for found in receipts:
        assert found["derivation"]["log"] == whole["derivation"]["log"]
        for part in ("summary", "phases", "failure", "checks"):
            assert found[part] == whole[part]
