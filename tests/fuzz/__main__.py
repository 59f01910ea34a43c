"""Run fuzz targets and count.

python -m tests.fuzz [NAME ...] [--seconds 60] [--seed 1] [--jobs 1] [--corpus DIR] [--results FILE] [--input FILE ...]

Each target runs in processes of its own, ``--jobs`` of them with seeds from ``--seed`` on, each for so many CPU seconds:
coverage-guided with atheris where that is installed (unless the variable FUZZ_OWN is set), else with a mutator of ours.
Inputs that crash are kept in build/fuzz/NAME/SEED; the counts go to build/fuzz/counts.json, and with --results FILE they
are added to those in FILE when a target is done.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from receipt_cli.io.atomic import write_atomically
from tests.fuzz.harness import ROOT, TARGETS, report_inputs

FOLDER = ROOT / "build" / "fuzz"
_NOTHING = {"engine": "-", "executions": 0, "cpu_s": 0.0, "slowest_s": 0.0, "crashes": 0, "places": []}


def run(name: str, seconds: int, seed: int, corpus: Path | None) -> dict[str, Any]:
    """Fuzz one target in one process; return its counts."""
    folder = FOLDER / name / str(seed)
    folder.mkdir(parents=True, exist_ok=True)
    result = folder / "result.json"
    result.unlink(missing_ok=True)
    command = [sys.executable, "-m", "tests.fuzz.child", name, str(seconds), str(seed), str(folder)]
    command += [str(corpus / name if corpus else FOLDER / name / "corpus"), str(result)]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, errors="replace"
    )
    counts = json.loads(result.read_text("utf-8")) if result.is_file() else dict(_NOTHING, target=name)
    if done.returncode:
        counts["crashes"] += 1
        counts["places"] = [*counts["places"], f"the process ended with {done.returncode}: see {folder / 'ended.txt'}"]
        (folder / "ended.txt").write_text(done.stderr, "utf-8")
    return counts


def summed(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the counts of all processes of one target; a place at which several crashed counts once."""
    places = sorted({place for row in rows for place in row["places"]})
    sums = {name: sum(row[name] for row in rows) for name in ("executions", "cpu_s")}
    slowest = max(row["slowest_s"] for row in rows)
    return {**rows[0], **sums, "slowest_s": slowest, "crashes": len(places), "places": places}


def add(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Add the counts of ``rows`` to those of earlier runs in ``path``, by target and engine."""
    found = json.loads(path.read_text("utf-8")) if path.is_file() else []
    sums = {(row["target"], row["engine"]): row for row in found}
    for row in rows:
        key = (row["target"], row["engine"])
        past = sums.get(key, dict(_NOTHING))
        added = {name: past[name] + row[name] for name in ("executions", "cpu_s", "crashes")}
        slowest = max(past["slowest_s"], row["slowest_s"])
        sums[key] = {"target": key[0], "engine": key[1], **added, "cpu_s": round(added["cpu_s"], 1), "slowest_s": slowest}
    write_atomically(path, (json.dumps([sums[key] for key in sorted(sums)], indent=1) + "\n").encode())


HEAD = f"{'target':14} {'engine':8} {'executions':>11} {'cpu s':>8} {'slowest s':>10} {'crashes':>8}"


def line(row: dict[str, Any]) -> str:
    """Return the counts of one target as an aligned line, and the places of its crashes below."""
    slowest, crashes = row.get("slowest_s", ""), row.get("crashes", "")
    told = f"{row['target']:14} {row['engine']:8} {row['executions']:>11,} {row['cpu_s']:>8.1f} {slowest:>10} {crashes:>8}"
    return "\n".join([told.rstrip(), *(f"  {place}" for place in row.get("places", ()))])


def main() -> int:
    """Run; 1 where anything crashed."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"all by default: {', '.join(TARGETS)}")
    parser.add_argument("--seconds", type=int, default=60, help="CPU seconds for each target")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="processes of each target, at the same time")
    parser.add_argument("--corpus", type=Path, help="where inputs that reach new code are kept; default build/fuzz/NAME/corpus")
    parser.add_argument("--results", type=Path, metavar="FILE", help="add the counts to those in this file")
    parser.add_argument("--input", type=Path, nargs="+", default=[], help="run these inputs once instead")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in TARGETS]
    if unknown:
        parser.error(f"no target {unknown[0]}; known: {', '.join(TARGETS)}")
    names = options.names or list(TARGETS)
    if options.input:
        return report_inputs(names[0], options.input)
    print(HEAD, flush=True)
    rows = []
    for name in names:
        with ThreadPoolExecutor(options.jobs) as pool:
            seeds = range(options.seed, options.seed + options.jobs)
            parts = [pool.submit(run, name, options.seconds, seed, options.corpus) for seed in seeds]
            rows.append(summed([part.result() for part in parts]))
        print(line(rows[-1]), flush=True)
        if options.results is not None:
            add(rows[-1:], options.results)
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "counts.json").write_text(json.dumps(rows, indent=1) + "\n", "utf-8")
    spent = round(sum(row["cpu_s"] for row in rows), 1)
    print(line({"target": "all", "engine": "", "executions": sum(row["executions"] for row in rows), "cpu_s": spent}))
    return 1 if any(row["crashes"] for row in rows) else 0


if __name__ == "__main__":
    raise SystemExit(main())
