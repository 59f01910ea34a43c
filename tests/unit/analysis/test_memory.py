"""How memory developed: the rules of ``memory/1`` on lines of Megatron-LM, torchtitan, DeepSpeed, Composer and fairseq."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from tests.tools.logs import receipt_of

MIB = 2**20
STEP = (
    " iteration {i:8d}/{n:8d} | consumed samples: {i:12d} | elapsed time per iteration (ms): 410.5 | learning rate: 1.0E-05 |"
    " global batch size:     8 | lm loss: 9.0E+00 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
)
MEMORY = (
    "[Rank {rank}] (after {i} iterations) memory (MB) | allocated: {a} | max allocated: {ma} | reserved: {r} | "
    "max reserved: {r}\n"
)
TITAN = (
    "[titan] 2025-07-01 10:00:00,000 - root - INFO - step: {i:2d}  loss:  8.0  grad_norm:  1.0  memory: {m:.2f}GiB(15.5%)"
    "  tps: 1,000  tflops: 10.00  mfu: 1.00%\n"
)
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {asked}. GPU 0 has a total capacity of 79.15 GiB of which "
    "1.02 GiB is free. Including non-PyTorch memory, this process has 77.32 GiB memory in use. Of the allocated memory 60.00 GiB "
    "is allocated by PyTorch, and {idle} is reserved by PyTorch but unallocated.\n"
)


def megatron(
    allocated: Callable[[int], float], reserved: Callable[[int], float], n: int = 40, ranks: tuple[int, ...] = (0,)
) -> str:
    """Return iterations with the memory of ranks behind each, in MiB; rank r holds r MiB more."""
    lines = []
    for i in range(1, n + 1):
        lines.append(STEP.format(i=i, n=n))
        lines += [MEMORY.format(rank=r, i=i, a=allocated(i) + r, ma=allocated(i) + r + 1, r=reserved(i) + r) for r in ranks]
    return "".join(lines)


def story(document: dict[str, Any]) -> dict[str, Any]:
    found = document["summary"]["memory"]
    assert found["rule"] == "memory/1"
    return dict(found)


def noisy(level: float, share: float) -> Callable[[int], float]:
    draws = [random.Random(i).uniform(1 - share, 1 + share) for i in range(100)]
    return lambda i: round(level * draws[i], 2)


@pytest.mark.parametrize(
    ("allocated", "reserved", "reading", "growing"),
    [
        pytest.param(lambda i: 1000, lambda i: 2000, "steady", None, id="steady"),
        pytest.param(lambda i: 1000 + (i % 3) / 10, lambda i: 2000, "steady", None, id="steady-but-for-a-trace"),
        pytest.param(lambda i: 1000 + 20 * i, lambda i: 3000, "growth", "allocated", id="growth-inside-the-cache"),
        pytest.param(lambda i: 1000 + 20 * i, lambda i: 2000 + 20 * i, "growth", "allocated", id="growth-of-both"),
        pytest.param(lambda i: 1000, lambda i: 2000 + 40 * i, "fragmentation", "cache", id="fragmentation"),
        pytest.param(lambda i: 1000 + 0.7 * i, lambda i: 2000, "unknown", None, id="neither-still-nor-a-climb"),
        pytest.param(noisy(1000, 0.3), lambda i: 2000, "unknown", None, id="noise"),
        pytest.param(lambda i: 2000 - 10 * i, lambda i: 3000, "steady", "cache", id="what-falls-does-not-climb"),
    ],
)  # fmt: skip
def test_the_reading(
    allocated: Callable[[int], float], reserved: Callable[[int], float], reading: str, growing: str | None
) -> None:
    found = story(receipt_of(megatron(allocated, reserved)))
    assert (found["reading"], found["growing"]) == (reading, growing), found


def test_the_figures() -> None:
    figures = story(receipt_of(megatron(lambda i: 1000 + i, lambda i: 2000 + 2 * i, n=100)))["figures"]
    assert figures["allocated_first_bytes"] == 1011 * MIB  # ten steps warm up
    assert figures["allocated_last_bytes"] == figures["allocated_max_bytes"] == 1100 * MIB
    assert (figures["allocated_slope_bytes_per_step"], figures["reserved_slope_bytes_per_step"]) == (MIB, 2 * MIB)
    assert figures["peak_allocated_last_bytes"] == 1101 * MIB


def test_the_peaks_of_ranks() -> None:
    found = story(receipt_of(megatron(lambda i: 1000, lambda i: 2000, ranks=(0, 3, 7))))
    assert (found["figures"]["rank_peak_min_bytes"], found["figures"]["rank_peak_max_bytes"]) == (2000 * MIB, 2007 * MIB)
    assert found["figures"]["allocated_last_bytes"] == 1000 * MIB  # of one rank, never of several in turn
    assert found["reading"] == "steady"


def test_too_few_values() -> None:
    found = story(receipt_of(megatron(lambda i: 1000 * i, lambda i: 2000 * i, n=7)))
    assert (found["reading"], found["because"]) == (
        "unknown",
        "values after warm-up: 6 of allocated and 6 of reserved memory, too few to tell a course",
    )


def test_a_restart_ends_the_course() -> None:
    first = megatron(lambda i: 1000 + 20 * i, lambda i: 3000)
    second = "".join(STEP.format(i=i, n=40) + MEMORY.format(rank=0, i=i, a=500 + i, ma=600 + i, r=3000) for i in range(31, 41))
    found = story(receipt_of(first + second))
    assert (found["reading"], found["growing"], "restarted" in found["because"]) == ("unknown", None, True)
    assert not [name for name in found["figures"] if "slope" in name]


def test_the_hook_of_cppmega() -> None:
    hook = "[mem_profile] step_{i}_post: alloc={a:.3f} GiB reserved=40.000 GiB max_alloc={a:.3f} GiB max_reserved=40.000 GiB\n"
    setup = hook.replace("step_{i}_post", "after_setup_model_and_optimizer").format(a=3)
    log = setup + "".join(hook.format(i=i, a=10 + i / 2) + STEP.format(i=i, n=30) for i in range(1, 31))
    found = story(receipt_of(log))
    assert (found["reading"], found["growing"]) == ("growth", "allocated")
    assert found["figures"]["allocated_slope_bytes_per_step"] == 2**29


def test_one_kind_alone_is_no_story() -> None:
    document = receipt_of("".join(TITAN.format(i=i, m=10 + i) for i in range(1, 30)))
    assert document["summary"]["metrics"]["peak_memory_reserved_bytes"]["record_count"] == 27
    assert document["summary"]["memory"] is None


def test_what_the_allocator_counts() -> None:
    retries = "[titan] 2025-07-01 10:00:00,000 - root - WARNING - {n} CUDA memory allocation retries.\n"
    log = "".join(TITAN.format(i=i, m=10) + (retries.format(n=i - 9) if i > 9 else "") for i in range(1, 30))
    refused = "[titan] 2025-07-01 10:00:00,000 - root - WARNING - 2 CUDA OOM errors thrown.\n"
    found = story(receipt_of(log + refused + TITAN.format(i=30, m=10)))
    assert found["figures"] == {"alloc_retry_count": 20, "oom_count": 2}  # the allocator counts on: the last is all
    assert found["reading"] == "unknown"


def test_counts_since_the_last_record_add_up() -> None:
    step = (
        "[2025-01-02 03:04:05,678] [INFO] [logging.py:96:log_dist] [Rank 0] step={i}, skipped=0, lr=[0.001], mom=[(0.9, 0.999)]\n"
    )
    flush = (
        "[2025-01-02 03:04:05,678] [WARNING] [stage3.py:2160:step] {n} pytorch allocator cache flushes since last step. this\n"
    )
    log = "".join(step.format(i=10 * i) + (flush.format(n=i) if i in (2, 3) else "") for i in range(1, 9))
    assert story(receipt_of(log))["figures"]["alloc_retry_count"] == 5


@pytest.mark.parametrize(
    ("asked", "idle", "reading", "says"),
    [
        pytest.param(
            "2.00 GiB", "16.00 GiB", "fragmentation", "enough, but in no piece that was large enough", id="enough-was-idle"
        ),
        pytest.param("2.00 GiB", "900.00 MiB", "steady", "too little, wherever it lay", id="nothing-was-left"),
    ],
)
def test_what_it_says_where_it_ran_out(asked: str, idle: str, reading: str, says: str) -> None:
    found = story(receipt_of(megatron(lambda i: 1000, lambda i: 2000) + OOM.format(asked=asked, idle=idle), exit_code=1))
    assert (found["reading"], says in found["because"]) == (reading, True), found
    assert (found["figures"]["oom_requested_bytes"], found["figures"]["oom_allocated_bytes"]) == (2 * 2**30, 60 * 2**30)


def test_the_spelling_before_2023() -> None:
    message = (
        "RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 15.90 GiB total capacity; 10.00 GiB already "
        "allocated; 9.88 MiB free; 15.00 GiB reserved in total by PyTorch)\n"
    )
    found = story(receipt_of("".join(STEP.format(i=i, n=9) for i in range(1, 9)) + message, exit_code=1))
    assert (found["reading"], found["figures"]["oom_reserved_unallocated_bytes"]) == ("fragmentation", 5 * 2**30)


def test_growth_stands_whatever_was_idle() -> None:
    log = megatron(lambda i: 1000 + 50 * i, lambda i: 4000) + OOM.format(asked="2.00 GiB", idle="16.00 GiB")
    assert story(receipt_of(log, exit_code=1))["reading"] == "growth"


def test_the_table_of_the_allocator() -> None:
    step = (
        "2024-01-02 03:04:{i:02d} | INFO | train_inner | epoch 001:     {i} / 99 loss=9.0, nll_loss=8.5, ppl=362, wps=1000, "
        "ups=2, wpb=500, bsz=16, num_updates={i}, lr=0.001, gnorm=1.0, train_wall=1, wall=10\n"
    )
    table = (
        "|===========================================================================|\n"
        "|                  PyTorch CUDA memory summary, device ID 0                 |\n"
        "|---------------------------------------------------------------------------|\n"
        "|            CUDA OOMs: 3            |        cudaMalloc retries: 5         |\n"
        "|===========================================================================|\n"
        "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n"
        "|---------------------------------------------------------------------------|\n"
        "| Allocated memory      |   1024 MiB |   2048 MiB |     99 GiB |     98 GiB |\n"
        "|       from large pool |   1000 MiB |   2000 MiB |     90 GiB |     89 GiB |\n"
        "|---------------------------------------------------------------------------|\n"
        "| GPU reserved memory   |   4096 MiB |   4096 MiB |   4096 MiB |      0 B   |\n"
        "|---------------------------------------------------------------------------|\n"
        "| Non-releasable memory |    512 KiB |   1024 MiB |     50 GiB |     49 GiB |\n"
        "|===========================================================================|\n"
    )
    log = "".join(step.format(i=i) for i in range(1, 20)) + table + "".join(step.format(i=i) for i in range(20, 40))
    figures = story(receipt_of(log))["figures"]
    assert (figures["oom_count"], figures["alloc_retry_count"], figures["inactive_split_bytes"]) == (3, 5, 2**19)
    assert (figures["allocated_last_bytes"], figures["reserved_last_bytes"]) == (2**30, 2**32)
