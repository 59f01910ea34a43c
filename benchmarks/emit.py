"""Measure the cost of ``receipt_cli.emit`` in a training loop: the same loop with and without it, in turn.

    python -m benchmarks.emit [--count 100000] [--rounds 7] [--threads 4]

Each row is one operation of a step. Its cost is the CPU time of the loop with it minus the CPU time of the loop without it,
per step: the median and the least of the rounds. Deferred work (sums of spans, columns of records) is included. Rows of
several threads count the steps of all threads, and their CPU time includes waiting for each other. ``import`` is the time of
a fresh interpreter that imports the library, minus an empty one's, with bytecode present. Bounds are for an idle machine.
"""

from __future__ import annotations

import argparse
import gc
import io
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from typing import NamedTuple

from benchmarks.inputs import ROOT
from receipt_cli.emit import GoodputTracker, StepPrinter, TemporalPerformanceTracker

Loop = Callable[[int], None]


class Row(NamedTuple):
    """One operation of a step: the loop with it (made for each round), the loop without it, and the bound in µs."""

    name: str
    make: Callable[[], Loop]
    without: Loop
    bound: float | None


def bare(count: int) -> None:
    """Count steps."""
    for _ in range(count):
        pass


def bare_metrics(count: int) -> None:
    """Make the metrics of each step."""
    for step in range(count):
        _ = {"loss": 2.5 + step, "grad_norm": 1.25, "learning_rate": 0.0003}


def spans() -> Loop:
    """Return a loop with one span per step."""
    tracker = GoodputTracker()

    def loop(count: int) -> None:
        for _ in range(count):
            with tracker.span("step"):
                pass

    return loop


def nested() -> Loop:
    """Return a loop with two nested spans per step."""
    tracker = GoodputTracker()

    def loop(count: int) -> None:
        for _ in range(count):
            with tracker.span("step"), tracker.span("data_loading"):
                pass

    return loop


def records() -> Loop:
    """Return a loop that records three metrics and a token count per step."""
    tracker = TemporalPerformanceTracker(max_steps=10**9)
    tracker.start_run()

    def loop(count: int) -> None:
        for step in range(count):
            tracker.record_step(step, {"loss": 2.5 + step, "grad_norm": 1.25, "learning_rate": 0.0003}, tokens=4096)

    return loop


def lines() -> Loop:
    """Return a loop that prints three metrics per step to memory."""
    printer = StepPrinter(io.StringIO())

    def loop(count: int) -> None:
        for step in range(count):
            printer.step_values(step, {"loss": 2.5 + step, "grad_norm": 1.25, "learning_rate": 0.0003})

    return loop


ROWS = (
    Row("span", spans, bare, 5.0),
    Row("two spans, nested", nested, bare, 10.0),
    Row("record_step, 3 metrics", records, bare_metrics, 2.0),
    Row("StepPrinter, 3 metrics", lines, bare_metrics, None),
)


def processor_time(loop: Loop, count: int, threads: int) -> float:
    """Return the total CPU seconds of ``threads`` threads for ``count`` steps."""
    gc.collect()
    begun = time.process_time()
    if threads == 1:
        loop(count)
    else:
        workers = [threading.Thread(target=loop, args=(count // threads,)) for _ in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    return time.process_time() - begun


def cost(row: Row, count: int, rounds: int, threads: int) -> tuple[float, float]:
    """Return the median and the least cost per step in µs."""
    costs = []
    for turn in range(rounds + 1):
        without = processor_time(row.without, count, threads)
        told = processor_time(row.make(), count, threads)
        if turn:
            costs.append((told - without) / count * 1e6)
    return statistics.median(costs), min(costs)


def import_time(rounds: int) -> tuple[float, float]:
    """Return the median and the least CPU time of the import in ms."""
    costs = []
    with tempfile.TemporaryDirectory() as folder:
        environ = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environ |= {"PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": folder}

        def once(code: str) -> float:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, "-c", code], env=environ, check=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

        for turn in range(rounds + 1):
            nothing, imported = once("pass"), once("import receipt_cli.emit")
            if turn:
                costs.append((imported - nothing) * 1e3)
    return statistics.median(costs), min(costs)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=4)
    options = parser.parse_args()
    print(f"{'a step with':<26} {'threads':>7} {'median':>9} {'least':>9} {'bound':>7}   of {options.rounds} rounds")
    for row in ROWS:
        for threads in (1, options.threads):
            middle, least = cost(row, options.count, options.rounds, threads)
            bound = "" if row.bound is None else f"{row.bound:.0f} µs" + (" !" if middle > row.bound else "")
            print(f"{row.name:<26} {threads:>7} {middle:>6.2f} µs {least:>6.2f} µs {bound:>7}".rstrip(), flush=True)
    middle, least = import_time(options.rounds)
    bound = "30 ms" + (" !" if middle > 30 else "")
    print(f"{'import receipt_cli.emit':<26} {1:>7} {middle:>6.2f} ms {least:>6.2f} ms {bound:>7}")


if __name__ == "__main__":
    main()
