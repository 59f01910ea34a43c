"""torchtitan on eight ranks that all print, each line behind the launcher's label, a time and a logger's name."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from benchmarks.facts import Facts
from benchmarks.generators.numbers import ROWS, clock, decimal, noise, scaled
from benchmarks.generators.stream import in_blocks

RANKS = 8
STEPS = ROWS // RANKS
"""Steps of one block."""
LINE = (
    "[rank%d]:[titan] %s - root - INFO - step: %2d  loss: %8.5f  grad_norm: %7.4f  memory: %5.2fGiB(%.2f%%)"
    "  tps: %s  tflops: %.2f  mfu: %.2f%%\n"
)
GIB = 1 << 30


@in_blocks
def blocks(random: np.random.Generator, facts: Facts | None) -> Iterator[str]:
    """Yield the lines of all ranks, step by step, the ranks of a step in any order; facts are of rank 0."""
    for first in itertools.count(1, STEPS):
        steps = np.arange(first, first + STEPS)
        order = np.argsort(random.random((STEPS, RANKS)), axis=1)
        loss = decimal(2.0 + 8.0 / (1.0 + steps / 1e4) + np.abs(random.normal(0.0, 0.02, STEPS)), 5)
        norm = decimal(np.abs(random.normal(1.5, 0.3, STEPS)) + 0.01, 4)
        memory = decimal(np.abs(noise(random, 61.0, 0.8)), 2).reshape(STEPS, RANKS)
        speed = np.rint(noise(random, 10_200.0, 200.0)).reshape(STEPS, RANKS)
        flops = decimal(noise(random, 350.0, 6.0), 2).reshape(STEPS, RANKS)
        share = decimal(noise(random, 38.0, 0.7), 2).reshape(STEPS, RANKS)
        stamps = clock((steps[:, None] * 0.8 + random.random((STEPS, RANKS)) / 50).ravel(), "ms")
        rows = zip(
            *(order.ravel().tolist(), [stamp.replace(".", ",") for stamp in stamps], np.repeat(steps, RANKS).tolist()),
            *(np.repeat(loss, RANKS).tolist(), np.repeat(norm, RANKS).tolist(), memory.ravel().tolist()),
            *((memory / 0.8).ravel().tolist(), [f"{int(n):,}" for n in speed.ravel().tolist()]),
            *(flops.ravel().tolist(), share.ravel().tolist()),
            strict=True,
        )
        if facts is not None:
            zero = order == 0
            facts.steps(first, STEPS)
            facts.add("loss", loss)
            facts.add("grad_norm", norm)
            facts.add("peak_memory_reserved_bytes", np.rint(memory[zero] * 100) * GIB / 100, steady=True)
            facts.add("tokens_per_s_per_device", speed[zero], steady=True)
            facts.add("flops_per_s_per_device", scaled(flops[zero], 2, 12), steady=True)
            facts.add("mfu_ratio", scaled(share[zero], 2, -2), steady=True)
        yield "".join(map(LINE.__mod__, rows))
