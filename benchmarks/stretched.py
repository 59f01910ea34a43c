"""Measure the cost per line in long logs of each trainer: the training part of every log, repeated with continued counters.

    python -m benchmarks.stretched FOLDER [--sizes 1MB,4MB] [--results FILE]

The lines from the first to the last record with a counter are repeated; steps and epochs continue from one copy to the next,
the rest stays. The cost is CPU microseconds for each additional line of the longer log, in a whole parse with all grammars;
*growth* is the cost per line in the longer log ÷ the shorter one: about 1, or 4 if the time grows quadratically.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import receipt_cli
from benchmarks.inputs import parse_size, print_size
from benchmarks.machine import describe_machine
from benchmarks.survey import NOT_LOGS
from receipt_cli.definitions.failure_markers import load_catalogue
from receipt_cli.errors import ReceiptError
from receipt_cli.grammar.catalog import shipped
from receipt_cli.io.source import Source
from receipt_cli.scan.book import examine
from receipt_cli.scan.engine import Engine

STEPS, EPOCHS = ("step", "iteration"), ("epoch", "epoch_number")
"""Counter fields that continue by steps, and by epochs."""
LONGEST = 8000
"""Longest record, in bytes, whose counters are continued."""
ROUNDS = 2
"""Readings of each log; the fastest counts."""
SMALLEST = 500
"""Bytes of the smallest log."""

Counter = tuple[int, int, int]
"""(start, end, kind) of a number in a line; the kind is 0 for steps, 1 for epochs."""


class Cost(NamedTuple):
    """One log: the cost per line and its growth; ``lines`` and ``seconds`` are of the longer log."""

    name: str
    lines: int
    seconds: float
    micros: float
    growth: float


def counters_of(engine: Engine, line: bytes) -> Iterator[Counter]:
    """Yield the step and epoch numbers of the records of a line."""
    if not line.strip() or len(line) > LONGEST or b"\r" in line:
        return
    for _, rule, events in examine(line, engine._candidates(line).rules).read:
        for event in events if rule.event in ("step", "eval", "progress") else ():
            for name, (start, end) in event.spans.items():
                if name in (*STEPS, *EPOCHS) and line[max(0, start) : end].isdigit():
                    yield start, end, int(name in EPOCHS)


def stretch(engine: Engine, text: bytes, size: int) -> tuple[bytes, int] | None:
    """Return a log with training repeated to about ``size`` bytes, and its number of lines; None without counters."""
    lines = text.split(b"\n")
    found = [sorted({*counters_of(engine, line.rstrip(b"\r"))}) for line in lines]
    counting = [number for number, counters in enumerate(found) if counters]
    if not counting:
        return None
    first, end = counting[0], counting[-1] + 1
    passed = []
    for kind in (0, 1):
        known = sorted({int(line[a:b]) for line, of in zip(lines, found, strict=True) for a, b, this in of if this == kind})
        passed.append(known[-1] - known[0] + (known[1] - known[0] if len(known) > 1 and not kind else 1) if known else 0)
    body = [*zip(lines[first:end], found[first:end], strict=True)]
    times = max(2, size // sum(len(line) + 1 for line, _ in body))
    copies = (_counted_on(line, of, passed, copy) for copy in range(times) for line, of in body)
    made = [*lines[:first], *copies, *lines[end:]]
    return b"\n".join(made), len(made)


def _counted_on(line: bytes, counters: list[Counter], passed: list[int], copy: int) -> bytes:
    parts, done = [], 0
    for start, end, kind in counters:
        if start >= done:
            parts += [line[done:start], b"%d" % (int(line[start:end]) + copy * passed[kind])]
            done = end
    return b"".join((*parts, line[done:]))


def measure(engine: Engine, path: Path, name: str, sizes: tuple[int, int]) -> Cost | None:
    """Return the cost per line in the log at ``path``; None if it cannot be stretched or read."""
    measured = []
    try:
        text = b"".join(Source(str(path)).blocks())
        for size in sizes:
            made = stretch(engine, text, size)
            if made is None:
                return None
            with tempfile.TemporaryDirectory() as folder:
                log = Path(folder) / path.name
                log.write_bytes(made[0])
                measured.append((min(_seconds(log) for _ in range(ROUNDS)), made[1]))
    except ReceiptError:
        return None
    (short, few), (long, many) = measured
    return Cost(name, many, long, 1e6 * (long - short) / max(1, many - few), long / many / (short / few))


def _seconds(log: Path) -> float:
    begun = time.process_time()
    receipt_cli.read(str(log))
    return time.process_time() - begun


def report(costs: list[Cost], sizes: tuple[int, int]) -> str:
    """Return the table as Markdown, the most expensive first."""
    lines = [
        f"# The training of each log repeated to {print_size(sizes[0])} and {print_size(sizes[1])}: what a line costs",
        "",
        f"{len(costs)} logs: median {sorted(cost.micros for cost in costs)[len(costs) // 2]:.1f} µs a line; "
        f"{sum(cost.growth > 1.5 for cost in costs)} cost more than half as much again a line in the longer log.",
        "",
        "| log | lines | s | µs a line | growth |",
        "|---|--:|--:|--:|--:|",
        *(
            f"| {cost.name} | {cost.lines:,} | {cost.seconds:.2f} | {cost.micros:.1f} | {cost.growth:.2f} |"
            for cost in sorted(costs, key=lambda cost: -cost.micros)
        ),
        "",
        *(f"- {name}: {value}" for name, value in describe_machine().items()),
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Measure, print the table and keep it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--sizes", default="1MB,4MB", help="bytes of the shorter and of the longer log")
    parser.add_argument("--results", type=Path, help="the file that the table is written to")
    options = parser.parse_args()
    short, long = (parse_size(size) for size in options.sizes.split(","))
    engine = Engine(shipped(), load_catalogue())
    files = (path for path in sorted(options.folder.rglob("*")) if path.is_file() and path.name not in NOT_LOGS)
    logs = [path for path in files if SMALLEST <= path.stat().st_size <= short]
    costs = [cost for log in logs if (cost := measure(engine, log, str(log.relative_to(options.folder)), (short, long)))]
    text = report(costs, (short, long)) if costs else f"{options.folder} contains no logs that count steps\n"
    print(text)
    if options.results is not None and costs:
        options.results.parent.mkdir(parents=True, exist_ok=True)
        options.results.write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
