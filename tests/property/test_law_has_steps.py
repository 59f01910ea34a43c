"""Law 4: ``has_steps`` is false only if the log proves it; a log that nobody understood says nothing of steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from receipt_cli.receipts.production import Request, produce
from tests.tools.examples import costly

pytestmark = pytest.mark.usefixtures("one_engine")

ROOT = Path(__file__).resolve().parents[2]
WORDS = ("step", "epoch", "Update", "pass", "round", "xyz", "")
FIGURES = ("loss", "reward", "T_a", "score", "qux", "")


def receipt(text: str, folder: Path) -> dict[str, Any]:
    path = folder / "run.log"
    path.write_text(text, "utf-8")
    return produce(Request(path=str(path), workers=1)).document


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=costly(60), deadline=None)
@given(
    word=st.sampled_from(WORDS),
    figure=st.sampled_from(FIGURES),
    joint=st.sampled_from([" ", ": ", "=", " | "]),
    count=st.integers(1, 12),
    rest=st.sampled_from(["", "Traceback (most recent call last):\nValueError: no\n", "Training complete\n"]),
)
def test_no_unknown_log_says_that_no_step_was_taken(
    word: str, figure: str, joint: str, count: int, rest: str, tmp_path: Path
) -> None:
    lines = "".join(f"{word}{joint}{n} {figure}{joint}{4 - n / 50:.4f}\n" for n in range(count))
    document = receipt(lines + rest, tmp_path)
    assert document["checks"]["has_steps"] is not False
    if document["checks"]["has_steps"] is None:
        told = next(p for p in document["derivation"]["problems"]["first"] if p["kind"] == "no_step_recognised")
        assert "/checks/has_steps" in told["fields"]
        assert document["summary"] is None or document["summary"]["steps"]["record_count"] is None
        assert document["failure"] is None or rest.startswith("Traceback")


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        ("mmengine/crash-before-steps-console", False),
        ("deepspeed/engine-config-error", None),
        ("mlperf/mllog-success", None),
        ("sentence-transformers/old-fit-crash-6.2", None),
        ("nanogpt/char-ok", True),
    ],
)
def test_false_is_proven_by_a_known_trainer_that_ended_before_anything_counted(
    log: str, expected: bool | None, tmp_path: Path
) -> None:
    text = (ROOT / "fixtures" / "logs" / f"{log}.log").read_text("utf-8")
    assert receipt(text, tmp_path)["checks"]["has_steps"] is expected


def test_a_known_trainer_whose_log_breaks_off_proves_nothing(tmp_path: Path) -> None:
    text = (ROOT / "fixtures" / "logs" / "mmengine" / "crash-before-steps-console.log").read_text("utf-8")
    document = receipt(text[: text.index("Traceback (most")], tmp_path)
    assert document["checks"]["has_steps"] is None


@pytest.mark.parametrize(
    "lines",
    [
        ["Step 800/3000; acc:  69.58; loss: 14.93; lr: 0.00100"],
        ["Step 50, Loss: 4.8445", "Step 100, Loss: 4.0545"],
    ],
)
def test_one_or_two_records_of_an_unambiguous_form_are_read(lines: list[str], tmp_path: Path) -> None:
    document = receipt("".join(f"{line}\n" for line in lines), tmp_path)
    assert (document["checks"]["has_steps"], document["summary"]["steps"]["record_count"]) == (True, len(lines))
