"""Measure the scan speed of real logs: the largest log of each folder, repeated to one size.

    python -m benchmarks.real_logs FOLDER [--size 12MB] [--rounds 2] [--results FILE] [--json]

The speed is MB per CPU second of the scan only, with all grammars, the best of the rounds. Each round has a new engine, which
learns the log's layouts; patterns are compiled before. ``for Python`` is the share of records that the kernel does not
read.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.inputs import parse_size, print_size
from benchmarks.machine import describe_machine
from benchmarks.survey import NOT_LOGS
from receipt_cli.definitions.failure_markers import load_catalogue
from receipt_cli.errors import InputError
from receipt_cli.grammar.catalog import shipped
from receipt_cli.io.source import Source
from receipt_cli.scan.engine import Engine
from receipt_cli.scan.presence import has_kernel
from receipt_cli.scan.segment import SegmentBody

BLOCK = 1 << 20
SMALLEST = 2000
"""Bytes of the smallest log that may represent a folder."""


class Rate(NamedTuple):
    """One folder: the scan speed of its largest log, and the share of its records that Python reads."""

    folder: str
    size: int
    rate: float
    share: float


def folders(root: Path) -> Iterator[tuple[str, bytes]]:
    """Yield each folder with logs, and the text of its largest log."""
    for folder in sorted(path for path in root.rglob("*") if path.is_dir()):
        logs = [path for path in folder.iterdir() if path.is_file() and path.name not in NOT_LOGS]
        for log in sorted(logs, key=lambda path: path.stat().st_size, reverse=True):
            try:
                text = b"".join(Source(str(log)).blocks())
            except InputError:
                continue
            if len(text) >= SMALLEST:
                yield str(folder.relative_to(root)), text if text.endswith(b"\n") else text + b"\n"
            break


def scan(blocks: list[bytes]) -> tuple[float, SegmentBody, int]:
    """Return the CPU time of one scan, its result, and the number of records that Python read."""
    engine = Engine(shipped(), load_catalogue())
    read, count = engine.read_record, 0

    def counted(*record: object) -> None:
        nonlocal count
        count += 1
        read(*record)  # type: ignore[arg-type]

    engine.read_record = counted  # type: ignore[assignment,method-assign]
    begun = time.process_time()
    body, _ = engine.finish(engine.scan(blocks))
    return time.process_time() - begun, body, count


def measure(folder: str, text: bytes, size: int, rounds: int) -> Rate:
    """Return the scan speed of ``text``, repeated to ``size`` bytes."""
    whole = (text * (size // len(text) + 1))[:size]
    blocks = [whole[at : at + BLOCK] for at in range(0, len(whole), BLOCK)]
    scan([text[:size]])
    results = [scan(blocks) for _ in range(rounds)]
    seconds = min(seconds for seconds, _, _ in results)
    _, body, count = results[0]
    return Rate(folder, len(text), len(whole) / seconds / 1e6, count / max(1, body.records))


def report(rates: list[Rate], size: int) -> str:
    """Return the table, the least and the median speed, and the machine, as Markdown."""
    values = [rate.rate for rate in rates]
    lines = [
        f"# Real logs, each repeated to {print_size(size)}: MB a second of processor time, scan alone",
        "",
        f"{len(rates)} logs: least {min(values):.0f}, median {statistics.median(values):.0f}, most {max(values):.0f} MB/s; "
        f"{sum(value >= 200 for value in values)} reach 200 and {sum(value >= 60 for value in values)} reach 60. "
        f"The kernel is {'in use' if has_kernel() else 'left out'}.",
        "",
        "| folder | log | MB/s | for Python |",
        "|---|--:|--:|--:|",
        *(
            f"| {rate.folder} | {rate.size / 1e3:,.0f} kB | {rate.rate:.0f} | {rate.share:.1%} |"
            for rate in sorted(rates, key=lambda rate: rate.rate)
        ),
        "",
        *(f"- {name}: {value}" for name, value in describe_machine().items()),
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Measure, print the table and keep it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="its folders contain logs of one kind each")
    parser.add_argument("--size", type=parse_size, default="12MB")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--results", type=Path, help="the file that the table is written to")
    parser.add_argument("--json", action="store_true", help="print the rates alone, as a list")
    options = parser.parse_args()
    rates = [measure(folder, text, options.size, options.rounds) for folder, text in folders(options.folder)]
    if not rates:
        print(f"{options.folder} contains no logs: real logs are not measured")
        return 0
    if options.json:
        print(json.dumps([rate.rate for rate in rates]))
        return 0
    text = report(rates, options.size)
    print(text)
    if options.results is not None:
        options.results.parent.mkdir(parents=True, exist_ok=True)
        options.results.write_text(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
