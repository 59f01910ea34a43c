"""Write a seeded store to look at reports: the planted lanes, with failures, signs of drift and texts of every kind.

``python -m benchmarks.report_store DIR --runs 1250`` writes four lanes of 1,250 runs; ``--hostile`` puts markup into every text.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.planted import RUNS, SAMPLE, documents
from receipt_cli.store.files import Quarantined, Store

OOM = SAMPLE.parent / "out_of_memory.json"
MARKUP = "</script><script>document.title='owned'</script><!--<img src=x onerror=document.title='owned'>\u2028\"'&amp;"
REASONS = (
    ("cuda_oom", "memory", "CUDA out of memory. Tried to allocate 706.00 MiB."),
    ("nccl_timeout", "network", "Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4122, OpType=ALLREDUCE)"),
    ("preempted", "scheduler", "slurmstepd: error: *** JOB 71244 ON node-17 CANCELLED DUE TO PREEMPTION ***"),
    ("traceback", "code", "KeyError: 'position_ids'"),
)


def varied(seed: int, *, runs: int = RUNS, hostile: bool = False) -> Iterator[dict[str, Any]]:
    """Yield the planted receipts; one in twelve has a failure reason, some have near misses or inconsistent throughput."""
    draw = random.Random(seed)
    failed = json.loads(OOM.read_text(encoding="utf-8"))["failure"]
    for number, document in enumerate(documents(seed, runs=runs)):
        document["checks"]["throughput_consistent"] = True
        document["derivation"]["problems"] = {"count": 0, "first": []}
        ratio = 0.86 + draw.gauss(0, 0.015) + 0.02 * (number // runs)
        document["goodput"] |= {"goodput_ratio": min(ratio, 1.0), "step_time_s": 100 * min(ratio, 1.0)}
        if draw.random() < 1 / 12:
            _fail(document, failed, draw)
        if number % runs > 0.8 * runs and number // runs == 1 and draw.random() < 0.6:
            text = "step 00004 | loss: 8.250000 | tokens/s 262,144 (gpu0)"
            miss = {"grammar": "nanochat@v1", "rule": "step", "line_number": 31, "excerpt": text}
            document["derivation"]["near_misses"] = {"count": 3, "first": [miss]}
        if draw.random() < 0.01:
            _contradict(document)
        if hostile:
            _poison(document)
        yield document


def _fail(document: dict[str, Any], sample: dict[str, Any], draw: random.Random) -> None:
    reason, category, message = draw.choices(REASONS, (6, 3, 2, 1))[0]
    tail = [f"step {n:05d} | loss: {3 + draw.random():.6f}" for n in range(20)] + [message]
    document["failure"] = {**sample, "reason": reason, "category": category, "message": message, "log_tail": tail, "markers": []}
    document["checks"] |= {"zero_exit_code": False, "completed": False, "no_oom": reason != "cuda_oom"}
    document["run"]["exit_code"] = document["derivation"]["options"]["exit_code"] = 1
    document["goodput"]["goodput_ratio"] *= 0.7


def _contradict(document: dict[str, Any]) -> None:
    document["checks"]["throughput_consistent"] = False
    for summary in (document["summary"], document["phases"][0]["summary"]):
        value = summary["metrics"]["tokens_per_s"]["median"]
        entry = {"metric": "tokens_per_s", "reported": value, "derived": 2 * value, "ratio": 0.5, "consistent": False}
        summary["consistency"] = [entry]


def _poison(document: dict[str, Any]) -> None:
    """Put markup into the texts that come from a log or a header."""
    document["run"]["name"] += MARKUP
    document["run"]["preset"] = MARKUP
    document["header"]["git"]["message"] = MARKUP
    document["header"]["software"]["packages"] = {MARKUP: MARKUP}
    document["derivation"]["problems"] = {
        "count": 1,
        "first": [{"kind": "unreadable_value", "line_number": 1, "detail": MARKUP, "excerpt": MARKUP}],
    }
    if document["failure"]:
        document["failure"] |= {"message": MARKUP, "log_tail": [MARKUP, "\t<b>bold</b>"]}


def write_store(folder: Path, seed: int, *, runs: int = RUNS, hostile: bool = False) -> None:
    """Write the receipts into a store, and a log in quarantine."""
    store = Store(folder)
    for document in varied(seed, runs=runs, hostile=hostile):
        store.add(document)
    path = f"old/{MARKUP if hostile else 'run'}.log"
    store.quarantine(Quarantined(path, None, None, 4, "no grammar recognises this log", "nearest: none"))


def main() -> None:
    """Write a store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--runs", type=int, default=RUNS, help="runs of each of the four lanes")
    parser.add_argument("--hostile", action="store_true", help="markup in every text")
    chosen = parser.parse_args()
    write_store(chosen.folder, chosen.seed, runs=chosen.runs, hostile=chosen.hostile)


if __name__ == "__main__":
    main()
