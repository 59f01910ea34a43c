"""``receipt watch`` and the commands that run when a job fails, ends or falls silent."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pexpect
import pytest

from .conftest import ROOT, Invoke

LOGS = ROOT / "fixtures" / "logs"
DONE = LOGS / "nanochat" / "speedrun-2025-10.log"
NAN = LOGS / "hf-trainer" / "diverged-nan-v5.log"
STOPPED = LOGS / "nanogpt" / "char-sigint.log"
PATIENCE_S = 120.0
ENVIRON = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm"}


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """A folder with a log of each state."""
    folder = tmp_path / "logs"
    folder.mkdir()
    shutil.copy(DONE, folder / "done.log")
    shutil.copy(NAN, folder / "nan.log")
    shutil.copy(STOPPED, folder / "stopped.log")
    begun = b"".join(DONE.read_bytes().splitlines(True)[:40])
    (folder / "running.log").write_bytes(begun)
    (folder / "silent.log").write_bytes(begun + b"\n")
    os.utime(folder / "silent.log", (time.time() - 7200,) * 2)
    return folder


@pytest.fixture
def hook(tmp_path: Path) -> Path:
    """A command that keeps what it was given."""
    path = tmp_path / "hook.py"
    path.write_text(
        f"#!{sys.executable}\n"
        "import json, os, sys\n"
        "names = ('EVENT', 'LOG', 'REASON', 'STEP')\n"
        "told = {name: os.environ['RECEIPT_' + name] for name in names}\n"
        "told['words'] = sys.argv[1:]\n"
        "failure = json.load(open(os.environ['RECEIPT_FILE']))['failure']\n"
        "told['failure'] = failure and failure['reason']\n"
        f"open({str(tmp_path / 'told')!r}, 'a').write(json.dumps(told) + '\\n')\n"
    )
    path.chmod(0o755)
    return path


def told(tmp_path: Path) -> list[dict[str, Any]]:
    path = tmp_path / "told"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def wait_until(true: Callable[[], bool]) -> None:
    limit = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < limit
        time.sleep(0.05)


def start(*arguments: str | Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "receipt_cli", *map(str, arguments)]
    return subprocess.Popen(command, env=ENVIRON, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)


def test_each_log_has_its_state_and_the_figures_of_now(logs: Path, invoke: Invoke) -> None:
    done = invoke("watch", logs, "--once", "--json", "--stall", "3600")
    rows = {Path(row["log"]).stem: row for row in map(json.loads, done.stdout.splitlines())}
    assert done.code == 1
    assert {name: row["state"] for name, row in rows.items()} == {
        "done": "done", "nan": "nan", "running": "running", "silent": "stalled", "stopped": "failed"
    }  # fmt: skip
    assert rows["running"] == {
        **rows["running"], "step": 16, "planned": 60, "loss": 7.816103, "eta_s": pytest.approx(20.5, abs=0.1), "reason": None
    }  # fmt: skip
    assert rows["stopped"]["reason"] == "interrupted"
    assert 7200 <= rows["silent"]["silent_s"] < 7300


def test_the_table_begins_with_what_needs_somebody(logs: Path, invoke: Invoke) -> None:
    lines = invoke("watch", logs, "--once").stdout.decode().splitlines()
    assert lines[0] == "5 logs: 1 failed, 1 nan, 1 stalled, 1 running, 1 done"
    assert [line.split()[0] for line in lines[3:]] == ["stopped.log", "nan.log", "silent.log", "running.log", "done.log"]
    assert "16 of 60" in lines[6]
    assert "7.816" in lines[6]


def test_a_rate_of_each_device_is_told_from_that_of_all(tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    shutil.copy(ROOT / "fixtures" / "logs" / "torchtitan" / "llama3-2026-ansi.log", tmp_path / "a.log")
    assert "6.91 k tok/s/device" in invoke("watch", tmp_path, "--once").stdout.decode()


def test_jobs_that_went_well_exit_0(tmp_path: Path, invoke: Invoke) -> None:
    shutil.copy(DONE, tmp_path / "done.log")
    done = invoke("watch", tmp_path / "done.log", tmp_path / "none.log", "--once", "--json")
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.code, sorted(row["state"] for row in rows)) == (0, ["done", "unreadable"])


def test_commands_run_once_for_each_log_with_its_receipt(logs: Path, hook: Path, tmp_path: Path, invoke: Invoke) -> None:
    options = [word for event in ("failure", "end", "stall") for word in (f"--on-{event}", f"{hook} '{event} $HOME' ;x")]
    done = invoke("watch", logs, "--until-over", "--stall", "1", *options)
    assert done.code == 1
    found = {(entry["EVENT"], Path(entry["LOG"]).stem): entry for entry in told(tmp_path)}
    assert len(told(tmp_path)) == 5
    assert set(found) == {
        ("failure", "nan"), ("failure", "stopped"), ("end", "done"), ("stall", "running"), ("stall", "silent")
    }  # fmt: skip
    assert found["failure", "nan"]["words"] == ["failure $HOME", ";x"]  # words, and no shell
    assert found["failure", "nan"]["failure"] == found["failure", "nan"]["REASON"] == "nan_loss"
    assert (found["stall", "running"]["failure"], found["stall", "running"]["STEP"]) == (None, "16")
    lines = sorted(line.split()[1] for line in done.stdout.decode().splitlines())
    assert lines == ["end", "failure", "failure", "stall", "stall"]


def test_a_command_that_cannot_run_is_named(logs: Path, tmp_path: Path, invoke: Invoke) -> None:
    done = invoke("watch", logs, "--once", "--on-end", str(tmp_path / "missing"), "--on-failure", "false")
    assert "--on-end" in done.stderr
    assert "--on-failure false: ended with 1" in done.stderr
    assert invoke("watch", logs, "--once", "--on-end", "'open").code == 2
    assert invoke("watch", logs, "--once", "--on-end", " ").code == 2


def test_a_screen_follows_new_output_and_new_logs(tmp_path: Path) -> None:
    lines = DONE.read_bytes().splitlines(True)
    (tmp_path / "a.log").write_bytes(b"".join(lines[:40]))
    child = pexpect.spawn(
        sys.executable, ["-m", "receipt_cli", "watch", str(tmp_path)], env=ENVIRON, dimensions=(24, 110), timeout=PATIENCE_S
    )
    child.expect("16 of 60")
    with (tmp_path / "a.log").open("ab") as file:
        file.write(b"".join(lines[40:44]))
    child.expect("19 of 60")
    shutil.copy(NAN, tmp_path / "b.log")
    child.expect("2 logs: 1 nan, 1 running")
    child.sendintr()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_whoever_stops_following_a_job_does_not_end_it(tmp_path: Path, invoke: Invoke, number: signal.Signals) -> None:
    """The log breaks off in the middle, and the job may go on: no failure, and the derivation can be repeated."""
    log = tmp_path / "run.log"
    log.write_bytes(b"".join(DONE.read_bytes().splitlines(True)[:40]))
    stalled = tmp_path / "stalled"
    commands = ("--on-end", "false", "--stall", "1", "--on-stall", f"touch {stalled}")
    following = start("parse", log, "--follow", "-o", tmp_path / "r.json", *commands)
    wait_until(stalled.exists)
    following.send_signal(number)
    _, shown = following.communicate(timeout=PATIENCE_S)
    receipt = json.loads((tmp_path / "r.json").read_text())
    assert (following.returncode, receipt["failure"], receipt["checks"]["completed"]) == (0, None, None), shown
    assert receipt["derivation"]["options"]["running"] is True
    assert b"--on-end" not in shown
    assert invoke("verify", tmp_path / "r.json", log).code == 0
    assert invoke("parse", log, "--json").document["failure"]["reason"] == "truncated"


def test_a_followed_job_calls_for_a_stall_a_failure_and_its_end(tmp_path: Path, hook: Path) -> None:
    lines = NAN.read_bytes().splitlines(True)
    log = tmp_path / "run.log"
    log.write_bytes(b"".join(lines[:20]))
    commands = [word for event in ("failure", "end", "stall") for word in (f"--on-{event}", str(hook))]
    job = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    following = start("parse", log, "--follow", "--pid", str(job.pid), "--stall", "1", *commands)
    wait_until(lambda: len(told(tmp_path)) == 1)
    with log.open("ab") as file:
        file.write(b"".join(lines[20:]))
    job.communicate(b"\n")
    following.communicate(timeout=PATIENCE_S)
    assert following.returncode == 0
    entries = told(tmp_path)  # the commands run beside each other: the end may be told before the failure
    events = [entry["EVENT"] for entry in entries]
    assert (events[0], events.count("failure"), events.count("end")) == ("stall", 1, 1)
    assert next(entry for entry in entries if entry["EVENT"] == "end")["REASON"] == "nan_loss"


@pytest.mark.parametrize(("code", "events"), [(0, ["end"]), (3, ["failure", "end"])])
def test_run_calls_for_failure_and_end_and_keeps_the_exit_code(tmp_path: Path, hook: Path, code: int, events: list[str]) -> None:
    program = f"print(open({str(DONE)!r}).read()); raise SystemExit({code})"
    running = start(
        "run", "--log", tmp_path / "r.log", "--on-failure", hook, "--on-end", hook, "--", sys.executable, "-c", program
    )
    running.communicate(timeout=PATIENCE_S)
    assert running.returncode == code
    assert sorted(entry["EVENT"] for entry in told(tmp_path)) == sorted(events)


def test_run_calls_for_a_stall(tmp_path: Path, hook: Path) -> None:
    program = (
        "import os, time\n"
        f"print(open({str(DONE)!r}).read()[:3000], flush=True)\n"
        f"while not os.path.exists({str(tmp_path / 'told')!r}): time.sleep(0.05)\n"
        "print('on', flush=True)\n"
    )
    running = start("run", "--log", tmp_path / "r.log", "--on-stall", hook, "--stall", "1", "--", sys.executable, "-c", program)
    running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 0
    assert [(entry["EVENT"], entry["failure"]) for entry in told(tmp_path)] == [("stall", None)]


def test_commands_without_following_are_refused(invoke: Invoke) -> None:
    done = invoke("parse", DONE, "--on-end", "true")
    assert (done.code, "--follow" in done.stderr) == (2, True)
