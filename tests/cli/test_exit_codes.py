"""Every exit code of the contract, through the real entry point in its own process."""

import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from receipt_cli.cli import main as entry
from receipt_cli.errors import ExitCode

pytestmark = pytest.mark.usefixtures("one_engine")

STEP = "iter {0}: loss {1}, time 131.97ms, mfu 29.53%\n"
GOOD = "".join(STEP.format(n, 4 - n / 100) for n in range(0, 50, 10))


def receipt(*arguments: str, stdin: bytes = b"", cwd: Path | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "receipt_cli", *arguments], input=stdin, capture_output=True, timeout=60, cwd=cwd, check=False
    )


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "run.log"
    path.write_text(GOOD, "utf-8")
    return path


def test_0_for_the_receipt_of_a_run(good: Path) -> None:
    done = receipt("parse", "--json", str(good))
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["summary"]["steps"]["record_count"] == 5


def test_0_also_for_the_receipt_of_a_failed_run(tmp_path: Path) -> None:
    log = tmp_path / "oom.log"
    log.write_text(GOOD + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n", "utf-8")
    done = receipt("parse", "--json", str(log))
    assert done.returncode == 0
    assert json.loads(done.stdout)["failure"]["reason"] == "cuda_oom"


def test_1_for_an_unhealthy_run(tmp_path: Path, good: Path) -> None:
    log = tmp_path / "nan.log"
    log.write_text(GOOD + STEP.format(50, "nan"), "utf-8")
    assert receipt("check", str(log)).returncode == 1
    assert receipt("check", str(good)).returncode == 0
    assert receipt("check", "--job-exit", "3", str(good)).returncode == 1


@pytest.fixture
def unread(good: Path, tmp_path: Path) -> Callable[..., Path]:
    """Make a receipt without a recognised step."""

    def make(reason: str | None = None) -> Path:
        document = json.loads(receipt("parse", "--json", str(good)).stdout)
        document["summary"], document["phases"] = None, []
        document["checks"] = dict.fromkeys(document["checks"])
        tail = {"category": "unknown", "line_number": None, "message": None, "log_tail": [], "markers": []}
        document["failure"] = reason and {"reason": reason, **tail}
        path = tmp_path / "unread.receipt.json"
        path.write_text(json.dumps(document), "utf-8")
        assert receipt("schema", "check", str(path)).returncode == 0
        return path

    return make


def test_4_for_a_receipt_in_which_no_step_was_recognised(unread: Callable[..., Path]) -> None:
    for reason in (None, "unknown"):
        done = receipt("check", str(unread(reason)))
        assert (done.returncode, done.stdout[:9]) == (4, b"? unknown")
        assert b"check     cannot judge (exit 4)" in done.stdout
        assert b"no step line was recognised" in done.stderr
        assert b"--allow-unknown" in done.stderr
        assert receipt("check", "--allow-unknown", str(unread(reason))).returncode == 0
        assert receipt("check", "--allow-unknown", "--proven", str(unread(reason))).returncode == 1


def test_1_for_a_failure_in_a_log_that_nobody_reads(unread: Callable[..., Path]) -> None:
    assert receipt("check", str(unread("interrupted"))).returncode == 1
    assert receipt("check", "--allow-unknown", str(unread("interrupted"))).returncode == 1


def test_0_where_steps_were_read_and_nothing_tells_the_end(good: Path) -> None:
    done = receipt("check", str(good))
    assert (done.returncode, done.stdout[:9]) == (0, b"? unknown")
    assert b"check     yes (exit 0): unknown" in done.stdout
    assert receipt("check", "--proven", str(good)).returncode == 1
    assert receipt("check", "--job-exit", "0", str(good)).stdout.endswith(b"yes (exit 0): finished\n")


def test_1_for_a_log_that_stops_before_its_run_ends(tmp_path: Path) -> None:
    log = tmp_path / "cut.log"
    log.write_text("max_iters = 500\n" + GOOD, "utf-8")
    for command in ("check", "ci"):
        done = receipt(command, str(log))
        assert (done.returncode, b"cut off" in done.stdout) == (1, True)
        assert receipt(command, "--allow-truncated", str(log)).returncode == 0
    log.write_text("max_iters = 500\n" + GOOD + STEP.format(50, "nan"), "utf-8")
    assert receipt("check", "--allow-truncated", str(log)).returncode == 1, "that allows nothing else"


def test_1_for_a_run_that_failed_though_no_check_is_false(tmp_path: Path) -> None:
    log = tmp_path / "actor.log"
    log.write_text(GOOD + "ray.exceptions.ActorDiedError: The actor died unexpectedly before finishing this task.\n", "utf-8")
    done = receipt("check", "--json", str(log))
    assert (done.returncode, json.loads(done.stdout)["reason"]) == (1, "child_failed")
    assert json.loads(done.stdout)["checks"]["zero_exit_code"] is None
    assert receipt("check", "--allow-truncated", str(log)).returncode == 1


def test_1_for_an_invalid_document(tmp_path: Path, good: Path) -> None:
    document = json.loads(receipt("parse", "--json", str(good)).stdout)
    document["checks"]["has_steps"] = False
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps(document), "utf-8")
    done = receipt("schema", "check", str(bad))
    assert done.returncode == 1
    assert b"has_steps" in done.stdout
    assert receipt("show", str(bad)).returncode == 1


def test_1_for_a_definition_with_findings(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(
        "grammar: mine\nversion: 1\ntitle: t\ntrainer: mine\nrules:\n  a:\n    event: step\n"
        "    literal: 'loss'\n    pattern: 'loss (?P<loss>\\d+)'\n    fields: {loss: {}}\n",
        "utf-8",
    )
    done = receipt("grammar", "lint", str(tmp_path / "mine.yaml"))
    assert done.returncode == 1
    assert b"has no sample" in done.stdout


def test_1_for_a_near_miss_when_strict(tmp_path: Path, good: Path) -> None:
    log = tmp_path / "drift.log"
    log.write_text(GOOD + "iter 50: loss 3.1; time 1ms\n", "utf-8")
    assert receipt("parse", "--strict", str(log)).returncode == 1
    assert receipt("parse", "--strict", str(good)).returncode == 0


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("parse",),
        ("parse", "--no-such-option", "x"),
        ("nonsense",),
        ("parse", "-g", "!!", "x.log"),
        ("parse", "--attach", "x", "x.log"),
    ],
)
def test_2_for_wrong_usage(arguments: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "x.log").write_text(GOOD, "utf-8")
    assert receipt(*arguments, cwd=tmp_path).returncode == 2


def test_3_for_a_log_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "empty.log").touch()
    (tmp_path / "empty.log.gz").write_bytes(gzip.compress(b""))
    for name in ("missing.log", "empty.log", "empty.log.gz", ".", "missing/under.log", "nul\0.log"[:3]):
        done = receipt("parse", str(tmp_path / name))
        assert done.returncode == 3, (name, done.stderr)
        assert done.stderr.startswith(b"receipt: error: ")
        assert done.stdout == b""
    assert receipt("parse", "-", stdin=b"").returncode == 3
    assert receipt("schema", "check", str(tmp_path / "missing.json")).returncode == 3
    assert receipt("show", str(tmp_path / "empty.log")).returncode == 3


def test_4_for_a_log_that_nobody_recognises(tmp_path: Path) -> None:
    log = tmp_path / "other.log"
    log.write_text("hello\nsweep 3 cost=1.25 loss=0.5\n", "utf-8")
    done = receipt("parse", "--json", str(log))
    assert done.returncode == 4
    assert b"loss=0.5" in done.stderr
    document = json.loads(done.stdout)
    assert document["summary"] is None
    assert document["checks"]["has_steps"] is None
    assert document["failure"] is None
    assert receipt("grammar", "explain", str(log)).returncode == 4


@pytest.mark.parametrize(
    ("end", "told"),
    [
        ("*** JOB 91 ON node4 CANCELLED AT 2026-06-04T07:20:14 DUE TO TIME LIMIT ***", b"time_limit at line 3: *** JOB 91"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.", b"cuda_oom at line 3: torch.OutOf"),
        ("ValueError: token hf_" + "Ab3" * 11 + " was refused", b"traceback at line 3: ValueError: token [redacted"),
    ],
)
def test_4_names_the_failure_first(end: str, told: bytes, tmp_path: Path) -> None:
    log = tmp_path / "other.log"
    log.write_text(f"hello\nsweep 3 of some\n{end}\n", "utf-8")
    done = receipt("parse", str(log))
    assert done.returncode == 4
    first = next(line for line in done.stderr.splitlines() if line.startswith(b"receipt: error: "))
    assert first.startswith(b"receipt: error: " + told)
    assert b"no grammar recognises this log" in first
    assert b"Ab3Ab3" not in done.stderr


def test_4_for_a_log_that_two_grammars_explain_equally_well(tmp_path: Path) -> None:
    log = tmp_path / "two.log"
    log.write_text(STEP.format(1, 2.5) + "completed step: 1, seconds: 1.074, TFLOP/s: 168.099, loss: 6.816\n", "utf-8")
    done = receipt("parse", str(log))
    assert done.returncode == 4
    assert b"equally well" in done.stderr
    assert receipt("parse", "-g", "nanogpt", str(log)).returncode == 0


def test_5_for_a_broken_or_unknown_definition(tmp_path: Path, good: Path) -> None:
    (tmp_path / "broken.yaml").write_text("grammar: [", "utf-8")
    assert receipt("parse", "-g", str(tmp_path / "broken.yaml"), str(good)).returncode == 5
    assert receipt("parse", "-g", "no-such-grammar", str(good)).returncode == 5
    assert receipt("parse", "-g", "nanogpt@v999", str(good)).returncode == 5
    assert receipt("schema", "show", "receipt/9.0").returncode == 5
    (tmp_path / "newer.json").write_text('{"schema_version": "receipt/9.0"}', "utf-8")
    assert receipt("schema", "check", str(tmp_path / "newer.json")).returncode == 5


def test_6_for_a_result_that_cannot_be_written(tmp_path: Path, good: Path) -> None:
    done = receipt("parse", "-o", str(tmp_path / "no" / "such" / "folder.json"), str(good))
    assert done.returncode == 6
    assert receipt("parse", "-o", str(tmp_path), str(good)).returncode == 6
    assert [p.name for p in tmp_path.iterdir()] == ["run.log"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_6_for_a_full_disk_behind_stdout(good: Path) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "receipt_cli", "parse", "--json", str(good)], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 6, done.stderr


def test_69_for_a_cluster_that_does_not_start(tmp_path: Path, good: Path) -> None:
    """Ray raises ``Exception`` itself there (ray/_private/node.py); a stand-in does the same."""
    error = "The current node timed out during startup. This could happen because some of the raylet failed"
    (tmp_path / "ray.py").write_text(f"def init(**_):\n    raise Exception({error!r})\n")
    done = receipt("store", "build", str(good), "--store", str(tmp_path / "store"), "--engine", "ray", cwd=tmp_path)
    assert done.returncode == 69
    shown = b"receipt: error: Ray does not start on this machine\n  why: The current node timed out during startup\n"
    assert done.stderr.startswith(shown)
    assert b"--engine local" in done.stderr


def test_70_for_a_bug_of_ours(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], good: Path) -> None:
    monkeypatch.setattr("receipt_cli.cli.commands.parse.produce", lambda request: 1 / 0)
    monkeypatch.setattr(sys, "argv", ["receipt", "parse", str(good)])
    with pytest.raises(SystemExit) as stopped:
        entry.main()
    assert stopped.value.code == ExitCode.BUG
    assert "internal error: ZeroDivisionError" in capsys.readouterr().err


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_130_when_interrupted() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "receipt_cli", "parse", "-"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdin is not None
    process.stdin.write(GOOD.encode() * (1 + (1 << 20) // len(GOOD)))  # more than a pipe holds: it reads when this returns
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=120)
    assert process.returncode == 130, stderr


def test_a_reader_that_goes_away_is_no_error(good: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "receipt_cli", "parse", "--json", str(good)],
            stdout=writer,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(writer)
    assert done.returncode == 0
    assert done.stderr == b""
