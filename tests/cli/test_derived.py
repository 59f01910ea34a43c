"""Recomputed figures: every printed MFU comes out again, and two definitions are not compared."""

from pathlib import Path

import pytest

from receipt_cli.receipts.production import Request, produce
from tests.cli.conftest import Invoke

ROOT = Path(__file__).resolve().parents[2]
LOGS = ROOT / "fixtures" / "logs"
POINTS = 0.006
"""Percentage points: half a unit of the second decimal printed, and the rounding of a step time printed in hundredths of a ms."""


def test_every_printed_mfu_is_recomputed() -> None:
    product = produce(Request(str(LOGS / "nanochat" / "speedrun-2025-10.log")))
    derived = product.document["summary"]["derived"]["mfu_ratio"]
    assert derived["inputs"]["peak_flops_per_s_per_device"] == 989e12
    printed = product.document["summary"]["metrics"]["mfu_ratio"]
    for name in ("first", "last", "min", "max", "median"):
        assert abs(printed[name] - derived[name]) * 100 < POINTS


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
