"""``receipt run`` beside the same command alone: outcome, output and files are the same, byte for byte."""

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

from tests.cli.conftest import Invoke

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
    "the largest exit code": ("echo out; exit 255", None),
    "an exit code of no program": ("echo out; exit 126", None),
    "killed": ("echo out; kill -9 $$", None),
    "terminated": ("echo out; kill -15 $$; sleep 9", None),
    "interrupted": ("echo out; kill -INT $$; sleep 9", None),
    "hung up": ("echo out; kill -HUP $$; sleep 9", None),
    "a broken program": ("echo out; ulimit -c 0; kill -SEGV $$; sleep 9", None),
    "no end of line": ("printf 'a\\r\\nb\\000c\\377'", None),
    "a megabyte of any bytes": ("seq 150000; printf '\\001\\377no end'", None),
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


OF_THE_WRAPPER = ("finished_at", "exit_code", "wall_time_s", "peak_rss_bytes")
"""Fields of ``run`` that nobody but ``receipt run`` sees."""


def receipt(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*RECEIPT, *words], cwd=folder, env=ENV, capture_output=True, timeout=60, check=False, text=True)


def wrapped(folder: Path, *command: str) -> subprocess.Popen[bytes]:
    folder.mkdir()
    return subprocess.Popen(
        [*RECEIPT, "run", "--name", "a run", "--log", "job.log", "--", *command],
        cwd=folder, env=ENV, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_bytes())


def without_times(document: dict[str, Any]) -> list[Any]:
    """Return what a receipt says of steps and failure, without what depends on when lines came."""
    summary = {name: value for name, value in document["summary"].items() if name not in ("time", "step_times", "realised")}
    return [summary, document["failure"]]


def test_ten_kills_at_random_leave_the_training_alive_its_log_whole_and_a_receipt_to_recover(
    tmp_path: Path, invoke: Invoke
) -> None:
    draw = random.Random(9)
    recovered = []
    for number in range(10):
        folder = tmp_path / str(number)
        process = wrapped(folder, sys.executable, "-c", TRAINING)
        first = os.read(process.stdout.fileno(), 1 << 16)
        time.sleep(draw.uniform(0, 1.2))
        process.kill()
        rest = process.communicate(timeout=60)[0]  # to the end of the output
        assert process.returncode == -signal.SIGKILL
        assert (folder / "end").read_text() == "over"
        assert (folder / "job.log").read_bytes() == first + rest
        while (done := receipt(folder, "run", "--recover", "job.log")).returncode == 2:
            assert "the job is not over" in done.stderr  # whoever copies the output still writes down how it ended
            time.sleep(0.1)
        assert done.returncode == 0, done.stderr
        assert "exit code, wall time and peak memory are unknown" in done.stderr
        assert not (folder / "job.running.json").exists()
        recovered.append(read(folder / "job.receipt.json"))
        assert invoke("schema", "check", folder / "job.receipt.json").code == 0
        assert invoke("verify", folder / "job.receipt.json", folder / "job.log").code == 0
    undisturbed = tmp_path / "undisturbed"
    undisturbed.mkdir()
    command = ["run", "-q", "--name", "a run", "--log", "job.log", "--", sys.executable, "-c", TRAINING]
    assert receipt(undisturbed, *command).returncode == 0
    whole = read(undisturbed / "job.receipt.json")
    for found in recovered:
        assert found["run"]["recovered"] is found["run"]["log_complete"] is True
        assert [found["run"][name] for name in OF_THE_WRAPPER] == [None] * len(OF_THE_WRAPPER)
        assert found["run"]["started_at"] is not None
        assert found["header"].keys() == whole["header"].keys()
        assert found["header"]["software"] == whole["header"]["software"]
        assert found["derivation"]["log"] == whole["derivation"]["log"]
        assert without_times(found) == without_times(whole)
        unknown = dict.fromkeys(("zero_exit_code", "completed", "no_oom"))
        assert found["checks"] == {**whole["checks"], **unknown}


def test_a_job_that_is_not_over_is_not_recovered(tmp_path: Path) -> None:
    process = wrapped(tmp_path / "a", "sh", "-c", "mkfifo end; echo begun; cat end; echo over")
    folder = tmp_path / "a"
    assert process.stdout.readline() == b"begun\n"
    note = read(folder / "job.running.json")
    assert (note["pid"], note["header"], note["command"]) == (
        process.pid,
        "job.header.json",
        "sh -c 'mkfifo end; echo begun; cat end; echo over'",
    )
    done = receipt(folder, "run", "--recover", "job.log")
    assert (done.returncode, f"receipt run (process {process.pid}) runs" in done.stderr) == (2, True)
    process.kill()
    process.wait(60)
    done = receipt(folder, "run", "--recover", "job.log")
    assert (done.returncode, "the command still prints" in done.stderr) == (2, True)
    (folder / "end").write_bytes(b"")
    process.communicate(timeout=60)
    assert (folder / "job.log").read_bytes() == b"begun\nover\n"


def test_a_parse_meets_a_log_without_its_receipt(tmp_path: Path) -> None:
    process = wrapped(tmp_path / "a", sys.executable, "-c", TRAINING)
    folder = tmp_path / "a"
    process.stdout.readline()
    process.kill()
    process.communicate(timeout=60)
    while "receipt run --recover job.log" not in (done := receipt(folder, "parse", "job.log", "--json")).stderr:
        assert done.returncode == 0
    document = json.loads(done.stdout)
    assert (document["run"]["name"], document["run"]["recovered"]) == ("a run", True)
    assert document["header"]["sources"]["/software/platform"] == "file"


@pytest.mark.parametrize(("words", "said"), [
    (("--recover", "job.log"), "nothing to recover"),
    (("--recover", "other.log"), "no such log"),
    (("--recover", "job.log", "--", "true"), "--recover runs no command"),
    ((), "missing argument: COMMAND"),
])  # fmt: skip
def test_what_cannot_be_recovered(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    (tmp_path / "job.log").write_text("iter 1: loss 2.0, time 5.00ms, mfu 1.00%\n")
    (tmp_path / "job.running.json").write_text('{"version": "running/2"}')
    done = receipt(tmp_path, "run", *words)
    assert (done.returncode in (2, 3), said in done.stderr) == (True, True)
    assert "Traceback" not in done.stderr
