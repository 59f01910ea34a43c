"""Every exit code of the contract."""

import gzip
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.errors import ExitCode
from tests.cli.conftest import Invoke

STEP = "iter {0}: loss {1}, time 131.97ms, mfu 29.53%\n"
GOOD = "".join(STEP.format(n, 4 - n / 100) for n in range(0, 50, 10))
PLAN = "max_iters = 500\n"
OTHER = "hello\nsweep 3 cost=1.25 loss=0.5\n"
FILES = {
    "good.log": GOOD,
    "oom.log": GOOD + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n",
    "nan.log": GOOD + STEP.format(50, "nan"),
    "cut.log": PLAN + GOOD,
    "cut-nan.log": PLAN + GOOD + STEP.format(50, "nan"),
    "actor.log": GOOD + "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n",
    "drift.log": GOOD + "iter 50: loss 3.1; time 1ms\n",
    "other.log": OTHER,
    "limit.log": OTHER + "*** JOB 91 ON node4 CANCELLED AT 2026-06-04T07:20:14 DUE TO TIME LIMIT ***\n",
    "secret.log": OTHER + "ValueError: token hf_" + "Ab3" * 11 + " was refused\n",
    "two.log": STEP.format(1, 2.5) + "completed step: 1, seconds: 1.074, TFLOP/s: 168.099, loss: 6.816\n",
    "empty.log": "",
    "broken.yaml": "grammar: [",
    "mine.yaml": "grammar: mine\nversion: 1\ntitle: t\ntrainer: mine\nrules:\n  a:\n    event: step\n    literal: 'loss'\n"
    "    pattern: 'loss (?P<loss>\\d+)'\n    fields: {loss: {}}\n",
    "newer.json": '{"schema_version": "receipt/9.0"}',
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of logs, definitions and receipts, which the first test fills."""
    return tmp_path_factory.mktemp("codes")


@pytest.fixture
def folder(made: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(made)
    if not any(made.iterdir()):
        for name, text in FILES.items():
            (made / name).write_text(text, "utf-8")
        (made / "empty.log.gz").write_bytes(gzip.compress(b""))
        document = invoke("parse", "--json", "good.log").document
        wrong = {**document, "checks": {**document["checks"], "has_steps": False}}
        (made / "bad.json").write_text(json.dumps(wrong), "utf-8")
        tail = {"category": "unknown", "line_number": None, "message": None, "log_tail": [], "markers": []}
        document |= {"summary": None, "phases": [], "checks": dict.fromkeys(document["checks"])}
        for reason in ("none", "unknown", "interrupted"):  # receipts without a recognised step
            document["failure"] = None if reason == "none" else {"reason": reason, **tail}
            (made / f"{reason}.json").write_text(json.dumps(document), "utf-8")
            assert invoke("schema", "check", f"{reason}.json").code == 0
    return made


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        ("parse good.log --json", 0, '"record_count": 5'),
        ("parse oom.log --json", 0, '"reason": "cuda_oom"'),  # the receipt of a failed run
        ("check good.log", 0, "? unknown"),  # steps were read, and nothing tells the end
        ("check good.log", 0, "yes (exit 0): unknown"),
        ("check good.log --job-exit 0", 0, "yes (exit 0): finished"),
        ("check good.log --proven", 1, ""),
        ("check good.log --job-exit 3", 1, ""),
        ("check nan.log", 1, ""),
        ("check none.json", 4, "? unknown"),
        ("check none.json", 4, "check     cannot judge (exit 4)"),
        ("check none.json", 4, "no step line was recognised"),
        ("check unknown.json", 4, "--allow-unknown"),
        ("check unknown.json --allow-unknown", 0, ""),
        ("check none.json --allow-unknown", 0, ""),
        ("check none.json --allow-unknown --proven", 1, ""),
        ("check interrupted.json", 1, ""),  # a failure in a log that nobody reads
        ("check interrupted.json --allow-unknown", 1, ""),
        ("check cut.log", 1, "cut off"),
        ("ci cut.log", 1, "cut off"),
        ("check cut.log --allow-truncated", 0, ""),
        ("ci cut.log --allow-truncated", 0, ""),
        ("check cut-nan.log --allow-truncated", 1, ""),  # that allows nothing else
        ("check actor.log --json", 1, '"reason": "child_failed"'),  # it failed though no check is false
        ("check actor.log --json", 1, '"zero_exit_code": null'),
        ("check actor.log --allow-truncated", 1, ""),
        ("schema check bad.json", 1, "has_steps"),
        ("show bad.json", 1, ""),
        ("grammar lint mine.yaml", 1, "has no sample"),
        ("parse drift.log --strict", 1, ""),
        ("parse good.log --strict", 0, ""),
        ("parse --no-such-option x", 2, ""),
        ("nonsense", 2, ""),
        ("parse -g !! good.log", 2, ""),
        ("parse --attach x good.log", 2, ""),
        ("parse missing.log", 3, "receipt: error: "),
        ("parse missing/under.log", 3, "receipt: error: "),
        ("parse empty.log.gz", 3, "receipt: error: "),
        ("parse -", 3, "receipt: error: "),
        ("schema check missing.json", 3, ""),
        ("show empty.log", 3, ""),
        ("parse other.log --json", 4, '"has_steps": null'),
        ("parse other.log --json", 4, '"summary": null'),
        ("parse other.log --json", 4, '"failure": null'),
        ("parse other.log", 4, "loss=0.5"),
        ("grammar explain other.log", 4, ""),
        ("parse two.log", 4, "equally well"),
        ("parse two.log -g nanogpt", 0, ""),
        ("parse limit.log", 4, "time_limit at line 3: *** JOB 91"),  # the failure comes first
        ("parse secret.log", 4, "traceback at line 3: ValueError: token [redacted"),
        ("parse good.log -g broken.yaml", 5, ""),
        ("parse good.log -g no-such-grammar", 5, ""),
        ("parse good.log -g nanogpt@v999", 5, ""),
        ("schema show receipt/9.0", 5, ""),
        ("schema check newer.json", 5, ""),
        ("parse good.log -o no/such/folder.json", 6, ""),
        ("parse good.log -o nowhere/r.json", 6, ""),
    ],
)  # fmt: skip
def test_each_code(folder: Path, invoke: Invoke, line: str, code: int, said: str) -> None:
    done = invoke(*line.split())
    assert done.code == code, done.stderr
    assert said in done.stdout.decode() + done.stderr
    assert "Ab3Ab3" not in done.stderr
    if line.startswith("parse ") and code == ExitCode.INPUT:
        assert done.stdout == b""
    if line in ("parse limit.log", "parse secret.log"):
        first = next(text for text in done.stderr.splitlines() if text.startswith("receipt: error: "))
        assert first.startswith(f"receipt: error: {said}") and "no grammar recognises this log" in first


def receipt(*arguments: str | Path, **more: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run([sys.executable, "-m", "receipt_cli", *arguments], stderr=subprocess.PIPE, check=False, **more)


def test_69_for_a_cluster_that_does_not_start(tmp_path: Path, folder: Path) -> None:
    """Ray raises ``Exception`` itself there (ray/_private/node.py); a stand-in does the same."""
    error = "The current node timed out during startup. This could happen because some of the raylet failed"
    (tmp_path / "ray.py").write_text(f"def init(**_):\n    raise Exception({error!r})\n")
    done = receipt("store", "build", folder / "good.log", "--store", tmp_path / "store", "--engine", "ray", cwd=tmp_path)
    assert done.returncode == 69
    shown = b"receipt: error: Ray does not start on this machine\n  why: The current node timed out during startup\n"
    assert done.stderr.startswith(shown)
    assert b"--engine local" in done.stderr


def test_70_for_a_bug_of_ours(folder: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("receipt_cli.cli.commands.parse.produce", lambda request: 1 / 0)
    done = invoke("parse", "good.log")
    assert (done.code, "internal error: ZeroDivisionError" in done.stderr) == (ExitCode.BUG, True)


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_130_when_interrupted() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "receipt_cli", "parse", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdin.write(GOOD.encode() * (1 + (1 << 20) // len(GOOD)))  # more than a pipe holds: it reads when this returns
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 130, stderr


def test_a_reader_that_goes_away_is_no_error(folder: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = receipt("parse", "--json", "good.log", stdout=writer)
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")
