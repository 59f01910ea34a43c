"""A log that nothing reads: the refusal names the nearest records, what each lacked, and the next command."""

import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke

LOGS = {
    "a loss without a counter": ([f"loss: {4 - n / 10:.1f}" for n in range(9)], "has no step, iteration or epoch that counts up"),
    "a counter without a metric": ([f"epoch {n}/9 took 3.5 minutes" for n in range(9)], "no loss or known metric"),
    "an evaluation": ([f"Validation step {n} loss {4 - n / 10:.1f}" for n in range(9)], "an evaluation word"),
    "epochs or launches": (3 * [f"step {n}/5 loss {4 - n / 10:.1f} lr 0.1" for n in range(1, 6)], "its counter restarts"),
}


@pytest.mark.parametrize("name", LOGS)
def test_a_refusal_says_what_lacked_and_what_to_do(name: str, invoke: Invoke, tmp_path: Path) -> None:
    lines, why = LOGS[name]
    log = tmp_path / "my run.log"
    log.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    result = invoke("parse", str(log))
    assert result.code == 4
    assert f"{len(lines)} like {lines[0]!r}: " in result.stderr and why in result.stderr
    assert result.stderr.endswith("  try: receipt grammar learn LOG\n")  # the path is long, and named before


@pytest.mark.parametrize("name", LOGS)
def test_the_command_that_a_refusal_names_gives_a_draft_with_its_questions(
    name: str, invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, own = tmp_path / "my run.log", tmp_path / "own.yaml"
    log.write_text("".join(f"{line}\n" for line in LOGS[name][0]), "utf-8")
    monkeypatch.chdir(tmp_path)  # where the path is short enough to be repeated
    named = next(line for line in invoke("parse", log.name).stderr.splitlines() if "try: receipt grammar learn" in line)
    words = shlex.split(named.split("try: receipt ")[1])
    done = invoke(*words, "-o", own)
    assert done.code == (4 if name == "an evaluation" else 0)
    assert "#   ? " in own.read_text("utf-8") and "? these may not be training records" in done.stderr
    assert invoke("grammar", "lint", own).code == 0


def test_a_refusal_shows_no_secret(invoke: Invoke, tmp_path: Path) -> None:
    key = "hf_" + "A" * 30
    log = tmp_path / "run.log"
    log.write_text("".join(f"loss: {4 - n / 10:.1f} token {key}\n" for n in range(9)), "utf-8")
    result = invoke("parse", str(log))
    assert result.code == 4 and "like 'loss: 4.0" in result.stderr
    assert key not in result.stderr + invoke("grammar", "learn", str(log)).stderr
