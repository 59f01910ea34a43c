"""Rows of the card that no log of the goldens has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import receipt_cli
from receipt_cli.render.card import PROBLEMS, find_doubts, render_card
from receipt_cli.render.style import Style

DOUBTED = {"metric": "steps_per_s", "reported": 0.334, "derived": 0.16, "consistent": False}


def receipt(**summary: Any) -> dict[str, Any]:
    steps = {"first": 10, "last": 60, "planned": 1000, "record_count": 6}
    return {"summary": {"steps": steps, "metrics": {}, **summary}, "checks": {"has_steps": True}, "derivation": {}}


def row(document: dict[str, Any], label: str) -> str:
    lines = render_card(document, Style()).splitlines()
    return next((line[12:] for line in lines if line.startswith(f"  {label} ")), "")


def test_the_highest_loss_has_its_line() -> None:
    loss = {"first": 14.127, "last": 16.97, "min": 14.127, "max": 76.77, "record_count": 6, "places": {"max_line": 2309}}
    assert row(receipt(metrics={"loss": loss}), "loss") == "14.13 → 16.97 (highest 76.77, log:2309)"
    assert row(receipt(metrics={"loss": {**loss, "places": {}}}), "loss") == "14.13 → 16.97 (highest 76.77)"
    both = {"loss": loss, "val_loss": {"first": 14.127, "last": 12.9, "min": 12.5, "max": 14.127, "record_count": 6}}
    assert row(receipt(metrics=both), "loss") == "14.13 → 16.97 (highest 76.77) · val 14.13 → 12.90 (best 12.50)"


def test_a_contradicted_speed_gives_way_to_the_measured_one() -> None:
    document = receipt(consistency=[DOUBTED], metrics={"steps_per_s": {"median": 0.334}})
    assert row(document, "speed") == "6.25 s/step"
    assert find_doubts(document, Style()) == ["steps as printed contradicts batch size and step time"]
    document["derivation"] = {"problems": {"kinds": {"rate_contradicted": 1}}}
    assert find_doubts(document, Style()) == ["steps/s as printed contradicts steps ÷ time: left out"]


def test_a_contradicted_mfu_is_a_doubt_of_its_own() -> None:
    document = receipt(consistency=[{**DOUBTED, "metric": "mfu_ratio"}, DOUBTED])
    document["derivation"] = {"problems": {"kinds": {"rate_contradicted": 1}}}
    assert find_doubts(document, Style()) == [
        "steps/s as printed contradicts steps ÷ time: left out", "MFU as printed contradicts batch size and step time",
    ]  # fmt: skip


def test_every_problem_has_its_words() -> None:
    sources = [path.read_text("utf-8") for path in Path(receipt_cli.__file__).parent.rglob("*.py")]
    kinds = {kind for source in sources for kind in re.findall(r"(?:\bProblem|Doubt\.of)\(\s*\"(\w+)\"", source)}
    assert not kinds - PROBLEMS.keys() - {"no_step_recognised", "too_few_records"}


def test_a_message_that_only_repeats_the_cause_is_left_out() -> None:
    document = receipt()
    document["failure"] = {"reason": "cuda_oom", "line_number": 63, "message": "out of memory"}
    shown = render_card(document, Style()).splitlines()
    assert shown[0] == "✗ failed    GPU out of memory after step 60 (log:63)"
    assert shown[1].startswith("  run")


def test_a_line_of_the_log_links_to_the_log() -> None:
    document = receipt()
    document["failure"] = {"reason": "cuda_oom", "line_number": 63}
    for log, link in (("run.log", Path("run.log").absolute().as_uri()), ("-", ""), (None, "")):
        shown = render_card(document, Style(color=True), log=log)
        assert (f";{link}\x1b" in shown) if link else "file:" not in shown


def test_a_later_line_shows_the_last_step() -> None:
    document = receipt(steps={"first": 0, "last": 30, "reached": 37, "planned": 50, "record_count": 50})
    document["checks"]["completed"] = True
    assert render_card(document, Style()).startswith("✓ finished  after step 37 of 50")
    assert row(document, "steps") == "37 of 50, last logged 30"


def test_steps_from_zero_ran_all() -> None:
    document = receipt(steps={"first": 0, "last": 49, "planned": 50, "record_count": 50})
    document["checks"]["completed"] = True
    assert render_card(document, Style()).startswith("✓ finished  50 of 50 steps")
    assert row(document, "steps") == "0–49 of 50"
