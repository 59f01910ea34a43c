"""Profile one parse by sampling its threads a thousand times per second.

    python -m benchmarks.stages [--size 64MiB] [--input NAME]... [--workers N]

Shares are of the whole process, including imports. ``own`` is time in a module itself and in its calls outside the
package, by thread; ``total`` is time in and below a function on the main thread.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter

from benchmarks.inputs import CACHE, ROOT, parse_size, print_size
from benchmarks.peers import LAST, PEERS, environ, input_path, plain_size

MODULES, FUNCTIONS = 25, 45
"""Most lines that are shown of each kind."""


def profile(source: str, size: int, workers: int) -> str:
    """Return the profile of one input as text."""
    output = CACHE / "stages.json"
    command = (sys.executable, "-m", "benchmarks.sampling", str(output), "parse", str(input_path(source, size)))
    options = ("-o", str(LAST), "--workers", str(workers))
    everything = {**os.environ, **environ()}
    for _ in range(2):  # the first fills the caches
        subprocess.run([*command, *options], env=everything, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    document = json.loads(output.read_text())
    looks, seconds = document["looks"], document["seconds"]
    main, others = (_by_module(document["own"][thread]) for thread in ("main", "others"))
    rate = plain_size(source, size) / seconds / 1e6
    lines = [f"== {source}, {print_size(size)}: {seconds:.2f} s, {rate:.0f} MB/s, {looks} looks", ""]
    lines.append(f"{'module':<36} {'own, main':>10} {'own, others':>12}")
    for name, _ in (main + others).most_common(MODULES):
        lines.append(f"{name:<36} {main[name] / looks:10.1%} {others[name] / looks:12.1%}")
    lines += ["", f"{'function, main thread':<60} {'total':>7} {'own':>7}"]
    own = Counter(document["own"]["main"])
    for name, count in Counter(document["total"]).most_common(FUNCTIONS):
        lines.append(f"{name:<60} {count / looks:7.1%} {own[name] / looks:7.1%}")
    return "\n".join(lines)


def _by_module(places: dict[str, int]) -> Counter[str]:
    modules: Counter[str] = Counter()
    for place, count in places.items():
        parts = place.split(".")
        known = [part for part in parts if part.isidentifier() and part.islower() and not part.startswith("_")]
        modules[place if place.startswith("(") else _module(parts, known)] += count
    return modules


def _module(parts: list[str], known: list[str]) -> str:
    """Return the module of ``module.Class.function``: the first part, or the first two in a folder."""
    return ".".join(parts[:2]) if (ROOT / "receipt_cli" / parts[0]).is_dir() and len(known) > 1 else parts[0]


def main() -> None:
    """Print the profiles."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=parse_size, default="64MiB")
    parser.add_argument("--input", action="append", choices=list(PEERS), help="may be repeated; default: dense and sparse")
    parser.add_argument("--workers", type=int, default=1)
    options = parser.parse_args()
    for source in options.input or ("dense", "sparse"):
        print(profile(source, options.size, options.workers) + "\n")


if __name__ == "__main__":
    main()
