"""Eight patterns on every line of a torchtitan log of several ranks; the figures are of rank 0."""

from __future__ import annotations

import re
import sys

from benchmarks.loops.figures import show

PATTERNS = {
    "step": (re.compile(r"step: +(\d+)"), 1.0),
    "loss": (re.compile(r"loss: +([-+.\w]+)"), 1.0),
    "grad_norm": (re.compile(r"grad_norm: +([-+.\w]+)"), 1.0),
    "peak_memory_reserved_bytes": (re.compile(r"memory: +([\d.]+)GiB"), float(1 << 30)),
    "tokens_per_s_per_device": (re.compile(r"tps: +([\d,]+)"), 1.0),
    "flops_per_s_per_device": (re.compile(r"tflops: +([\d.,]+)"), 1e12),
    "mfu_ratio": (re.compile(r"mfu: +([\d.]+)%"), 1e-2),
}
RANK = re.compile(r"^\[rank(\d+)\]:")
STEADY = ("peak_memory_reserved_bytes", "tokens_per_s_per_device", "flops_per_s_per_device", "mfu_ratio")


def main() -> None:
    """Read the log that the command line names."""
    ranks: dict[str, dict[str, list[float]]] = {}
    with open(sys.argv[1], encoding="utf-8", errors="replace") as lines:
        for line in lines:
            rank = RANK.search(line)
            found = [(match, factor) for pattern, factor in PATTERNS.values() if (match := pattern.search(line))]
            if rank is not None and len(found) == len(PATTERNS):
                columns = ranks.setdefault(rank[1], {name: [] for name in PATTERNS})
                for column, (match, factor) in zip(columns.values(), found, strict=True):
                    column.append(float(match[1].replace(",", "")) * factor)
    columns = ranks["0"]
    steps = columns.pop("step")
    show(len(steps), columns, STEADY)


main()
