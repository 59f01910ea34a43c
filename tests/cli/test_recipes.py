"""The jobs of ``docs/recipes.md`` start twice, as a requeued job does."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "recipes.md").read_text("utf-8")
TRAIN = """
from pathlib import Path
resumed = Path("checkpoint").exists()
for step in range(6 if resumed else 1, 11):
    print(f"step {step}/10: loss {4.0 / step:.4f}, lr 3.0e-4", flush=True)
    if step == 5:
        Path("checkpoint").touch()
        raise SystemExit(75)
"""


def block(heading: str, language: str) -> str:
    """Return the first block of a section of the page."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    found = re.search(rf"^```{language}\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    return found[1]


@pytest.fixture
def start(tmp_path: Path) -> Callable[[list[str]], int]:
    """Start a job in a folder with a training script and an empty ``logs``; return its exit code."""
    tools = tmp_path / "bin"
    tools.mkdir()
    (tmp_path / "logs").mkdir()
    (tmp_path / "train.py").write_text(TRAIN)
    shims = {
        "receipt": f'exec "{sys.executable}" -m receipt_cli "$@"',
        "python": f'exec "{sys.executable}" "$@"',
        "srun": 'shift; exec "$@"',
    }
    for name, text in shims.items():
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    env = {"PATH": f"{tools}:/usr/bin:/bin", "PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "LC_ALL": "C.UTF-8"}
    env |= {"SLURM_JOB_NAME": "pretrain", "SLURM_JOB_ID": "4711"}

    def run(words: list[str]) -> int:
        return subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, timeout=120, check=False).returncode

    return run


def slurm(folder: Path) -> tuple[list[str], Path]:
    (folder / "job.sh").write_text(block("Slurm", "sh"))
    return ["bash", "job.sh"], folder / "logs" / "pretrain-4711.log"


def kubernetes(folder: Path) -> tuple[list[str], Path]:
    pod = yaml.safe_load(block("Kubernetes", "yaml"))["spec"]["template"]["spec"]
    (results,) = (mount["mountPath"] for mount in pod["containers"][0]["volumeMounts"])
    words = [word.replace(results, str(folder / "logs")) for word in pod["containers"][0]["command"]]
    return words, folder / "logs" / "pretrain.log"


@pytest.mark.parametrize("job", [slurm, kubernetes])
def test_a_job_that_starts_again_goes_on_in_its_log(
    job: Callable[[Path], tuple[list[str], Path]], start: Callable[[list[str]], int], tmp_path: Path
) -> None:
    words, log = job(tmp_path)
    assert start(words) == 75
    receipt = log.with_suffix(".receipt.json")
    assert json.loads(receipt.read_bytes())["run"]["exit_code"] == 75
    assert start(words) == 0
    assert re.findall(r"^step (\d+)/", log.read_text(), re.MULTILINE) == [str(n) for n in range(1, 11)]
    document = json.loads(receipt.read_bytes())
    assert (document["run"]["exit_code"], document["summary"]["steps"]["last"]) == (0, 10)
