"""How long commands take from nothing: the median of cold processes, beside Python's own start.

    python -m benchmarks.cold_start [--runs 10] [--input NAME]...

The first run of each command, which fills the cache of bytecode, is not counted. Bounds are for an idle machine; the
processor's time is what a command costs on a busy one. Definitions are compiled when the package is built.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

from benchmarks.inputs import ROOT, ensure, parse_size

LOG = str(ROOT / "fixtures" / "logs" / "nanogpt" / "char-ok.log")
RECEIPT = ("-m", "receipt_cli")
BASE = "python -c pass"
COMMANDS: dict[str, tuple[tuple[str, ...], float | None]] = {
    BASE: (("-c", "pass"), None),
    "receipt --version": ((*RECEIPT, "--version"), 0.12),
    "receipt --help": ((*RECEIPT, "--help"), 0.12),
    "receipt grammar list": ((*RECEIPT, "grammar", "list"), None),
    "receipt parse LOG": ((*RECEIPT, "parse", LOG), 0.2),
    "receipt parse --json LOG": ((*RECEIPT, "parse", "--json", LOG), 0.2),
    "receipt check LOG": ((*RECEIPT, "check", LOG), 0.2),
}
SIZES = {"1MB": 0.2, "30MB": 0.35}
"""Sizes of the logs that are parsed besides, and the bound of each, in seconds."""
SOURCES = ("dense", "hf", "sparse", "bars", "mllog", "ranks")
Times = tuple[float, float]
"""Wall and processor time, in seconds."""


def once(arguments: Sequence[str], environ: dict[str, str]) -> Times:
    """Return the times of one process."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *arguments], env=environ, stdout=subprocess.DEVNULL, check=True)
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measure(arguments: Sequence[str], runs: int, environ: dict[str, str]) -> Times:
    """Return the median times of ``runs`` processes, after one that is not counted."""
    walls, processor = zip(*(once(arguments, environ) for _ in range(runs + 1)), strict=True)
    return statistics.median(walls[1:]), statistics.median(processor[1:])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--input", action="append", choices=SOURCES, help="may be repeated; default: all of them")
    options = parser.parse_args()
    commands = dict(COMMANDS)
    for size, bound in SIZES.items():
        for source in options.input or SOURCES:
            path = str(ensure(source, parse_size(size)))
            commands[f"receipt parse {source} {size}"] = ((*RECEIPT, "parse", path), bound)
    with tempfile.TemporaryDirectory() as folder:
        environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environ |= {"PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": f"{folder}/bytecode"}
        times = {name: measure(arguments, options.runs, environ) for name, (arguments, _) in commands.items()}
    print(f"{'command':<28} {'median':>8} {'processor':>10} {'ratio':>6} {'bound':>6}   of {options.runs} runs")
    for name, (wall, processor) in times.items():
        _, bound = commands.get(name, ((), None))
        told = "" if bound is None else f"{bound:.2f}s" + (" !" if wall > bound else "")
        print(f"{name:<28} {wall:7.3f}s {processor:9.3f}s {wall / times[BASE][0]:6.1f} {told:>6}".rstrip())


if __name__ == "__main__":
    main()
