"""``json.loads`` on every MLLOG line."""

from __future__ import annotations

import json
import sys

from benchmarks.loops.figures import show


def main() -> None:
    """Read the log that the command line names."""
    loss: list[float] = []
    rate: list[float] = []
    with open(sys.argv[1], encoding="utf-8", errors="replace") as lines:
        for line in lines:
            _, mark, text = line.partition(":::MLLOG ")
            if mark:
                event = json.loads(text)
                if event["key"] == "train_loss":
                    loss.append(float(event["value"]))
                    rate.append(float(event["metadata"]["lr"]))
    show(len(loss), {"loss": loss, "learning_rate": rate})


main()
