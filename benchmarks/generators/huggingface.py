"""The dicts that the Hugging Face Trainer prints: floats as ``repr`` gives them, some of sixteen digits."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from benchmarks.facts import Facts
from benchmarks.generators.numbers import ROWS, decimal, noise
from benchmarks.generators.stream import in_blocks

LINE = "{'loss': %r, 'grad_norm': %r, 'learning_rate': %r, 'epoch': %r}\n"
EVALUATION = "{'eval_loss': %r, 'eval_runtime': %r, 'eval_samples_per_second': %r, 'eval_steps_per_second': %r, 'epoch': %r}\n"
STEPS_PER_EPOCH = 20_000
PLANNED = 100_000_000
EVALUATE_EVERY = 8
"""Blocks between two evaluations."""


def dicts(
    random: np.random.Generator, done: int, facts: Facts | None, *, numbered: bool = False, broken: bool = False
) -> list[str]:
    """Return ``ROWS`` records of training behind the first ``done`` ones; of ``broken`` ones a norm in 5,000 is NaN."""
    steps = np.arange(done + 1, done + ROWS + 1)
    loss = decimal(1.2 + 3.0 / (1.0 + steps / 1e5) + noise(random, 0.0, 0.05), 4)
    norm = np.exp(noise(random, 0.5, 0.6)).astype(np.float32).astype(np.float64)
    if broken:
        norm[steps % 5_000 == 2_500] = np.nan
    rate = 5e-05 * (1.0 - steps / PLANNED)
    epoch = decimal(steps / STEPS_PER_EPOCH, 2)
    if facts is not None:
        facts.steps(done + 1 if numbered else None, ROWS)
        facts.add("loss", loss)
        facts.add("grad_norm", norm)
        facts.add("learning_rate", rate)
    rows = zip(loss.tolist(), norm.tolist(), rate.tolist(), epoch.tolist(), strict=True)
    return list(map(LINE.__mod__, rows))


@in_blocks
def blocks(random: np.random.Generator, facts: Facts | None) -> Iterator[str]:
    """Yield records of training, an evaluation after every eighth block; one norm in 5,000 is NaN."""
    for done in itertools.count(ROWS, ROWS):
        text = "".join(dicts(random, done - ROWS, facts, broken=True))
        if done // ROWS % EVALUATE_EVERY == 0:
            took = round(float(random.normal(31.0, 0.5)), 4)
            text += EVALUATION % (
                float(random.normal(2.0, 0.05)),
                took,
                round(9e3 / took, 3),
                round(1e3 / took, 3),
                round(done / STEPS_PER_EPOCH, 2),
            )
        yield text
