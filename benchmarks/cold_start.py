"""Measure the cold start of commands against a bare Typer application.

    python -m benchmarks.cold_start [--runs 10] [--input NAME]...

The commands run in turn; ``ratio`` is the median over the rounds of a command's CPU time ÷ the CPU time of
``benchmarks/bare_typer.py``; ``bound`` is its limit. The first round fills the bytecode cache and is not counted. The
package must have compiled definitions.
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
LOG_29KB = str(ROOT / "fixtures" / "logs" / "autoresearch" / "five-minutes.log")
RECEIPT = ("-m", "receipt_cli")
BASE = "bare Typer"
COMMANDS: dict[str, tuple[tuple[str, ...], float | None]] = {
    BASE: ((str(ROOT / "benchmarks" / "bare_typer.py"), "hello"), None),
    "receipt --version": ((*RECEIPT, "--version"), None),
    "receipt --help": ((*RECEIPT, "--help"), 1.7),
    "receipt grammar list": ((*RECEIPT, "grammar", "list"), None),
    "receipt parse LOG": ((*RECEIPT, "parse", LOG), None),
    "receipt parse --json LOG": ((*RECEIPT, "parse", "--json", LOG), None),
    "receipt check LOG": ((*RECEIPT, "check", LOG), None),
    "receipt parse 29 kB": ((*RECEIPT, "parse", "--json", LOG_29KB), 2.5),
}
SIZES = ("1MB", "30MB")
"""Sizes of the logs that are also parsed."""
SOURCES = ("dense", "hf", "sparse", "bars", "mllog", "ranks")
Times = tuple[float, float]
"""(wall time, CPU time), in seconds."""


def once(arguments: Sequence[str], environ: dict[str, str]) -> Times:
    """Return the times of one process."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *arguments], env=environ, stdout=subprocess.DEVNULL, check=True)
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def rounds(commands: dict[str, Sequence[str]], runs: int, environ: dict[str, str]) -> dict[str, list[Times]]:
    """Return the times of ``runs`` processes of each command, run in turn after an uncounted round."""
    times: dict[str, list[Times]] = {name: [] for name in commands}
    for number in range(runs + 1):
        for name, arguments in commands.items():
            taken = once(arguments, environ)
            times[name] += [taken] if number else []
    return times


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--input", action="append", choices=SOURCES, help="may be repeated; default: all of them")
    options = parser.parse_args()
    commands = dict(COMMANDS)
    for size in SIZES:
        for source in options.input or SOURCES:
            path = str(ensure(source, parse_size(size)))
            commands[f"receipt parse {source} {size}"] = ((*RECEIPT, "parse", path), None)
    with tempfile.TemporaryDirectory() as folder:
        environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environ |= {"PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": f"{folder}/bytecode"}
        times = rounds({name: arguments for name, (arguments, _) in commands.items()}, options.runs, environ)
    print(f"{'command':<28} {'median':>8} {'processor':>10} {'ratio':>6} {'bound':>6}   of {options.runs} runs")
    for name, taken in times.items():
        _, bound = commands.get(name, ((), None))
        wall, processor = (statistics.median(part) for part in zip(*taken, strict=True))
        ratio = statistics.median(mine / base for (_, mine), (_, base) in zip(taken, times[BASE], strict=True))
        told = "" if bound is None else f"{bound:.1f}" + (" !" if ratio > bound else "")
        print(f"{name:<28} {wall:7.3f}s {processor:9.3f}s {ratio:6.1f} {told:>6}".rstrip())


if __name__ == "__main__":
    main()
