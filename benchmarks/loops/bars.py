"""Patterns on every frame of a tqdm bar."""

from __future__ import annotations

import re
import sys

from benchmarks.loops.figures import show

PATTERNS = {
    "epoch": re.compile(r"Epoch (\d+)/\d+:"),
    "step": re.compile(r"\| (\d+)/\d+ \["),
    "rate": re.compile(r", +([\d.]+)it/s"),
    "loss": re.compile(r"loss=([-+.\w]+)"),
    "learning_rate": re.compile(r"lr=([-+.\w]+)"),
}


def main() -> None:
    """Read the log that the command line names; text mode ends a line at a carriage return."""
    columns: dict[str, list[float]] = {name: [] for name in PATTERNS}
    with open(sys.argv[1], encoding="utf-8", errors="replace") as lines:
        for line in lines:
            found = [match for pattern in PATTERNS.values() if (match := pattern.search(line))]
            if len(found) == len(PATTERNS):
                for column, match in zip(columns.values(), found, strict=True):
                    column.append(float(match[1]))
    show(len(columns["step"]), {name: columns[name] for name in ("loss", "learning_rate")})


main()
