"""Measure the growth of time and memory with the size of a log, the number of grammars, and the number of patterns.

python -m benchmarks.scaling [--size 1GiB] [--rounds 3] [--only size|grammars|patterns]
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.figures import facts_path
from benchmarks.inputs import CACHE, input_is_kept, log_path, parse_size, print_size
from benchmarks.installation import install
from benchmarks.measure import Case, Sample, per_byte, ratio, rounds, tell
from benchmarks.peers import environ, input_path, last_differences, plain_size, receipt_case, receipt_command
from benchmarks.targets import ONE, OPTIONS, Row

STEPS = (1, 10, 100, 1000)
"""Sizes of the curve, in hundredths of ``--size``."""
GRAMMARS = (1, 10, 40, 80, 100)
PATTERNS = (1, 10, 40)
"""Numbers of rules of each of ten made-up grammars, installed with ten shipped ones."""
MEMORY_BOUND, MEMORY_STRETCH = 200.0, 100.0
GRAMMAR_SOURCES = ("sparse", "dense")
LARGEST_FOR_GRAMMARS = 256 << 20


def over_sizes(size: int, count: int) -> tuple[list[Row], dict[str, Any]]:
    """Measure the sparse log at the sizes of ``STEPS``, up to ten times ``size``; delete logs that are not kept."""
    sizes = [size * step // 100 for step in STEPS]
    fresh = [each for each in sizes if not input_is_kept("sparse", each)]
    try:
        cases = [receipt_case(print_size(each), "sparse", each, *OPTIONS[ONE]) for each in sizes]
        samples = rounds(cases, count, "size")
        wrong = last_differences("sparse", sizes[-1])
    finally:
        for each in fresh:
            if each > size:
                log_path("sparse", each).unlink(missing_ok=True)
                facts_path(log_path("sparse", each)).unlink(missing_ok=True)
    for line in wrong:
        tell(f"WRONG {print_size(sizes[-1])}: {line}")
    tell(_curve(cases, samples))
    memory = max(sample.memory for sample in samples[cases[-1].name]) / 1e6
    base = per_byte(samples[cases[1].name], cases[1].size)
    growth = [(ratio(per_byte(samples[case.name], case.size), base), case.name) for case in cases[2:]]
    (value, low, high), at = max(growth)
    bad = bool(wrong)
    rows = [
        Row("sparse", f"peak memory, {cases[-1].name}", memory, None, " MB", True, MEMORY_BOUND, MEMORY_STRETCH, wrong=bad),
        Row("sparse", f"time a byte, {at} ÷ {cases[1].name}", value, (low, high), "×", True, 1.1, None, wrong=bad),
    ]
    return rows, _document(cases, samples)


def over_grammars(size: int, count: int) -> tuple[list[Row], dict[str, Any]]:
    """Measure both Megatron logs with 1 to 100 grammars installed."""
    folders = {number: CACHE / "installed" / f"{number}-grammars" for number in GRAMMARS}
    for number, folder in folders.items():
        install(folder, number)
    rows: list[Row] = []
    document: dict[str, Any] = {}
    for source in GRAMMAR_SOURCES:
        cases = [_installed(f"{number} grammars", folder, source, size) for number, folder in folders.items()]
        samples = rounds(cases, count, source)
        tell(_curve(cases, samples))
        value, low, high = ratio(_walls(samples["100 grammars"]), _walls(samples["10 grammars"]))
        note = f"on {print_size(size)}"
        rows.append(Row(source, "100 grammars installed ÷ 10", value, (low, high), "×", True, 1.05, None, note))
        document[source] = _document(cases, samples)
    return rows, document


def over_patterns(size: int, count: int) -> dict[str, Any]:
    """Measure the sparse log with ten shipped grammars and ten of 1 to 40 rules."""
    cases = []
    for rules in PATTERNS:
        folder = CACHE / "installed" / f"{rules}-rules"
        install(folder, 20, rules)
        cases.append(_installed(f"10 grammars of {rules} rules more", folder, "sparse", size))
    samples = rounds(cases, count, "patterns")
    tell(_curve(cases, samples))
    return _document(cases, samples)


def growth_rows(size: int, count: int) -> tuple[list[Row], dict[str, Any]]:
    """Return the table rows about memory and growth, and all samples."""
    rows, sizes = over_sizes(size, min(count, 3))
    more, grammars = over_grammars(min(size, LARGEST_FOR_GRAMMARS), count)
    return [*rows, *more], {"sizes": sizes, "grammars": grammars}


def _installed(name: str, folder: Path, source: str, size: int) -> Case:
    """Return the case of the program installed in ``folder``; ``-P`` keeps the checkout off the path."""
    interpreter, *rest = receipt_command(input_path(source, size), *OPTIONS[ONE])
    return Case(name, (interpreter, "-P", *rest), plain_size(source, size), {**environ(), "PYTHONPATH": str(folder)})


def _walls(samples: Sequence[Sample]) -> list[float]:
    return [sample.wall for sample in samples]


def _curve(cases: Sequence[Case], samples: dict[str, list[Sample]]) -> str:
    """Return the medians of a curve, one line for each point."""
    lines = [f"{'':<32} {'wall':>10} {'s per GB':>9} {'MB':>6}"]
    for case in cases:
        wall = statistics.median(_walls(samples[case.name]))
        memory = max(sample.memory for sample in samples[case.name]) / 1e6
        failed = "" if all(sample.code == 0 for sample in samples[case.name]) else "  FAILED"
        lines.append(f"{case.name:<32} {wall:8.3f} s {wall / case.size * 1e9:9.3f} {memory:6.0f}{failed}")
    return "\n".join(lines)


def _document(cases: Sequence[Case], samples: dict[str, list[Sample]]) -> dict[str, Any]:
    return {
        case.name: {
            "bytes": case.size,
            "wall_s": [round(sample.wall, 4) for sample in samples[case.name]],
            "peak_memory_bytes": [sample.memory for sample in samples[case.name]],
        }
        for case in cases
    }


def main() -> None:
    """Print the curves."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=parse_size, default="1GiB")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", choices=("size", "grammars", "patterns"))
    options = parser.parse_args()
    CACHE.mkdir(parents=True, exist_ok=True)
    small = min(options.size, LARGEST_FOR_GRAMMARS)
    if options.only in (None, "size"):
        over_sizes(options.size, options.rounds)
    if options.only in (None, "grammars"):
        over_grammars(small, options.rounds)
    if options.only in (None, "patterns"):
        over_patterns(small, options.rounds)


if __name__ == "__main__":
    main()
