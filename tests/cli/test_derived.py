"""Recomputed figures of real logs: every printed MFU comes out again, and what was printed wrong is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from receipt_cli.receipts.production import Request, produce

Invoke = Callable[..., Any]

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "fixtures" / "logs"
CORPUS = ROOT.parent / "shared" / "corpus" / "seeds" / "nanochat"
SPEEDRUNS = {"dwarkeshsp": 8.0, "chirag9127": 4.0, "jhinpan": 8.0}
POINTS = 0.006
"""Percentage points: half a unit of the second decimal printed, and the rounding of a step time printed in hundredths of a ms."""

needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason="needs the corpus beside the checkout")


@needs_corpus
def test_every_printed_mfu_of_three_whole_runs_is_recomputed(capsys: pytest.CaptureFixture[str]) -> None:
    count, worst = 0, 0.0
    for name, devices in SPEEDRUNS.items():
        product = produce(Request(str(CORPUS / f"{name}_speedrun_2025-10.log")))
        derived = product.document["summary"]["derived"]["mfu_ratio"]
        assert (derived["inputs"]["world_size"], derived["inputs"]["peak_flops_per_s_per_device"]) == (devices, 989e12)
        steps, printed = product.series.curve("mfu_ratio")
        same, recomputed = product.series.recomputed_curve("mfu_ratio")
        assert np.array_equal(steps, same)
        count, worst = count + len(steps), max(worst, float(np.abs(printed - recomputed).max()) * 100)
    with capsys.disabled():
        print(f"\n  {count:,} printed MFU values, none more than {worst:.4f} points from the recomputed one")
    assert count == 64_200 and worst < POINTS


@needs_corpus
def test_a_throughput_of_one_pass_of_two_is_flagged_with_its_factor() -> None:
    document = produce(Request(str(CORPUS / "chirag9127_speedrun_2025-10.log"))).document
    flags = [f for f in document["summary"]["flags"] if f["kind"] == "off_by_integer_factor"]
    assert [(f["metric"], f["factor"], f["reported"]) for f in flags] == [("tokens_per_s", 2.0, 279302.0)]
    assert flags[0]["derived"] == pytest.approx(558_603, abs=1) and "2 gradient accumulation steps" in flags[0]["detail"]
    for name in ("dwarkeshsp", "jhinpan"):
        assert produce(Request(str(CORPUS / f"{name}_speedrun_2025-10.log"))).document["summary"]["flags"] == []


def test_a_printed_mfu_with_causal_attention_comes_out_again() -> None:
    summary = produce(Request(str(LOGS / "llm-c" / "train-gpt2cu-d12.log"))).document["summary"]
    derived = summary["derived"]["mfu_ratio"]
    assert derived["definition"] == "6n_6lht_flops_over_peak_printed"
    assert derived["inputs"]["flops_per_token"] == 6 * 124475904 + 6 * 12 * 768 * 1024
    assert [(c["metric"], c["consistent"]) for c in summary["consistency"]] == [("tokens_per_s", True), ("mfu_ratio", True)]


def test_an_mfu_of_printed_flops_needs_no_count_of_devices() -> None:
    summary = produce(Request(str(LOGS / "torchtitan" / "llama3-2025-no-gradnorm.log"))).document["summary"]
    derived = summary["derived"]["mfu_ratio"]
    assert derived["median"] == pytest.approx(summary["metrics"]["mfu_ratio"]["median"], rel=1e-3)
    assert derived["inputs"]["flops_convention"] == "printed" and derived["inputs"]["peak_source"] == "log"


@pytest.mark.parametrize(
    ("a", "b", "metric"),
    [
        ("nanochat/speedrun-2025-10", "llm-c/train-gpt2cu-d12", "mfu_ratio"),  # two definitions
        ("forgather/console-f4", "nanochat/speedrun-2025-10", "mfu_ratio"),  # 18N
        ("composer/examples-2023-bytes-oom", "torchtitan/llama3-2025-no-gradnorm", "flops_per_s_per_device"),  # none stated
        ("maxtext/step-2023", "megatron-lm/2024-throughput-done", "flops_per_s_per_device"),
    ],
)
def test_flops_of_two_conventions_are_not_compared(invoke: Invoke, a: str, b: str, metric: str) -> None:
    done = invoke("compare", LOGS / f"{a}.log", LOGS / f"{b}.log", "--json")
    (contrast,) = done.document["contrasts"]
    (row,) = [m for m in contrast["metrics"] if m["name"] == metric]
    assert row["outcome"] == "incomparable" and row["reason"].startswith("definition differs")
