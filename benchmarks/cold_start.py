"""How long commands take from nothing: the median of cold processes, beside Python's own start.

    python benchmarks/cold_start.py [RUNS]

The first run of each command, which fills the caches of bytecode and definitions, is not counted. The last line is
of a parse without the cache of definitions. Bounds are for an idle machine.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOG = str(ROOT / "fixtures" / "logs" / "nanogpt" / "char-ok.log")
RECEIPT = ("-m", "receipt_cli")
BASE, UNCACHED = "python -c pass", "receipt parse LOG, no cache"
COMMANDS: dict[str, tuple[tuple[str, ...], float | None]] = {
    BASE: (("-c", "pass"), None),
    "receipt --version": ((*RECEIPT, "--version"), 0.2),
    "receipt --help": ((*RECEIPT, "--help"), 0.2),
    "receipt grammar list": ((*RECEIPT, "grammar", "list"), None),
    "receipt parse LOG": ((*RECEIPT, "parse", LOG), 0.35),
    "receipt parse --json LOG": ((*RECEIPT, "parse", "--json", LOG), 0.35),
    "receipt check LOG": ((*RECEIPT, "check", LOG), 0.35),
}


def measure(arguments: tuple[str, ...], runs: int, environ: dict[str, str], fresh: bool = False) -> float:
    """Return the median wall time, in seconds, of ``runs`` processes; ``fresh`` gives each an empty cache folder."""
    times = []
    for _ in range(runs + 1):
        with tempfile.TemporaryDirectory() as folder:
            env = {**environ, "XDG_CACHE_HOME": folder} if fresh else environ
            begun = time.perf_counter()
            subprocess.run([sys.executable, *arguments], env=env, stdout=subprocess.DEVNULL, check=True)
            times.append(time.perf_counter() - begun)
    return statistics.median(times[1:])


def main() -> None:
    """Print the table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    with tempfile.TemporaryDirectory() as folder:
        environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environ |= {"PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": folder, "PYTHONPYCACHEPREFIX": f"{folder}/bytecode"}
        seconds = {name: measure(arguments, runs, environ) for name, (arguments, _) in COMMANDS.items()}
        seconds[UNCACHED] = measure(COMMANDS["receipt parse LOG"][0], runs, environ, fresh=True)
    print(f"{'command':<32} {'median':>8} {'ratio':>6} {'bound':>6}   of {runs} runs")
    for name, median in seconds.items():
        _, bound = COMMANDS.get(name, ((), None))
        told = "" if bound is None else f"{bound:.2f}s" + (" !" if median > bound else "")
        print(f"{name:<32} {median:7.3f}s {median / seconds[BASE]:6.1f} {told:>6}".rstrip())


if __name__ == "__main__":
    main()
