"""What holds a run up: the rules of ``bottleneck/1`` on lines of TorchSpec, Megatron-LM, detectron2 and verl."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.tools.logs import receipt_of


def torchspec(
    n: int = 40,
    *,
    infer: float = 9.0,
    train: float = 9.0,
    wait: float = 0.0,
    pool: Callable[[int], int] = lambda i: 20,
    delivered: float | None = None,
) -> str:
    """Return the bars and the timing lines of TorchSpec: a step takes 1.6 s, of which data takes 0.2 s."""
    delivered = min(infer, train) if delivered is None else delivered
    pair = (
        "[2026-04-20 09:00:12,435] loop.py:340 INFO TIMING step={i}: step=1.600s data=0.200s compute=1.300s "
        "[fwd=0.500s bwd=0.700s opt=0.100s] dispatch={timed:.3f}s\n"
        "Training:  10%|#         | {i}/{n} [00:12<07:15,  1.60s/step, loss=1.809, acc=0.312, acc_len=1.03, thru={thru:.1f}, "
        "I={infer:.1f}, T={train:.1f}, wait={wait:.1f}s, pool={pool}, epoch=1/3]\n"
    )
    return "".join(
        pair.format(i=i, n=n, thru=delivered, infer=infer, train=train, wait=wait, pool=pool(i), timed=wait + (i % 8 == 7) / 1000)
        for i in range(1, n + 1)
    )


def found(document: dict[str, Any]) -> dict[str, Any]:
    block = document["summary"]["bottleneck"]
    assert block["rule"] == "bottleneck/1"
    return dict(block)


@pytest.mark.parametrize(
    ("given", "verdict", "says"),
    [
        pytest.param({"infer": 5.0, "train": 10.0, "wait": 1.6}, "inference", "waits 1.6 s for samples", id="starved"),
        pytest.param({"infer": 5.0, "train": 10.0, "wait": 0.1}, "inference", "can make 5 samples/s", id="by-capacity"),
        pytest.param({"infer": 12.0, "train": 10.0}, "training", "training can take 10", id="slow-training"),
        pytest.param({"infer": 10.5, "train": 10.0}, "balanced", "within 10 %", id="alike"),
        pytest.param({"infer": 10.5, "train": 10.0, "pool": lambda i: 4 * i}, "training", "of samples grows from", id="pool"),
        pytest.param({"infer": 12.0, "train": 10.0, "wait": 0.8}, "unknown", "contradict", id="waits-though-it-is-slower"),
        pytest.param({"infer": 5.0, "train": 10.0, "wait": 0.0}, "unknown", "yet training waits 0 s", id="never-waits"),
        pytest.param({"infer": 5.0, "train": 10.0, "wait": 0.3, "pool": lambda i: 4 * i}, "unknown", "contradict", id="all"),
        pytest.param({"infer": 18.0, "train": 13.0, "delivered": 99.0}, "unknown", "yet training can take 13", id="too-much"),
        pytest.param({"infer": 18.0, "train": 13.0, "delivered": 17.5, "pool": lambda i: 4 * i}, "training", "13", id="kept"),
        pytest.param({"infer": 0.0, "train": 0.0}, "balanced", "data takes 0.2 s of 1.6 s", id="no-capacities-were-measured"),
    ],
)  # fmt: skip
def test_where_inference_feeds_training(given: dict[str, Any], verdict: str, says: str) -> None:
    block = found(receipt_of(torchspec(**given)))
    assert (block["verdict"], says in block["because"]) == (verdict, True), block


def test_what_it_rests_on() -> None:
    medians = found(receipt_of(torchspec(infer=8.0, train=10.0, wait=0.4, pool=lambda i: 100 - i)))["medians"]
    assert medians["dispatch_wait_ratio"] == 0.2
    assert medians["infer_over_train_ratio"] == 0.8
    assert medians["pooled_sample_slope"] == -1.0
    assert medians["data_time_ratio"] == 0.125
    assert (medians["step_time_s"], medians["compute_time_s"], medians["forward_time_s"]) == (1.6, 1.3, 0.5)


def test_a_pool_that_only_swings_does_not_grow() -> None:
    block = found(receipt_of(torchspec(pool=lambda i: (7 * i * i) % 40)))
    assert (block["verdict"], "grows" in block["because"]) == ("balanced", False)


@pytest.mark.parametrize(("log", "verdict"), [("waits-for-inference-2026", "inference"), ("pool-grows-2026", "training")])
def test_a_simulated_queue(root: Path, log: str, verdict: str) -> None:
    block = found(receipt_of((root / f"fixtures/logs/torchspec/{log}.log").read_bytes()))
    assert (block["verdict"], "the pool of samples grows" in block["because"]) == (verdict, verdict == "training")


def megatron(n: int, ms: float, *timers: str) -> str:
    """Return iterations of ``ms``, each with the timers behind it."""
    line = (
        " iteration {i:8d}/{n:8d} | consumed samples: {i:12d} | elapsed time per iteration (ms): {ms} | learning rate: 1.0E-05 |"
        " global batch size:     8 | lm loss: 9.0E+00 | number of skipped iterations:   0 | number of nan iterations:   0 |\n"
    )
    return "".join(line.format(i=i, n=n, ms=ms) + "".join(timer + "\n" for timer in timers) for i in range(1, n + 1))


OLD = (
    "time (ms) | forward-compute: {0}.25 | forward-recv: 5.25 | backward-compute: {1}.25 | optimizer: 10.25 | "
    "batch-generator: {2}"
)
NEW = (
    "(min, max) time across ranks (ms):",
    "    forward-backward ...............................: (300.25, {0}.25)",
    "    forward-compute ................................: (100.25, 110.25)",
    "    batch-generator ................................: (1.25, {1}.25)",
    "    optimizer ......................................: (10.25, 10.50)",
)


@pytest.mark.parametrize(
    ("timers", "verdict", "data"),
    [
        pytest.param((OLD.format(150, 200, 2.25),), "compute", 0.00225, id="compute"),
        pytest.param((OLD.format(290, 100, 180.25),), "data", 0.18025, id="data-inside-the-forward-pass"),
        pytest.param((OLD.format(190, 180, 40.25),), "balanced", 0.04025, id="in-between"),
        pytest.param((OLD.format(20, 30, 2.25),), "unknown", 0.00225, id="waits-for-other-ranks"),
        pytest.param(tuple(line.format(390, 4) for line in NEW), "compute", 0.00425, id="of-all-ranks"),
        pytest.param(tuple(line.format(390, 100) for line in NEW), "data", 0.10025, id="the-slowest-rank-counts"),
    ],
)
def test_timers_of_megatron(timers: tuple[str, ...], verdict: str, data: float) -> None:
    block = found(receipt_of(megatron(20, 410.5, *timers)))
    assert (block["verdict"], block["medians"]["data_time_s"]) == (verdict, data), block


def test_timers_beside_a_setup_are_of_no_step() -> None:
    setup = "(min, max) time across ranks (ms):\n    model-and-optimizer-setup ......................: (3283.61, 3283.61)\n"
    document = receipt_of(setup + megatron(20, 410.5, *(line.format(390, 4) for line in NEW)))
    assert document["summary"]["metrics"]["forward_backward_time_s"]["record_count"] == 18
    assert document["summary"]["other_metrics"] == {}
    assert document["derivation"]["problems"]["count"] == 0


def detectron2(n: int, time: str, data: str) -> str:
    start = "[03/05 09:12:30 detectron2]: Rank of current process: 0. World size: 2\n"
    line = (
        "[03/05 09:12:45 d2.utils.events]:  eta: 0:05:34  iter: {i}  total_loss: 1.868  loss_cls: 0.9  time: {time}"
        "  last_time: 0.2067  data_time: {data}  last_data_time: 0.0041   lr: 0.00039  max_mem: 3512M\n"
    )
    return start + "".join(line.format(i=19 + 20 * i, time=time if i % 8 else "0.1999", data=data) for i in range(n))


@pytest.mark.parametrize(
    ("n", "time", "data", "verdict"),
    [
        pytest.param(20, "0.2000", "0.0098", "compute", id="up-to-a-twentieth"),
        pytest.param(20, "0.2000", "0.0999", "data", id="half"),
        pytest.param(20, "0.2000", "0.0402", "data", id="from-a-fifth-on"),
        pytest.param(20, "0.2000", "0.0201", "balanced", id="a-tenth"),
        pytest.param(20, "0.2000", "0.04", "unknown", id="printed-too-coarsely"),
        pytest.param(20, "0.2000", "0.3001", "unknown", id="more-than-the-whole"),
        pytest.param(4, "0.2000", "0.1001", "unknown", id="too-few-records"),
    ],
)
def test_data_time_within_a_step(n: int, time: str, data: str, verdict: str) -> None:
    block = found(receipt_of(detectron2(n, time, data)))
    assert block["verdict"] == verdict, block


def test_no_figures_no_verdict() -> None:
    assert receipt_of(megatron(20, 410.5))["summary"]["bottleneck"] is None


def test_generation_that_takes_most_of_a_step(root: Path) -> None:
    block = found(receipt_of((root / "fixtures/logs/verl/grpo-ray-2025.log").read_bytes()))
    assert (block["verdict"], round(block["medians"]["generation_time_ratio"], 2)) == ("inference", 0.59)


def test_figures_beyond_float64_are_left_out() -> None:
    line = "[receipt] step={i} loss=1.5 data_time_s=1e+300 step_time_s=1e-300\n"
    block = found(receipt_of("".join(line.format(i=i) for i in range(20))))
    assert (block["verdict"], set(block["medians"])) == ("unknown", {"data_time_s", "step_time_s"})
