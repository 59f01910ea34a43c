"""Make seeded stores of 300 runs in four lanes, with or without known changes, and measure how well these are found.

``python -m benchmarks.planted DIR --seed 1`` writes the store. ``python -m benchmarks.planted --trials 50`` counts, over
seeds, the planted changes that are found and correctly attributed, and the false alarms.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from receipt_cli.comparison.comparable import DEFAULT
from receipt_cli.definitions.metrics import load_registry
from receipt_cli.history.lane_history import history
from receipt_cli.store.files import Store

SAMPLE = Path(__file__).resolve().parents[1] / "fixtures/receipts/receipt-1.0/valid/healthy.json"
LANES = ("8xh100-base", "64xh100-large", "1xa100-small", "8xmi300-base")
RUNS = 75
FAILURE = {"reason": "unknown", "category": "unknown", "line_number": None, "message": "exit code 1", "log_tail": []}
FAILURE["markers"] = []
"""``failure`` of a receipt of a run that ended with exit code 1 without a message."""
PLANTS = {
    ("8xh100-base", "tokens_per_s", "step"): "/header/software/torch",
    ("64xh100-large", "peak_memory_bytes", "creep"): "/header/software/packages/flash-attn",
    ("8xmi300-base", "tokens_per_s", "step"): "/header/hardware/accelerators",
}
"""(lane, metric, kind) of a planted change → the field that changed with it."""
SPIKE = ("1xa100-small", 41)
"""(lane, index) of a single slow run, which is not a change."""


def documents(seed: int, *, planted: bool = True, runs: int = RUNS) -> Iterator[dict[str, Any]]:
    """Yield ``runs`` receipts for each lane: correlated throughput with 1 % noise, memory with 0.3 %, one in fifty failed."""
    base = SAMPLE.read_bytes()
    start = datetime(2026, 1, 1, 6, tzinfo=UTC)
    for number, lane in enumerate(LANES):
        draw = random.Random(seed * 10 + number)
        at = {key: draw.randint(20, 50) for key in PLANTS}
        wave = 0.0
        for i in range(runs):
            wave = 0.3 * wave + draw.gauss(0, 0.01)
            document = json.loads(base)  # faster than a copy
            speed, memory = 1e6 * (number + 1) * (1 + wave), 60e9 * (1 + draw.gauss(0, 0.003))
            header = document["header"]
            header["git"]["commit"] = hashlib.sha1(f"{seed} {i // 3}".encode()).hexdigest()
            header["cwd"] = f"/scratch/{i}"
            if planted:
                if lane == "8xh100-base" and i >= at[(lane, "tokens_per_s", "step")]:
                    speed *= 0.92
                    header["software"]["torch"] = "2.10.0"
                if lane == "64xh100-large" and i >= (begin := at[(lane, "peak_memory_bytes", "creep")]):
                    memory *= 1 + 0.003 * (i - begin + 1)
                    header["software"]["packages"]["flash-attn"] = "2.9.0"
                if lane == "8xmi300-base" and i >= at[(lane, "tokens_per_s", "step")]:
                    speed *= 1.35
                    header["hardware"]["accelerators"][0]["name"] = "NVIDIA H200"
                if (lane, i) == SPIKE:
                    speed *= 0.6
            begun = f"{start + timedelta(hours=18 * i + number):%Y-%m-%dT%H:%M:%SZ}"
            document["run"] |= {"name": f"{lane}-{i:03d}", "lane": lane, "preset": lane.rpartition("-")[2]}
            document["run"] |= {"started_at": begun, "finished_at": None}
            if draw.random() < 0.02:
                _fail(document)
            _put(document, speed, memory)
            document["derivation"]["log"]["sha256"] = hashlib.sha256(f"{seed} {lane} {i}".encode()).hexdigest()
            yield document


def _put(document: dict[str, Any], speed: float, memory: float) -> None:
    for summary in (document["summary"], document["phases"][0]["summary"]):
        for name, value in (("tokens_per_s", speed), ("peak_memory_bytes", float(round(memory)))):
            statistic = summary["metrics"][name]
            statistic |= dict.fromkeys(("first", "last", "min", "max", "mean", "median"), value)
        summary["derived"], summary["consistency"] = {}, []


def _fail(document: dict[str, Any]) -> None:
    document["checks"] |= {"zero_exit_code": False, "completed": False}
    document["failure"] = copy.deepcopy(FAILURE)
    document["run"]["exit_code"] = document["derivation"]["options"]["exit_code"] = 1


def write_store(folder: Path, seed: int, *, planted: bool = True) -> None:
    """Write the receipts into a store."""
    store = Store(folder)
    for document in documents(seed, planted=planted):
        store.add(document)


def count(trials: int) -> None:
    """Print the numbers of planted changes found and attributed, and of false alarms."""
    registry = load_registry()
    found = attributed = strange = alarms = looked = 0
    for seed in range(trials):
        for planted in (True, False):
            lanes = history(documents(seed, planted=planted), DEFAULT, registry)["lanes"]
            for lane in lanes:
                for metric in lane["metrics"]:
                    looked += 1
                    fields = {k: f for k, f in PLANTS.items() if planted and k[:2] == (lane["lane"], metric["metric"])}
                    for change in sorted(metric["changes"], key=lambda c: not c["fields"]):  # a planted one has its field
                        field = fields.pop((lane["lane"], metric["metric"], change["kind"]), None)
                        found += field is not None
                        attributed += field is not None and field in [f["pointer"] for f in change["fields"]]
                        if field is None:
                            strange, alarms = strange + planted, alarms + (not planted)
                            print(f"seed {seed} planted {planted}: {lane['lane']} {metric['metric']} {change}")
    print(f"planted changes found       {found} of {trials * len(PLANTS)}")
    print(f"attributed to their field   {attributed} of {found}")
    print(f"other changes beside them   {strange}")
    print(f"alarms without a change     {alarms} in {trials} stores, of {looked // 2} series")


def main() -> None:
    """Write a store, or count."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--unplanted", action="store_true", help="no change at all")
    chosen = parser.parse_args()
    if chosen.folder is not None:
        write_store(chosen.folder, chosen.seed, planted=not chosen.unplanted)
    else:
        count(chosen.trials)


if __name__ == "__main__":
    main()
