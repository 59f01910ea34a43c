"""MLPerf result logs: an event a line, most of them training losses, with evaluations and throughputs between."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from benchmarks.facts import Facts
from benchmarks.generators.numbers import ROWS, noise

FILE = "/workspace/llm/custom_callbacks.py"
HEAD = ':::MLLOG {"namespace": "", "time_ms": %d, "event_type": "%s", "key": "%s", "value": %s, "metadata": {"file": "'
HEAD += FILE + '", "lineno": %d%s}}\n'
START = 1_740_787_200_000
BATCH = 64
STEP = ':::MLLOG {"namespace": "", "time_ms": %d, "event_type": "POINT_IN_TIME", "key": "train_loss", "value": %r, '
STEP += '"metadata": {"file": "' + FILE + '", "lineno": 213, "samples_count": %d, "lr": %r, "step": %d}}\n'
OPENING = (
    ("POINT_IN_TIME", "submission_benchmark", '"llama2_70b_lora"'),
    ("POINT_IN_TIME", "submission_org", '"reference"'),
    ("POINT_IN_TIME", "submission_division", '"closed"'),
    ("INTERVAL_START", "init_start", "null"),
    ("POINT_IN_TIME", "global_batch_size", str(BATCH)),
    ("POINT_IN_TIME", "max_sequence_length", "8192"),
    ("POINT_IN_TIME", "seed", "4711"),
    ("POINT_IN_TIME", "opt_name", '"adamw"'),
    ("POINT_IN_TIME", "opt_base_learning_rate", "0.0004"),
    ("INTERVAL_END", "init_stop", "null"),
    ("INTERVAL_START", "run_start", "null"),
)


def blocks(size: int, seed: int, facts: Facts | None) -> Iterator[bytes]:
    """Yield the events of one run that does not end: a block of training, then one evaluation and its throughput."""
    random = np.random.default_rng(seed)
    opening = "".join(HEAD % (START + i, kind, key, value, 40 + i, "") for i, (kind, key, value) in enumerate(OPENING))
    block = opening.encode()
    first, made = 1, 0
    while made < size:
        yield block
        made += len(block)
        steps = np.arange(first, first + ROWS)
        loss = (1.3 + 2.0 / (1.0 + steps / 1e5) + noise(random, 0.0, 0.02)).astype(np.float32).astype(np.float64)
        rate = 0.0004 * (1.0 - steps / 1e8)
        samples = steps * BATCH
        times = (START + 60_000 + steps * 130).tolist()
        rows = zip(times, loss.tolist(), samples.tolist(), rate.tolist(), steps.tolist(), strict=True)
        block = ("".join(map(STEP.__mod__, rows)) + _evaluation(random, times[-1], int(samples[-1]))).encode()
        if facts is not None:
            facts.steps(first, ROWS)
            facts.add("loss", loss)
            facts.add("learning_rate", rate)
        first += ROWS
    yield block


def _evaluation(random: np.random.Generator, time: int, samples: int) -> str:
    """Return the events between two blocks of training."""
    count = f', "samples_count": {samples}'
    accuracy, speed = float(random.normal(0.95, 0.01)), float(random.normal(490.0, 4.0))
    return "".join(
        (
            HEAD % (time + 1, "INTERVAL_END", "block_stop", "null", 168, count),
            HEAD
            % (time + 2, "POINT_IN_TIME", "tracked_stats", f'{{"throughput": {speed!r}}}', 175, f', "step": {samples // BATCH}'),
            HEAD % (time + 3, "INTERVAL_START", "eval_start", "null", 181, count),
            HEAD % (time + 900, "POINT_IN_TIME", "eval_accuracy", repr(accuracy), 193, count),
            HEAD % (time + 901, "INTERVAL_END", "eval_stop", "null", 197, count),
            HEAD % (time + 902, "INTERVAL_START", "block_start", "null", 166, count),
        )
    )
