"""Guard against growing work: compare the counted calls for one more kilobyte of log with kept bounds.

    python -m benchmarks.guard [--write] [--input NAME]...

Two logs of one kind and different sizes are read; the difference of the counts over the difference of the sizes excludes
the cost of the start. No time is measured. ``--write`` keeps the counts × ``SLACK`` as the new bounds.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.inputs import ROOT, write

BOUNDS = ROOT / "benchmarks" / "guard.json"
SLACK = 1.5
"""Bound ÷ count: enough for another Python version and small changes, far too little for repeated work per record."""
SIZES = (50_000, 20_000_000, 32_000_000)
"""Bytes of a log that only fills the caches, and of the two compared logs, large enough to be read like large logs."""
SOURCES = ("dense", "sparse", "hf", "bars", "mllog", "ranks")
Counts = dict[str, float]


def count(source: str) -> Counts:
    """Return kind of call → calls per kilobyte of the log ``source``, between two sizes of it."""
    with tempfile.TemporaryDirectory() as folder:
        logs = [Path(folder) / f"{size}.log" for size in SIZES]
        for log, size in zip(logs, SIZES, strict=True):
            write(source, size, log, facts=False)
        _, first, second = (_counts(log, Path(folder)) for log in logs)
        kilobytes = (logs[2].stat().st_size - logs[1].stat().st_size) / 1e3
    return {name: (second[name] - first[name]) / kilobytes for name in first}


def _counts(log: Path, folder: Path) -> dict[str, int]:
    """Return the counts of one parse with one worker."""
    output = folder / "counts.json"
    options = ("-o", str(folder / "receipt.json"), "--workers", "1")
    command = (sys.executable, "-m", "benchmarks.counting", str(output), "parse", str(log), *options)
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    subprocess.run(command, cwd=ROOT, env=environ, check=True, stdout=subprocess.DEVNULL)
    counts: dict[str, int] = json.loads(output.read_text())
    return counts


def beyond(source: str, counted: Mapping[str, float], bounds: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Return a line for each count of ``source`` that is above its bound."""
    return [
        f"{source}: {counted[kind]:.3f} {kind} a kilobyte, more than {bound:g}"
        for kind, bound in bounds.get(source, {}).items()
        if counted[kind] > bound
    ]


def load_bounds() -> dict[str, dict[str, float]]:
    """Return the kept bounds, by input and kind of call."""
    bounds: dict[str, dict[str, float]] = json.loads(BOUNDS.read_text())
    return bounds


def _bound(value: float) -> float:
    """Return ``value`` × ``SLACK``, rounded up to three decimals, but at least one call in twenty kilobytes."""
    return max(0.05, math.ceil(value * SLACK * 1000) / 1000)


def main() -> int:
    """Print the counts; exit 1 if one is above its bound."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--input", action="append", choices=SOURCES, help="may be repeated")
    options = parser.parse_args()
    bounds = load_bounds() if BOUNDS.exists() else {}
    wrong: list[str] = []
    for source in options.input or SOURCES:
        counted = count(source)
        if options.write:
            bounds[source] = {kind: _bound(value) for kind, value in counted.items()}
            BOUNDS.write_text(json.dumps(bounds, indent=1) + "\n")
        wrong += beyond(source, counted, bounds)
        known = bounds.get(source, {})
        shown = (f"{kind} {value:8.3f} (≤ {known.get(kind, math.nan):g})" for kind, value in counted.items())
        print(f"{source:<8}", *shown, flush=True)
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
