"""Real trainers under ``receipt run``, to each of their ends: the same exit status as alone, and the right receipt.

They need torch, Transformers and Lightning; ``TRAINER_PYTHON`` names the interpreter that has them, by default this one.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ENV = {**os.environ, "PYTHONPATH": str(HERE.parents[1])}
PYTHON = os.environ.get("TRAINER_PYTHON", sys.executable)
NEEDS = {"torch_loop": "torch", "hf_trainer": "transformers", "lightning_module": "lightning"}
STEP = {
    "torch_loop": rb"^iter \d+: loss ",
    "hf_trainer": rb"\{'loss': ",
    "lightning_module": rb"(?<=\d)/8 \[[^\]\r\n]*train_loss=",
}
LIMIT_KIB = 12 << 20

pytestmark = pytest.mark.slow


def has(package: str) -> bool:
    asked = [PYTHON, "-c", f"import importlib.util, sys; sys.exit(importlib.util.find_spec({package!r}) is None)"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


def end(arguments: list[str], folder: Path, ending: str) -> tuple[int, bytes]:
    """Run a job until it has ended, with SIGTERM in the middle where that is its end; return exit code and stdout."""
    with (
        (folder / "stderr").open("wb") as errors,
        subprocess.Popen(arguments, cwd=folder, env=ENV, stdout=subprocess.PIPE, stderr=errors) as job,
    ):
        assert job.stdout is not None
        out, sent = b"", False
        limit = time.monotonic() + 300
        while block := _read(job.stdout.fileno(), limit):
            out += block
            if ending == "sigterm" and not sent and b"ready at" in out:
                job.send_signal(signal.SIGTERM)
                sent = True
    return job.returncode, out


def _read(descriptor: int, limit: float) -> bytes:
    assert select.select([descriptor], [], [], max(0.0, limit - time.monotonic()))[0], "it hangs"
    return os.read(descriptor, 1 << 16)


@pytest.fixture
def confine(request: pytest.FixtureRequest) -> Callable[[str, list[str]], list[str]]:
    """Return the command that runs another one with little memory: by ``ulimit`` or in a cgroup."""

    def by(how: str, command: list[str]) -> list[str]:
        if how == "ulimit":
            return ["sh", "-c", f'ulimit -v {LIMIT_KIB}; exec "$@"', "sh", *command]
        if how == "cgroup":
            made = request.getfixturevalue("cgroup")
            return ["sh", "-c", f'echo $$ > {made}/cgroup.procs; exec "$@"', "sh", *command]
        return command

    return by


@pytest.mark.parametrize("trainer", NEEDS)
@pytest.mark.parametrize(
    ("ending", "how", "code", "reason"),
    [
        ("success", "", 0, None),
        ("exception", "", 1, "traceback"),
        ("sigterm", "", -signal.SIGTERM, "killed"),
        ("memory", "ulimit", 1, "host_oom"),
        ("memory", "cgroup", -signal.SIGKILL, "host_oom"),
    ],
)
def test_endings(
    tmp_path: Path,
    confine: Callable[[str, list[str]], list[str]],
    trainer: str,
    ending: str,
    how: str,
    code: int,
    reason: str | None,
) -> None:
    if not has(NEEDS[trainer]):
        pytest.skip(f"{PYTHON} has no {NEEDS[trainer]}: make test-trainers")
    command = confine(how, [PYTHON, str(HERE / f"{trainer}.py"), ending])
    alone, _ = end(command, tmp_path, ending)
    wrapped = [sys.executable, "-m", "receipt_cli", "run", "--log", "job.log", "--", *command]
    together, _ = end(wrapped, tmp_path, ending)
    receipt = json.loads((tmp_path / "job.receipt.json").read_bytes())
    log = (tmp_path / "job.log").read_bytes()
    failure = receipt["failure"]
    code = 0 if (trainer, ending) == ("lightning_module", "sigterm") else code  # it stops on the signal, and exits with 0
    assert (alone, together, receipt["run"]["exit_code"]) == (code, code, code), (tmp_path / "stderr").read_text()
    assert (None if failure is None else failure["reason"]) == reason
    steps = receipt["summary"]["steps"]["record_count"]
    printed = re.findall(STEP[trainer], log.replace(b"\r", b"\n"), re.MULTILINE)
    if trainer == "lightning_module":  # every batch is drawn twice, first with the loss of the one before
        assert steps in ((40,) if ending == "success" else (19, 20, 21))
    else:
        assert steps == len(printed) == {"torch_loop": 1, "hf_trainer": 0.5}[trainer] * (40 if ending == "success" else 20)
    assert receipt["checks"]["no_oom"] is (False if reason == "host_oom" else True if reason != "killed" or code == 0 else None)
    assert receipt["run"]["peak_rss_bytes"] > 150 << 20
    print(f"\n{trainer} {ending} {how or '-'}: exit {alone} alone, {together} wrapped; {reason}; {steps} step records")
