"""Measure whole processes in turn: wall time, CPU time and peak memory, as counted by the kernel."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Case:
    """One command on one input of ``size`` bytes of plain text; ``stdin``, if given, is its standard input."""

    name: str
    command: tuple[str, ...]
    size: int
    environ: Mapping[str, str] = field(default_factory=dict)
    stdin: Path | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """One run: wall and CPU seconds, peak memory in bytes, exit code."""

    wall: float
    cpu: float
    memory: int
    code: int


def run(case: Case, output: Path | None = None) -> Sample:
    """Run a command once; write stdout to the file ``output`` and stderr to ``output``.err, or discard both."""
    environ = {**os.environ, **case.environ}
    errors = os.devnull if output is None else f"{output}.err"
    with open(output or os.devnull, "wb") as sink, open(errors, "wb") as told, open(case.stdin or os.devnull, "rb") as source:
        begun = time.perf_counter()
        process = subprocess.Popen(case.command, stdin=source, stdout=sink, stderr=told, env=environ)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - begun
    process.returncode = os.waitstatus_to_exitcode(status)
    return Sample(wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss * 1024, process.returncode)


def tell(text: str) -> None:
    """Print progress on stderr."""
    print(text, file=sys.stderr, flush=True)


def rounds(cases: Sequence[Case], count: int, label: str) -> dict[str, list[Sample]]:
    """Run all cases once to warm up, then ``count`` rounds of A B C …; return name → samples in order of rounds."""
    samples: dict[str, list[Sample]] = {case.name: [] for case in cases}
    for turn in range(count + 1):
        for case in cases:
            sample = run(case)
            if turn:
                samples[case.name].append(sample)
            tell(f"{label:<10} round {turn} of {count}: {case.name:<24} {sample.wall:8.3f} s")
    return samples


def ratio(over: Sequence[float], under: Sequence[float]) -> tuple[float, float, float]:
    """Return median, least and greatest ratio of two cases, each taken within one round."""
    values = [a / b for a, b in zip(over, under, strict=True)]
    return statistics.median(values), min(values), max(values)


def per_byte(samples: Sequence[Sample], size: int) -> list[float]:
    """Return the wall seconds per byte of each sample."""
    return [sample.wall / size for sample in samples]
