"""The bottleneck and the memory story as people read them."""

from __future__ import annotations

from typing import Any

import pytest

from receipt_cli.render.receipt.diagnosis import write_bottleneck, write_memory
from receipt_cli.render.terminal.page import Page
from receipt_cli.render.terminal.style import Style

GIB = 2.0**30
STORY = {
    "rule": "memory/1",
    "reading": "fragmentation",
    "figures": {
        "allocated_first_bytes": GIB,
        "allocated_last_bytes": GIB,
        "reserved_first_bytes": 2 * GIB,
        "reserved_last_bytes": 3 * GIB,
        "alloc_retry_count": 7.0,
        "oom_count": 1.0,
        "rank_peak_min_bytes": GIB,
        "rank_peak_max_bytes": 3 * GIB,
    },
    "growing": "cache",
    "because": "allocated memory changes by +0.0 %",
}


def page() -> Page:
    return Page(Style(color=False, unicode=True, width=100))


def test_a_verdict_and_why() -> None:
    shown = page()
    because = "data takes 1.5 s of 2 s a step (75 %)"
    write_bottleneck(shown, {"summary": {"bottleneck": {"verdict": "data", "medians": {}, "because": because}}})
    assert shown.text() == f"bottleneck   data (steps wait for data)\n             {because}\n"


def test_a_memory_story() -> None:
    shown = page()
    write_memory(shown, {"summary": {"memory": STORY}})
    text = " ".join(shown.text().split())
    assert text == (
        "memory fragmentation (the cache cannot use again what it holds) · allocated 1 GiB reserved 2 GiB → 3 GiB"
        " · 7 retries · 1 refusal · peak of ranks 1 GiB – 3 GiB grows most: cache allocated memory changes by +0.0 %"
    )


@pytest.mark.parametrize("block", [None, {}, [], {"verdict": 3, "reading": 4}, "text"])
def test_what_is_not_there_is_not_told(block: Any) -> None:
    shown = page()
    write_bottleneck(shown, {"summary": {"bottleneck": block}})
    write_memory(shown, {"summary": {"memory": block}})
    assert shown.text() == ""


def test_no_control_sequence_comes_through() -> None:
    shown = page()
    bad = {"verdict": "\x1b[2Jdata", "reading": "\x1b[2Jgrowth", "because": "\x1b]0;x\x07 why", "growing": "\x1b[31m"}
    write_bottleneck(shown, {"summary": {"bottleneck": bad}})
    write_memory(shown, {"summary": {"memory": bad}})
    assert "\x1b" not in shown.text()
    assert "\x07" not in shown.text()
