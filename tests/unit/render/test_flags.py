"""Flags, spikes and the workings of an MFU in words, beside the metrics that they are about."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.receipts.production import Request, produce
from receipt_cli.render.receipt import render_receipt
from receipt_cli.render.style import Style

ROOT = Path(__file__).resolve().parents[3]
EXAMPLE = ROOT / "fixtures" / "receipts" / "receipt-1.2" / "valid" / "oddities.json"
NASTY: tuple[Any, ...] = (
    None,
    7,
    "\x1b[2J",
    [],
    {},
    [None, 3, "x"],
    {"metrics": {"loss": {"count": "many", "first": [1]}}},
    -1.5,
)


@pytest.fixture
def document() -> dict[str, Any]:
    """The example, its phase with oddities as the primary one."""
    found: dict[str, Any] = json.loads(EXAMPLE.read_bytes())
    found["summary"] = found["phases"][0]["summary"]
    return found


def words(document: dict[str, Any]) -> str:
    return " ".join(render_receipt(document, style=Style(width=100), full=True).split())


def test_a_factor_is_told_once(document: dict[str, Any]) -> None:
    text = words(document)
    assert "2 times too small for the log's own batch and step time: the run has 2 gradient accumulation steps" in text
    assert "contradicts batch size and step time" not in text  # the flag says it better


def test_without_the_flag_the_contradiction_is_told_all_the_same(document: dict[str, Any]) -> None:
    document["summary"]["flags"] = []
    assert "throughput as printed contradicts batch size and step time" in words(document)


def test_spikes_and_marks_are_told_with_the_first(document: dict[str, Any]) -> None:
    document["summary"]["spikes"]["marked_count"] = 1
    text = words(document)
    assert "1 jump of loss, at step 30" in text
    assert "2 jumps of grad norm, first at step" in text
    assert "the trainer marked 1 jump" in text


def test_an_mfu_says_what_it_was_recomputed_from() -> None:
    log = ROOT / "fixtures" / "logs" / "llm-c" / "train-gpt2cu-d12.log"
    text = words(produce(Request(str(log))).document)
    assert "MFU recomputed from 803 M FLOPs of a token, 6N+6LHT, 1 device, a peak of 312 TFLOP/s (log)" in text


@pytest.mark.parametrize("value", NASTY)
@pytest.mark.parametrize("part", ["flags", "spikes", "derived", "consistency"])
def test_whatever_stands_there_the_page_is_written(document: dict[str, Any], part: str, value: Any) -> None:
    broken = copy.deepcopy(document)
    broken["summary"][part] = value
    assert "\x1b" not in render_receipt(broken, style=Style(width=80), full=True)
