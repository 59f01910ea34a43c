"""Four patterns on every line of the Hugging Face Trainer's log."""

from __future__ import annotations

import re
import sys

from benchmarks.loops.figures import show

PATTERNS = {
    "loss": re.compile(r"'loss': ([^,}]+)"),
    "grad_norm": re.compile(r"'grad_norm': ([^,}]+)"),
    "learning_rate": re.compile(r"'learning_rate': ([^,}]+)"),
    "epoch": re.compile(r"'epoch': ([^,}]+)"),
}


def main() -> None:
    """Read the log that the command line names."""
    columns: dict[str, list[float]] = {name: [] for name in PATTERNS}
    with open(sys.argv[1], encoding="utf-8", errors="replace") as lines:
        for line in lines:
            found = [match for pattern in PATTERNS.values() if (match := pattern.search(line))]
            if len(found) == len(PATTERNS):
                for column, match in zip(columns.values(), found, strict=True):
                    column.append(float(match[1]))
    epochs = columns.pop("epoch")
    show(len(epochs), columns)


main()
