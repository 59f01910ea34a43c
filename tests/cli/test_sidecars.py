"""The files beside a log, ``LOG.times`` and ``LOG.gpu``: they satisfy their schemas, and ``receipt validate`` says whether so."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from benchmarks.timeless import SCRIPTS
from receipt_cli.documents.schemas import find_entry, get_json_schema
from receipt_cli.io.samples_file import head_line, sample_line
from receipt_cli.io.times_file import FREE, HEAD_BYTES
from tests.cli.conftest import Done, Invoke
from tests.cli.test_times import WALL, play

SMI = "#!/bin/sh\necho '100, 2048, 300.5'\necho '3, 1024, [N/A]'\n"


def satisfied(kind: str, document: Any) -> bool:
    return Draft202012Validator(get_json_schema(find_entry(kind, "1.0"))).is_valid(document)


SAMPLED = """
import pathlib, time
print("step 1 loss 2", flush=True)
beside = pathlib.Path("job.log.gpu")
while not beside.exists() or beside.read_text().count("gpus") < {number}:
    time.sleep(0.01)
"""
"""A command that ends after it was sampled so often."""


def rules(done: Done) -> list[str]:
    return [row["rule"] for row in json.loads(done.stdout)]


@pytest.mark.parametrize("names", [("plain",), ("backspaces",), ("checkpoints",), ("killed", "requeued")], ids="-".join)
def test_times_of_scripts_satisfy_their_schema(tmp_path: Path, invoke: Invoke, names: tuple[str, ...]) -> None:
    play(tmp_path, *(SCRIPTS[name]() for name in names))
    times, log = tmp_path / "job.log.times", (tmp_path / "job.log").read_bytes()
    document = json.loads(invoke("show", times, "--json").stdout)
    assert satisfied("times", document)
    assert [launch["kind"] for launch in document["launches"]] == ["command"] * len(names)
    assert document["launches"][0]["started_ms"] == 1000 * WALL
    pieces = [piece for launch in document["launches"] for piece in launch["pieces"]]
    assert [came for came, _ in pieces] == sorted(came for came, _ in pieces)
    skipped = sum(launch["skipped_bytes"] for launch in document["launches"])
    assert skipped + sum(size for _, size in pieces) == len(log) == document["log"]["size_bytes"]
    done = invoke("validate", times)
    assert (done.code, b"receipt-times/1" in done.stdout, b"whole" in done.stdout) == (0, True, True)


def test_a_job_of_receipt_run_leaves_sound_files(tmp_path: Path, process: Invoke) -> None:
    (tmp_path / "nvidia-smi").write_text(SMI)
    (tmp_path / "nvidia-smi").chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "CUDA_VISIBLE_DEVICES": "0,1"}
    for number, more in ((1, ()), (2, ("--append",))):
        command = (sys.executable, "-c", SAMPLED.format(number=number))
        done = process("run", "-q", "--sample", "--log", "job.log", *more, "--", *command, cwd=tmp_path, env=env)
        assert done.code == 0, done.stderr
    for kind, name in (("times", "job.log.times"), ("samples", "job.log.gpu")):
        document = json.loads(process("show", name, "--json", cwd=tmp_path).stdout)
        assert satisfied(kind, document)
        assert len(document["launches"]) == 2
    done = process("validate", "job.log.times", "job.log.gpu", "--json", cwd=tmp_path)
    assert (done.code, [(row["rule"], row["severity"]) for row in json.loads(done.stdout)]) == (
        0,
        [("times", "note"), ("samples", "note")],
    )
    assert json.loads((tmp_path / "job.log.gpu").read_text().splitlines()[1])["gpus"] == [
        [1.0, 2 << 30, 300.5],
        [0.03, 1 << 30, None],
    ]


def test_a_followed_log_says_so(tmp_path: Path, invoke: Invoke) -> None:
    """What the log had before has no time."""
    from receipt_cli.io.times_file import TimesWriter

    log = os.open(tmp_path / "job.log", os.O_RDWR | os.O_CREAT)
    os.write(log, b"step 1\n")
    writer = TimesWriter(str(tmp_path / "job.log.times"), log, append=True, pause_s=0.25, now=0.0, wall=WALL, known=7)
    os.write(log, b"step 2\n")
    writer.add(b"step 2\n", 1.5)
    writer.close(2.0, ended=False)
    os.close(log)
    document = json.loads(invoke("show", tmp_path / "job.log.times", "--json").stdout)
    assert satisfied("times", document)
    assert document["launches"] == [
        {
            "kind": "followed",
            "started_ms": 1000 * WALL,
            "skipped_bytes": 7,
            "pause_ms": 250,
            "ended_ms": None,
            "pieces": [[1000 * WALL + 1500, 7]],
        }
    ]


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        pytest.param(lambda data: data + b"more", 0, "4 bytes after its seal count for nothing", id="left by a killed writer"),
        pytest.param(lambda data: data[:-1], 0, "bytes after its seal count for nothing", id="cut off after the older seal"),
        pytest.param(lambda data: data[:HEAD_BYTES], 3, "no seal fits its entries", id="a head alone"),
        pytest.param(
            lambda data: data[: HEAD_BYTES + FREE] + bytes([data[HEAD_BYTES + FREE] ^ 1]) + data[HEAD_BYTES + FREE + 1 :],
            3,
            "no seal fits its entries",
            id="a changed entry",
        ),
    ],
)
def test_validate_says_whether_times_are_whole(
    tmp_path: Path, invoke: Invoke, change: Callable[[bytes], bytes], code: int, said: str
) -> None:
    play(tmp_path, SCRIPTS["plain"]())
    times = tmp_path / "job.log.times"
    times.write_bytes(change(times.read_bytes()))
    done = invoke("validate", times)
    assert (done.code, said in " ".join((done.stdout.decode() + done.stderr).split())) == (code, True)


def test_times_have_to_fit_the_log(tmp_path: Path, invoke: Invoke) -> None:
    play(tmp_path, SCRIPTS["plain"]())
    log, times = tmp_path / "job.log", tmp_path / "job.log.times"
    log.write_bytes(log.read_bytes() + b"a line that came later\n")
    assert rules(invoke("validate", times, "--json")) == ["times"]
    log.write_bytes(log.read_bytes().replace(b"loss", b"lost", 1))
    done = invoke("validate", times, "--json")
    assert (done.code, rules(done)) == (1, ["times_of_log"])
    assert invoke("show", times).code == 1
    log.unlink()
    assert rules(invoke("validate", times, "--json")) == ["times"]


DEVICE = [[0.5, 1 << 30, 200.0]]
SOUND = head_line(1000) + sample_line(0, 1 << 30, DEVICE) + sample_line(5000, None, [[None, None, None]])


@pytest.mark.parametrize(
    ("text", "code", "found"),
    [
        pytest.param(SOUND, 0, "samples", id="sound"),
        pytest.param(SOUND + '{"ms":10', 0, "samples", id="cut off"),
        pytest.param(SOUND + "\n", 3, "unreadable", id="an empty line"),
        pytest.param(SOUND.replace('"ms"', '"s"', 1), 1, "schema.required", id="without a time"),
        pytest.param(SOUND.replace("0.5", "-0.5"), 1, "schema.minimum", id="less than nothing"),
        pytest.param(SOUND.replace("0.5", "50"), 1, "utilization", id="more than all"),
        pytest.param(SOUND + sample_line(4000, None, DEVICE), 1, "samples_in_order", id="back in time"),
        pytest.param(SOUND + sample_line(9000, None, 2 * DEVICE), 1, "samples_of_same_gpus", id="another GPU"),
        pytest.param(SOUND + head_line(9000) + sample_line(0, None, 2 * DEVICE), 0, "samples", id="another launch"),
    ],
)
def test_validate_judges_samples(tmp_path: Path, invoke: Invoke, text: str, code: int, found: str) -> None:
    path = tmp_path / "job.log.gpu"
    path.write_text(text)
    done = invoke("validate", path, "--json")
    assert (done.code, found in rules(done)) == (code, True)
    plain = b" ".join(invoke("validate", path).stdout.split())
    assert (b"its last line is cut off" in plain) is ("cut" in text or text.endswith("10"))


@pytest.mark.parametrize("name", ["job.log.times", "job.log.gpu"])
def test_a_file_beside_a_log_is_no_log(tmp_path: Path, invoke: Invoke, name: str) -> None:
    play(tmp_path, SCRIPTS["plain"]())
    (tmp_path / "job.log.gpu").write_text(SOUND)
    done = invoke("parse", tmp_path / name)
    assert (done.code, "beside a log, not a log" in done.stderr, "receipt schema check" in done.stderr) == (3, True, True)
