"""Accounts of the logs in a folder: which labelled numbers are dropped, by key, and where the wall time went.

    python -m benchmarks.dropped_keys [FOLDER] [--write]

Prints each dropped key with its cells and logs, marks those that the metric registry has an alias for, then the goodput
of each log with stamps. Exit code 1 where a dropped key is a metric, the classes of a log do not add up to its wall time,
or goodput is above 95 % beside a bottleneck or a stall of more than 5 %. ``--write`` keeps the counts in
``benchmarks/results/dropped_keys.json``; without FOLDER the fixtures are read.
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from receipt_cli.definitions.metrics import load_registry
from receipt_cli.errors import ReceiptError
from receipt_cli.receipts.production import Request, produce_all

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks/results/dropped_keys.json"
SUFFIXES = (".log", ".txt", ".out", ".jsonl")
HIGH = 0.95
"""Goodput beside which nothing may hold the run up."""
HELD = 0.05
"""Share of a step, or of the wall time, from which on something does."""


def held_up(document: dict[str, Any]) -> str | None:
    """Return what holds a run up that says a goodput above ``HIGH``; None where nothing does."""
    goodput = document["goodput"]
    if goodput is None or goodput["goodput_ratio"] <= HIGH:
        return None
    for stall in (goodput["stalls"] or {"longest": ()})["longest"]:
        if stall["duration_s"] > HELD * goodput["wall_time_s"]:
            return f"a stall of {stall['duration_s']:.0f} s"
    found = (document["summary"] or {}).get("bottleneck") or {}
    if found.get("verdict") in ("inference", "data"):
        names = ("data_time_ratio", "generation_time_ratio", "dispatch_wait_ratio")
        if max((found["medians"].get(name, 0.0) for name in names), default=0.0) > HELD:
            return f"bottleneck {found['verdict']}"
    return None


def gap_of(document: dict[str, Any]) -> float | None:
    """Return how far the classes of goodput are from the wall time, as a share of it; None where there is no goodput."""
    goodput = document["goodput"]
    if goodput is None:
        return None
    parts = [seconds for seconds in goodput["badput_s"].values() if seconds is not None]
    return abs(math.fsum([goodput["step_time_s"], *parts, -goodput["wall_time_s"]])) / max(goodput["wall_time_s"], 1.0)


def main(folder: Path, *, write: bool) -> int:
    """Print the accounts of every log under ``folder``; return the exit code."""
    known = load_registry().by_alias
    dropped: Counter[str] = Counter()
    logs: Counter[str] = Counter()
    parts: Counter[str] = Counter()
    wrong: list[str] = []
    accounts: list[tuple[str, float, float]] = []
    count = 0
    for path in sorted(p for p in folder.rglob("*") if p.suffix in SUFFIXES and p.name != "truth.jsonl"):
        try:
            documents = [product.document for product in produce_all(Request(path=str(path), workers=1))]
        except ReceiptError as error:
            print(f"{path.relative_to(folder)}: {error}", file=sys.stderr)
            continue
        count += 1
        cells = documents[-1]["derivation"]["cells"]
        parts.update({part: cells[part]["count"] for part in cells})
        dropped.update(cells["dropped"]["by_key"])
        if lost := [key for key in cells["dropped"]["by_key"] if known.get(key.lower()) is not None]:
            print(f"{path.relative_to(folder)}: drops {', '.join(lost)}", file=sys.stderr)
        logs.update(cells["dropped"]["by_key"].keys())
        for document in documents:
            gap, held = gap_of(document), held_up(document)
            if gap is not None:
                accounts.append((str(path.relative_to(folder)), document["goodput"]["goodput_ratio"], gap))
            if gap is not None and gap > 1e-9:
                wrong.append(f"{path.name}: the classes miss the wall time by {gap:.2g} of it")
            if held is not None:
                wrong.append(f"{path.name}: goodput {document['goodput']['goodput_ratio']:.3f} beside {held}")
    metrics = sorted(key for key in dropped if known.get(key.lower()) is not None)
    wrong += [f"{key}: dropped, and the registry has {known[key.lower()]}" for key in metrics]
    for key, cells_of in dropped.most_common():
        print(f"{cells_of:8}  {logs[key]:4} logs  {key}{'  METRIC' if key in metrics else ''}")
    print(f"{count} logs: {parts['read']} cells read, {parts['other']} other, {parts['dropped']} dropped")
    for name, ratio, _ in sorted(accounts, key=lambda account: -account[1]):
        print(f"{ratio:7.3f}  {name}")
    print(f"{len(accounts)} runs with goodput, the classes of all within {max((gap for *_, gap in accounts), default=0.0):.1g}")
    print("\n".join(wrong) or "nothing wrong")
    if write:
        result = {"logs": count, "cells": dict(parts), "dropped": dict(sorted(dropped.items())), "metrics_dropped": metrics}
        result |= {"runs_with_goodput": len(accounts), "wrong": wrong}
        RESULTS.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", "utf-8")
    return 1 if wrong else 0


if __name__ == "__main__":
    named = [argument for argument in sys.argv[1:] if not argument.startswith("--")]
    sys.exit(main(Path(named[0]) if named else ROOT / "fixtures/logs", write="--write" in sys.argv))
