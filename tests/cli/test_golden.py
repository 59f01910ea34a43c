"""``receipt golden make`` and ``receipt check --golden``: a recipe of three runs, and what it finds."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke

Log = Callable[..., Path]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Return the path of a log of 80 steps; ``noise`` seeds small differences, ``late`` is added from step 40 on."""

    def write(name: str, noise: int | None = None, late: float = 0.0) -> Path:
        draw, lines = random.Random(noise), []
        for step in range(80):
            loss = 4 - step / 60 + random.Random(step).gauss(0, 0.03) + (late if step >= 40 else 0)
            lines.append(f"iter {step}: loss {loss + (draw.gauss(0, 3e-4) if noise else 0):.4f}, time 20.00ms, mfu 2.00%\n")
        (tmp_path / name).write_text("".join(lines), "utf-8")
        return tmp_path / name

    return write


def test_three_runs_gate_the_next_ones(log: Log, tmp_path: Path, invoke: Invoke) -> None:
    golden = tmp_path / "golden.json"
    runs = [log(f"{number}.log", noise=number) for number in (1, 2, 3)]
    assert invoke("golden", "make", *runs, "-o", golden).code == 0
    assert invoke("schema", "check", golden).code == 0
    given = ("--golden", golden, "--allow-truncated")
    assert invoke("check", log("good.log", noise=9), *given).code == 0
    done = invoke("check", log("bad.log", noise=9, late=0.02), *given)
    assert done.code == 1
    text = done.stdout.decode()
    assert "golden.loss: departs at step 40 (line 41)" in " ".join(text.split())
    assert "loss leaves the golden curve at step 40" in text
    assert "A golden" in text and "B this run" in text


def test_the_page_of_a_github_job_shows_the_departure(
    log: Log, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    golden, page = tmp_path / "golden.json", tmp_path / "summary.md"
    assert invoke("golden", "make", log("one.log"), "-o", golden).code == 0
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(page))
    done = invoke("check", log("bad.log", late=0.02), "--golden", golden, "--json", "--no-annotations")
    (curve,) = done.document["golden"]["curves"]
    departure = curve["departure"]
    assert (done.code, departure["step"], departure["line"], curve["inside"]) == (1, 40, 41, 40)
    assert float(departure["found"]) - float(departure["golden"]) == pytest.approx(0.02)
    text = page.read_text("utf-8")
    assert "### loss leaves the golden curve at step 40" in text
    assert "A golden" in text
    assert f"departs at step 40 \\(line 41\\): {departure['found']}, golden {departure['golden']}" in text


def test_exact_runs_must_print_the_same(log: Log, invoke: Invoke) -> None:
    assert invoke("golden", "make", log("a.log"), log("b.log"), "--exact").code == 0
    done = invoke("golden", "make", log("a.log", noise=1), log("b.log", noise=2), "--exact")
    assert (done.code, "do not print the same" in done.stderr) == (2, True)


def test_a_receipt_cannot_be_golden_and_has_no_steps_to_gate(log: Log, tmp_path: Path, invoke: Invoke) -> None:
    path, receipt, golden = log("one.log"), tmp_path / "one.json", tmp_path / "golden.json"
    assert invoke("parse", path, "-o", receipt).code == 0
    assert invoke("golden", "make", receipt).code == 2
    assert invoke("golden", "make", path, "-o", golden).code == 0
    assert invoke("check", receipt, "--golden", golden, "--allow-truncated").code == 1
    assert invoke("check", receipt, "--golden", golden, "--allow-truncated", "--log", path).code == 0


def test_another_document_is_not_golden(log: Log, tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "x.json").write_text(json.dumps({"schema_version": "golden/1.0", "references": []}), "utf-8")
    assert invoke("check", log("one.log"), "--golden", tmp_path / "x.json").code == 5
