"""What the documents that this project grew from print and ask, each document with tests of its own.

000: receipts of MegaCpp; 001: TorchSpec; 003: GPU Flight; 004: Forgather. 002, seed discipline, has
``test_compare_reproducibility.py``. Lines are in the documents' forms; words and numbers are our own.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from receipt_cli.definitions.accelerators import load_peaks
from receipt_cli.emit import TemporalPerformanceTracker
from tests.cli.conftest import Invoke
from tests.tools.logs import receipt_of

STEPS = [f"Step {n} loss {3.2 - n / 100:.4f} lr 1e-4" for n in range(1, 31)]


def last(document: dict[str, Any], metric: str) -> float | None:
    found = document["summary"]["metrics"].get(metric)
    return None if found is None else found["last"]


# ------------------------------------------------------------------------------- 000: receipts of MegaCpp

BARE = [f"[{n:04d}/0080] loss={3.2 - n / 100:.4f} | ppl={24 - n / 10:.2f}" for n in range(1, 81)]
"""A log of an unknown trainer: counters without a name."""


def test_000_every_record_of_an_unknown_trainer_counts() -> None:
    steps = receipt_of(BARE)["summary"]["steps"]
    assert (steps["first"], steps["last"], steps["planned"], steps["record_count"]) == (1, 80, 80, 80)


def test_000_a_nan_of_an_unknown_trainer_is_found() -> None:
    assert receipt_of(BARE)["checks"]["finite_losses"] is True
    assert receipt_of([*BARE[:40], BARE[40].replace("2.7900", "nan"), *BARE[41:]])["checks"]["finite_losses"] is False


def test_000_without_a_price_there_is_no_cost() -> None:
    assert "cost" not in receipt_of(BARE)


TABLE = """\
|===========================================================================|
|                  PyTorch CUDA memory summary, device ID 0                 |
|---------------------------------------------------------------------------|
|            CUDA OOMs: 1            |        cudaMalloc retries: {retries}         |
|===========================================================================|
|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |
|---------------------------------------------------------------------------|
| Allocated memory      |   2048 MiB |   3072 MiB |  91000 MiB |  88952 MiB |
|       from large pool |   2000 MiB |   3000 MiB |  90000 MiB |  88000 MiB |
|---------------------------------------------------------------------------|
| GPU reserved memory   |   4096 MiB |   4608 MiB |   4608 MiB |    512 MiB |
|---------------------------------------------------------------------------|
| Non-releasable memory |    512 MiB |    700 MiB |  50000 MiB |  49488 MiB |
|===========================================================================|"""


def test_000_the_table_of_the_allocator_is_read_in_the_log_of_an_unknown_trainer() -> None:
    log = [*STEPS[:15], *TABLE.format(retries=2).splitlines(), *STEPS[15:], *TABLE.format(retries=5).splitlines()]
    document = receipt_of(log)
    said = {
        "memory_allocated_bytes": 2048 << 20, "peak_memory_allocated_bytes": 3072 << 20, "memory_reserved_bytes": 4096 << 20,
        "peak_memory_reserved_bytes": 4608 << 20, "inactive_split_bytes": 512 << 20, "alloc_retry_count": 5, "oom_count": 1,
    }  # fmt: skip
    assert {name: last(document, name) for name in said} == said
    assert (last(document, "loss"), document["derivation"]["lines"]["unmatched"]) == (2.9, 0)


def test_000_the_allocators_counts_beside_a_step_have_their_metrics() -> None:
    document = receipt_of(f"{line} num_alloc_retries {n // 10} num_ooms 0" for n, line in enumerate(STEPS))
    assert (last(document, "alloc_retry_count"), last(document, "oom_count")) == (2, 0)


def test_000_a_last_line_of_100_kb_hides_nothing_before_it() -> None:
    end = [
        "Traceback (most recent call last):",
        '  File "train.py", line 3, in <module>',
        "ValueError: no such batch",
        "x" * 100_000,
    ]
    tail = receipt_of([*STEPS, *end])["failure"]["log_tail"]
    assert tail[-4:-1] == end[:3]
    assert 0 < len(tail[-1]) <= 2000 and sum(map(len, tail)) <= 8192


PRICES = """\
currency: EUR
as_of: 2026-11-30
source: https://cloud.example/prices
per_device_hour:
  NVIDIA H100 80GB HBM3: 2.5
"""


def smi(folder: Path, lines: str) -> str:
    """Make an ``nvidia-smi`` that prints these lines; return its folder."""
    path = folder / "nvidia-smi"
    path.write_text(f"#!/bin/sh\ncat <<'END'\n{lines}END\n", "utf-8")
    path.chmod(0o755)
    return str(folder)


@pytest.mark.parametrize(
    ("devices", "table", "cost"),
    [
        (4 * "NVIDIA H100 80GB HBM3, 81559, 550.54\n", PRICES, (10.0, "EUR", "https://cloud.example/prices, 2026-11-30")),
        ("NVIDIA A10, 23028, 550.54\n", PRICES, None),
        ("NVIDIA A10, 23028, 550.54\nNVIDIA H100 80GB HBM3, 81559, 550.54\n", PRICES, None),
    ],
    ids=["known", "no-price", "two-kinds"],
)
def test_000_a_price_comes_from_a_dated_table(
    devices: str, table: str, cost: tuple[Any, ...] | None, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "prices.yaml").write_text(table, "utf-8")
    monkeypatch.setenv("PATH", smi(tmp_path, devices), prepend=":")
    monkeypatch.setenv("RECEIPT_PRICES", str(tmp_path / "prices.yaml"))
    done = invoke("header", "-C", tmp_path)
    header = done.document["header"]
    if cost is None:
        assert header["cost"] is None and "price" in done.stderr
    else:
        assert header["cost"] == dict(zip(("hourly_rate", "currency", "source"), cost, strict=True))
        assert header["sources"]["/cost"] == "env:RECEIPT_PRICES"


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ("currency: EUR\n", "has the keys"),
        (PRICES.replace("2026-11-30", "soon"), "as_of"),
        (PRICES.replace("2.5", "free"), "per_device_hour"),
        (PRICES.replace("EUR", "''"), "currency"),
        (PRICES + "  nvidia h100-80GB-HBM3: 3\n", "twice"),
        (None, "cannot be read"),
    ],
)
def test_000_a_table_that_is_wrong_is_refused(
    table: str | None, why: str, tmp_path: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    if table is not None:
        (tmp_path / "prices.yaml").write_text(table, "utf-8")
    monkeypatch.setenv("PATH", smi(tmp_path, "NVIDIA H100 80GB HBM3, 81559, 550.54\n"), prepend=":")
    monkeypatch.setenv("RECEIPT_PRICES", str(tmp_path / "prices.yaml"))
    done = invoke("header", "-C", tmp_path)
    assert done.code not in (0, 70) and why in done.stderr


def test_000_a_receipt_is_stored_in_the_folder_of_its_checkpoint(tmp_path: Path, invoke: Invoke) -> None:
    (tmp_path / "checkpoint-30").mkdir()
    (tmp_path / "run-7.log").write_text("\n".join(STEPS) + "\n", "utf-8")
    assert invoke("parse", tmp_path / "run-7.log", "-o", tmp_path / "checkpoint-30").code == 0
    written = json.loads((tmp_path / "checkpoint-30" / "run-7.receipt.json").read_text("utf-8"))
    assert written["summary"]["steps"]["last"] == 30


def test_000_the_tracker_writes_its_document_where_to_json_is_told(tmp_path: Path) -> None:
    tracker = TemporalPerformanceTracker()
    tracker.start_run(config={"width": 64})
    tracker.record_step(1, {"loss": 2.5}, commits=3, tokens=128)
    tracker.finish_run()
    returned = tracker.to_json(tmp_path / "perf.json")
    assert json.loads((tmp_path / "perf.json").read_text("utf-8")) == json.loads(json.dumps(returned))


# ---------------------------------------------------------------------------------------- 001: TorchSpec


def guide_bar(n: int, end: str) -> str:
    return f"Training: {n}%|{'=' * (n // 5):10}| loss={0.5 - n / 200:.3f}, acc={0.7 + n / 200:.3f}, {end}, epoch=1/10"


def test_001_the_bar_is_read_as_the_guide_prints_it() -> None:
    document = receipt_of([guide_bar(12, "thru=11.6, I=17.5, T=12.9, wait=0.2s, pool=31")])
    said = {
        "loss": 0.44, "train_accuracy": 0.76, "infer_samples_per_s": 11.6, "infer_capacity_samples_per_s": 17.5,
        "train_capacity_samples_per_s": 12.9, "dispatch_wait_s": 0.2, "pooled_sample_count": 31, "epoch": 1,
    }  # fmt: skip
    assert {name: last(document, name) for name in said} == said
    steps = document["summary"]["steps"]
    assert (steps["record_count"], steps["last"], steps["planned"]) == (1, None, None)  # it counts percents, not steps


@pytest.mark.parametrize(
    ("end", "verdict"),
    [
        ("thru=7.9, I=8.1, T=12.9, wait=1.2s, pool=3", "inference"),
        ("thru=12.8, I=17.5, T=12.9, wait=0.0s, pool=64", "training"),
        ("thru=12.8, I=13.1, T=12.9, wait=0.0s, pool=30", "balanced"),
    ],
    ids=["scenario-1", "scenario-2", "balanced"],
)
@pytest.mark.parametrize("alone", [True, False])
def test_001_a_scenario_has_its_verdict(end: str, verdict: str, alone: bool) -> None:
    document = receipt_of([end if alone else guide_bar(n, end) for n in range(8)])
    assert document["summary"]["bottleneck"]["verdict"] == verdict


def test_001_a_throughput_above_both_capacities_is_said() -> None:
    found = receipt_of(guide_bar(n, "thru=99.9, I=17.5, T=12.9, wait=0.1s, pool=30") for n in range(8))["summary"]["bottleneck"]
    assert found["verdict"] == "unknown" and "99.9 samples/s are delivered, yet training can take 12.9" in found["because"]


def record(n: int, step: float, data: float, compute: float) -> str:
    times = {"perf/step_time": step, "perf/data_time": data, "perf/compute_time": compute, "perf/infer_batch_time": 0.35}
    return repr({"train/step": n, "train/avg_loss": 0.5 - n / 100, **times})


@pytest.mark.parametrize(
    ("times", "verdict"),
    [((2.4, 0.2, 2.2), "compute"), ((2.4, 1.9, 0.4), "data"), ((0.3, 0.01, 0.29), "compute"), ((2.4, 0.3, 0.9), "balanced")],
    ids=["compute-dominates", "data-dominates", "printed-to-the-hundredth", "neither"],
)
def test_001_within_a_step_the_larger_part_is_named(times: tuple[float, float, float], verdict: str) -> None:
    document = receipt_of(record(n, *times) for n in range(1, 21))
    assert document["summary"]["bottleneck"]["verdict"] == verdict
    assert last(document, "infer_batch_time_s") == 0.35


# --------------------------------------------------------------------------------------- 003: GPU Flight


# ---------------------------------------------------------------------------------------- 004: Forgather


@pytest.mark.parametrize(
    ("name", "flops_per_s"),
    [
        ("NVIDIA GeForce RTX 3080 Ti", 6.82e13),
        ("NVIDIA GeForce RTX 4070 Ti SUPER", 8.82e13),
        ("NVIDIA GeForce RTX 4080 SUPER", 1.044e14),
    ],
)
def test_004_the_cards_of_the_guide_have_a_peak(name: str, flops_per_s: float) -> None:
    found = load_peaks().find(name)
    assert found is not None and found.flops_per_s == flops_per_s
