"""``receipt parse --evidence``: what a scheduler records completes a silent log, and contradicts another."""

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import ROOT, Done, Invoke

EVIDENCE = ROOT / "fixtures/evidence"
COMPLETED = ROOT / "fixtures/logs/nanogpt/char-ok.log"
STEPS = b"".join(b"iter %d: loss %.4f, time 10.19ms, mfu 0.02%%\n" % (n, 4 - n / 100) for n in range(20))
OPENING = b"Overriding: max_iters = 60\ntokens per iteration will be: 4,096\n"


@pytest.fixture
def cut(tmp_path: Path) -> Path:
    """A log that breaks off without a word of why."""
    log = tmp_path / "cut.log"
    log.write_bytes(OPENING + STEPS)
    return log


def parsed(invoke: Invoke, log: Path, evidence: Path | str, *more: str) -> dict[str, Any]:
    done = invoke("parse", log, "--evidence", EVIDENCE / evidence, *more, "--json")
    assert done.code == 0, done.stderr
    return done.document


@pytest.mark.parametrize(
    ("evidence", "job", "reason", "code", "no_oom", "exit_code"),
    [
        ("sacct-out-of-memory.json", None, "host_oom", None, False, None),
        ("sacct-old-array.json", "5000_2", "unknown", False, None, 1),
        ("scontrol-timeout.txt", None, "time_limit", False, None, -15),
        ("condor-killed.ads", None, "killed", False, None, -15),
        ("condor-held.json", "204.3", "host_oom", None, False, None),
        ("pod-oomkilled.json", None, "host_oom", False, False, 137),
        ("pods-evicted.json", "worker-0", "preempted", None, None, None),
        ("pods-evicted.json", "ml/worker-1", "preempted", False, None, 143),
        ("pods-evicted.json", "cc", "unknown", False, None, 1),
        ("sagemaker-failed.json", None, "unknown", False, None, 1),
        ("sky-jobs.json", "14", "unknown", False, None, 1),
    ],
)
def test_a_log_that_breaks_off_ended_as_the_scheduler_records(
    invoke: Invoke, cut: Path, tmp_path: Path, evidence: str, job: str | None, reason: str, code: bool | None,
    no_oom: bool | None, exit_code: int | None,
) -> None:  # fmt: skip
    found = parsed(invoke, cut, evidence, *(["--job", job] if job is not None else []))
    assert found["failure"]["reason"] == reason
    assert found["evidence"][0]["source"] in found["failure"]["message"]
    assert [found["checks"][name] for name in ("zero_exit_code", "no_oom", "completed")] == [code, no_oom, False]
    assert found["evidence"][0]["exit_code"] == exit_code
    receipt = tmp_path / "run.receipt.json"
    receipt.write_text(json.dumps(found), "utf-8")
    assert invoke("verify", receipt, cut).code == 0
    valid = invoke("schema", "check", receipt)
    assert valid.code == 0 and b"note" not in valid.stdout


def test_without_evidence_the_same_log_is_truncated(invoke: Invoke, cut: Path) -> None:
    found = invoke("parse", cut, "--json").document
    assert found["failure"]["reason"] == "truncated"
    assert "evidence" not in found and "job" not in found["derivation"]["options"]


@pytest.mark.parametrize("job", ["13", "worker-3"])
def test_a_job_that_has_not_ended_decides_nothing(invoke: Invoke, cut: Path, job: str) -> None:
    found = parsed(invoke, cut, "sky-jobs.json" if job == "13" else "pods-evicted.json", "--job", job)
    assert found["evidence"][0]["ended"] == "not_ended" and found["evidence"][0]["finished_at"] is None
    assert found["failure"]["reason"] == "truncated"
    assert "job" not in found["derivation"]["options"]


def test_a_job_that_completed_proves_an_exit_code_of_zero(invoke: Invoke) -> None:
    plain = invoke("parse", COMPLETED, "--json").document
    found = parsed(invoke, COMPLETED, "sacct-old-array.json", "--job", "5001")
    assert (plain["checks"]["zero_exit_code"], found["checks"]["zero_exit_code"]) == (None, True)
    assert found["failure"] is None


@pytest.mark.parametrize(
    ("log", "evidence", "job", "words"),
    [
        (None, "pod-oomkilled.json", None, "(out_of_memory, exit code 137), though the log shows that the run completed"),
        (None, "scontrol-timeout.txt", None, "though the log shows that the run completed"),
        ("hf-trainer/crash-callback-v5.log", "sky-jobs.json", "15", "though the run failed with traceback"),
    ],
)
def test_a_contradiction_is_a_note_and_changes_nothing(
    invoke: Invoke, tmp_path: Path, log: str | None, evidence: str, job: str | None, words: str
) -> None:
    path = COMPLETED if log is None else ROOT / "fixtures/logs" / log
    plain = invoke("parse", path, "--json").document
    receipt = tmp_path / "run.receipt.json"
    chosen = ["--job", job] if job is not None else []
    done = invoke("parse", path, "--evidence", EVIDENCE / evidence, *chosen, "-o", receipt)
    assert words in done.stderr
    assert re.search(r"doubts +[12]: ", done.stdout.decode())
    found = json.loads(receipt.read_bytes())
    assert (found["failure"], found["checks"]) == (plain["failure"], plain["checks"])
    valid = invoke("schema", "check", receipt)
    assert valid.code == 0 and b"evidence_agrees" in valid.stdout
    assert invoke("verify", receipt, path).code == 0


def test_times_and_jobs_that_do_not_meet_are_contradictions(invoke: Invoke, tmp_path: Path) -> None:
    log = tmp_path / "slurm.log"
    stamped = b"".join(b"2023-11-20T10:00:%02dZ %s\n" % (n, line) for n, line in enumerate(STEPS.splitlines()))
    killed = b"slurmstepd: error: *** JOB 99 ON gpu07 CANCELLED AT 2023-11-20T10:01:00 DUE TO TIME LIMIT ***\n"
    log.write_bytes(stamped + killed)
    done = invoke("parse", log, "--evidence", EVIDENCE / "sacct-out-of-memory.json", "--json")
    assert "812345 is not the job 99 that the log names" in done.stderr
    assert (
        "ran from 2023-11-14T22:23:20Z to 2023-11-14T22:54:05Z, but the log's timestamps are from 2023-11-20T10:00:00Z"
        in done.stderr
    )
    assert done.document["failure"]["reason"] == "time_limit", "the log names its cause"


def test_several_files_are_entries_of_one_receipt(invoke: Invoke, cut: Path) -> None:
    files = [EVIDENCE / name for name in ("scontrol-running.json", "sacct-out-of-memory.json", "pod-oomkilled.json")]
    done = invoke("parse", cut, *(word for file in files for word in ("--evidence", file)), "--json")
    found = done.document
    assert [entry["source"] for entry in found["evidence"]] == ["slurm_scontrol", "slurm_sacct", "kubernetes_pod"]
    assert found["derivation"]["options"]["job"]["source"] == "slurm_sacct", "the first that has ended"
    assert "slurm_sacct 812345 is another job than 77" in done.stderr


def test_no_secret_of_an_environment_reaches_the_receipt(invoke: Invoke, cut: Path) -> None:
    for name in ("pod-oomkilled.json", "sagemaker-failed.json", "condor-killed.ads", "sacct-out-of-memory.json"):
        text = json.dumps(parsed(invoke, cut, name)["evidence"])
        assert "hf_ABC" not in text and "0123456789abcdef" not in text and "API_KEY" not in text


def test_evidence_is_captured_its_change_is_named(invoke: Invoke, cut: Path, tmp_path: Path) -> None:
    found = parsed(invoke, cut, "sacct-out-of-memory.json")
    found["evidence"][0]["nodes"] = ["gpu99"]
    receipt = tmp_path / "run.receipt.json"
    receipt.write_text(json.dumps(found), "utf-8")
    assert b"captured_touched" in invoke("schema", "check", receipt).stdout
    assert invoke("verify", receipt, cut).code == 1


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "unknown form of evidence"),
        (b"{}", "unknown form of evidence"),
        (b'{"jobs": []}', "it has no job"),
        (b"[" * 100_000, "the evidence is not JSON"),
        (b'{"jobs": [{"job_state": ' + b"[" * 100_000, "the evidence is not JSON"),
        (b'{"jobs": [{"job_id": ' + b"9" * 5000 + b"}]}", "the evidence is not JSON"),
        (b"\x00\xff" * 50, "unknown form of evidence"),
        (b" " * (16 * 2**20 + 1), "larger than 16 MiB"),
    ],
)
def test_what_is_no_evidence_is_refused(invoke: Invoke, cut: Path, tmp_path: Path, content: bytes, words: str) -> None:
    file = tmp_path / "evidence"
    file.write_bytes(content)
    done = invoke("parse", cut, "--evidence", file, "--json")
    assert done.code in (2, 3) and words in done.stderr and not done.stdout


@pytest.mark.parametrize(
    "content",
    [
        '{"jobs": [{"job_state": 5, "exit_code": [], "nodes": {"a": 1}, "start_time": 1e300, "job_id": NaN}]}',
        '{"jobs": [{"state": {"current": {"a": 1}}, "steps": 7, "tres": "x", "time": [], "array": 0, "exit_code": Infinity}]}',
        '{"kind": "Pod", "status": {"containerStatuses": [1, null, {"state": "x"}], "conditions": {}}, "spec": 3}',
        '{"kind": "Pod", "spec": {"containers": [{"resources": {"limits": {"memory": "1e99Ei"}}}]}, "status": {}}',
        '{"TrainingJobName": {"a": 1}, "TrainingJobStatus": [], "FailureReason": 5, "CreationTime": "2024-99-99T99:99:99Z"}',
        '[{"job_id": {}, "status": "x", "exit_codes": [null, "a"], "submitted_at": -1e308}]',
        '[{"ClusterId": "x", "JobStatus": 1e999, "ExitSignal": 1e30, "NumJobStarts": -5, "LastRemoteHost": 5}]',
        "JobId=1 JobState=FAILED ExitCode=99999999999999999999:x NodeList=a[1-999999999] StartTime=2024-02-31T00:00:00\n",
        "ClusterId = 1\nJobStatus = 4\nExitCode = 99999999999999\nQDate = -3\n",
    ],
)
def test_values_of_other_types_are_unknown(invoke: Invoke, cut: Path, tmp_path: Path, content: str) -> None:
    """A receipt that was written is valid: the program validates each before it writes it."""
    file = tmp_path / "evidence"
    file.write_text(content, "utf-8")
    done = invoke("parse", cut, "--evidence", file, "--json")
    assert done.code == 0, done.stderr
    [entry] = done.document["evidence"]
    assert len(entry["nodes"]) <= 1024 and entry["exit_code"] is None


def test_two_jobs_in_a_file_need_a_name(invoke: Invoke, cut: Path) -> None:
    done = invoke("parse", cut, "--evidence", EVIDENCE / "sky-jobs.json")
    assert done.code == 2 and "3: 15, 14, 13" in done.stderr and "--job ID" in done.stderr
    assert "it has no job '99'" in invoke("parse", cut, "--evidence", EVIDENCE / "sky-jobs.json", "--job", "99").stderr
    assert invoke("parse", cut, "--job", "1").code == 2


def test_a_store_answers_questions_about_jobs(invoke: Invoke, cut: Path, tmp_path: Path) -> None:
    receipts = [tmp_path / "a.receipt.json", tmp_path / "b.receipt.json"]
    invoke("parse", cut, "--evidence", EVIDENCE / "sacct-out-of-memory.json", "-o", receipts[0])
    invoke("parse", COMPLETED, "--evidence", EVIDENCE / "pod-oomkilled.json", "-o", receipts[1])
    store = tmp_path / "store"
    assert invoke("store", "add", store, *receipts).code == 0
    query = "SELECT source, ended, nodes, max_rss_bytes, len(contradictions) AS n, run_at FROM evidence ORDER BY source DESC"
    rows = json.loads(invoke("store", "query", store, query, "--json").stdout)
    found = rows["rows"] if isinstance(rows, dict) else rows
    values = [list(row.values()) if isinstance(row, dict) else row for row in found]
    assert values == [
        ["slurm_sacct", "out_of_memory", ["gpu07", "gpu08"], 68451041280, 0, "2023-11-14T22:23:20Z"],
        ["kubernetes_pod", "out_of_memory", ["ip-10-0-3-17.ec2.internal"], None, 1, "2024-03-01T10:00:10Z"],
    ]


@pytest.fixture
def in_slurm(process: Invoke, tmp_path: Path) -> Callable[[str], tuple[Done, dict[str, Any]]]:
    """Run a command in a Slurm job whose ``scontrol`` is this script; return how it ended and the receipt."""

    def call(script: str) -> tuple[Done, dict[str, Any]]:
        scontrol = tmp_path / "bin" / "scontrol"
        scontrol.parent.mkdir()
        scontrol.write_text(f"#!/bin/sh\n{script}\n", "utf-8")
        scontrol.chmod(0o755)
        env = {"SLURM_JOB_ID": "77", "PATH": f"{scontrol.parent}:{os.environ['PATH']}"}
        done = process("run", "--log", tmp_path / "job.log", "--", sys.executable, "-c", "print('hello')", env=env)
        assert done.code == 0, done.stderr
        return done, json.loads((tmp_path / "job.receipt.json").read_bytes())

    return call


def test_receipt_run_asks_the_slurm_job_that_it_is_in(in_slurm: Any, tmp_path: Path) -> None:
    _, receipt = in_slurm(f'echo "$@" > "{tmp_path}/asked"\ncat "{EVIDENCE / "scontrol-running.json"}"')
    assert (tmp_path / "asked").read_text("utf-8") == "show job 77\n"
    [entry] = receipt["evidence"]
    assert (entry["job_id"], entry["ended"], entry["nodes"], receipt["run"]["exit_code"]) == ("77", "not_ended", ["gpu01"], 0)


def test_receipt_run_without_an_answer_of_slurm_writes_its_receipt(in_slurm: Any) -> None:
    done, receipt = in_slurm("echo 'slurm_load_jobs error: Invalid job id specified' >&2\nexit 1")
    assert ("no evidence of the Slurm job" in done.stderr, "evidence" in receipt) == (True, False)
