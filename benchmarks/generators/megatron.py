"""Megatron-LM: a step line of twelve numbers, and a line of timers for each."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

import numpy as np

from benchmarks.facts import Facts
from benchmarks.generators.numbers import ROWS, clock, decimal, noise, scaled
from benchmarks.generators.stream import in_blocks

BATCH = 256
STEP = (
    "%s [%s] iteration %8d/20000000 | consumed samples: %12d | elapsed time per iteration (ms): %.1f"
    " | throughput per GPU (TFLOP/s/GPU): %.1f | learning rate: %.6E | global batch size: %5d | lm loss: %.6E"
    " | loss scale: 1.0 | grad norm: %.3f | number of skipped iterations: %3d | number of nan iterations: %3d |\n"
)
TIMERS = (
    "time (ms) | forward-compute: %.2f | backward-compute: %.2f | backward-params-all-reduce: %.2f"
    " | backward-embedding-all-reduce: %.2f | optimizer: %.2f | batch-generator: %.2f\n"
)


def step_lines(random: np.random.Generator, first: int, count: int, facts: Facts | None) -> list[str]:
    """Return ``count`` step lines, numbered from ``first``: one of 500 with a rank before it, one of 10,000 with NaN or inf.

    One of 700 is slow (it waited for a checkpoint), so that figures have more digits now and then.
    """
    steps = np.arange(first, first + count)
    slow = steps % 700 == 699
    time = decimal(np.where(slow, 10_500.0, 1_500.0) + noise(random, 0.0, 9.0, count), 1)
    flops = decimal(np.where(slow, 62.0, 430.0) + noise(random, 0.0, 2.0, count), 1)
    mantissa = np.rint(3e6 / (1.0 + steps / 1e7))
    rate = np.where(mantissa >= 1e6, mantissa, 1e6) / 1e10  # d.dddddd of 1e-4
    broken = steps % 10_000 == 9_999
    loss = np.where(broken, np.nan, decimal(1.8 + 6.0 / (1.0 + steps / 1e4) + noise(random, 0.0, 0.02, count), 6))
    norm = np.where(steps % 10_000 == 5_000, np.inf, decimal(np.abs(noise(random, 0.3, 0.05, count)) + 0.001, 3))
    consumed = steps * BATCH
    stamps = clock(steps * 1.51 + random.random(count) / 10, "us")
    prefixes = ["[default7]:" if step % 500 == 0 else "" for step in steps.tolist()]
    zeros = [0] * count
    columns = (
        *(prefixes, stamps, steps.tolist(), consumed.tolist(), time.tolist(), flops.tolist(), rate.tolist()),
        *([BATCH] * count, loss.tolist(), norm.tolist(), zeros, broken.astype(int).tolist()),
    )
    if facts is not None:
        facts.steps(first, count)
        facts.add("step_time_s", scaled(time, 1, -3), steady=True)
        facts.add("flops_per_s_per_device", scaled(flops, 1, 12), steady=True)
        facts.add("learning_rate", rate)
        facts.add("loss", loss)
        facts.add("grad_norm", norm)
        facts.add("loss_scale", np.ones(count))
        facts.add("samples_total", consumed.astype(np.float64))
        facts.add("global_batch_size", np.full(count, float(BATCH)))
        facts.add("skipped_step_count", np.zeros(count))
        facts.add("nan_step_count", broken.astype(np.float64))
    return list(map(STEP.__mod__, zip(*columns, strict=True)))


def alternating(steps: Iterable[str], others: Iterable[str]) -> str:
    """Return lines with another behind each."""
    return "".join(line for pair in zip(steps, others, strict=True) for line in pair)


@in_blocks
def blocks(random: np.random.Generator, facts: Facts | None) -> Iterator[str]:
    """Yield step lines and lines of timers in turn."""
    for first in itertools.count(1, ROWS):
        steps = step_lines(random, first, ROWS, facts)
        timers = (abs(noise(random, m, s)).tolist() for m, s in ((400, 9), (900, 9), (90, 20), (0.5, 0.2), (30, 1), (8, 3)))
        yield alternating(steps, map(TIMERS.__mod__, zip(*timers, strict=True)))
