"""Twelve patterns on every line of a Megatron-LM log."""

from __future__ import annotations

import re
import sys

from benchmarks.loops.figures import show

NUMBER = r"([-+.\dA-Za-z]+)"
PATTERNS = {
    "step": (re.compile(r"iteration +(\d+)/"), 1.0),
    "planned": (re.compile(r"iteration +\d+/ *(\d+) \|"), 1.0),
    "samples_total": (re.compile(r"consumed samples: +(\d+)"), 1.0),
    "step_time_s": (re.compile(r"elapsed time per iteration \(ms\): " + NUMBER), 1e-3),
    "flops_per_s_per_device": (re.compile(r"throughput per GPU \(TFLOP/s/GPU\): " + NUMBER), 1e12),
    "learning_rate": (re.compile(r"learning rate: " + NUMBER), 1.0),
    "global_batch_size": (re.compile(r"global batch size: +(\d+)"), 1.0),
    "loss": (re.compile(r"lm loss: " + NUMBER), 1.0),
    "loss_scale": (re.compile(r"loss scale: " + NUMBER), 1.0),
    "grad_norm": (re.compile(r"grad norm: " + NUMBER), 1.0),
    "skipped_step_count": (re.compile(r"number of skipped iterations: +(\d+)"), 1.0),
    "nan_step_count": (re.compile(r"number of nan iterations: +(\d+)"), 1.0),
}
STEADY = ("step_time_s", "flops_per_s_per_device")


def main() -> None:
    """Read the log that the command line names."""
    columns: dict[str, list[float]] = {name: [] for name in PATTERNS}
    with open(sys.argv[1], encoding="utf-8", errors="replace") as lines:
        for line in lines:
            found = [(match, factor) for pattern, factor in PATTERNS.values() if (match := pattern.search(line))]
            if len(found) == len(PATTERNS):
                for column, (match, factor) in zip(columns.values(), found, strict=True):
                    column.append(float(match[1]) * factor)
    steps = columns.pop("step")
    del columns["planned"]
    show(len(steps), columns, STEADY)


main()
