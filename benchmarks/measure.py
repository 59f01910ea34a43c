"""Whole processes, measured in turn: wall time, processor time and peak memory of each, as the kernel counts them."""

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
    """One command on one input. ``size`` is what it reads, in bytes of plain text; ``stdin`` is fed to it where given."""

    name: str
    command: tuple[str, ...]
    size: int
    environ: Mapping[str, str] = field(default_factory=dict)
    stdin: Path | None = None


@dataclass(frozen=True, slots=True)
class Sample:
    """One run: seconds of wall and processor time, peak memory in bytes, exit code."""

    wall: float
    cpu: float
    memory: int
    code: int


def run(case: Case, output: Path | None = None) -> Sample:
    """Run a command once; its output goes to the file ``output`` and its errors to ``output``.err, or nowhere."""
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
    """Say on standard error what goes on."""
    print(text, file=sys.stderr, flush=True)


def rounds(cases: Sequence[Case], count: int, label: str) -> dict[str, list[Sample]]:
    """Run all cases once to warm up, then ``count`` rounds of A B C …; return the samples by name, in order of rounds."""
    samples: dict[str, list[Sample]] = {case.name: [] for case in cases}
    for turn in range(count + 1):
        for case in cases:
            sample = run(case)
            if turn:
                samples[case.name].append(sample)
            tell(f"{label:<10} round {turn} of {count}: {case.name:<24} {sample.wall:8.3f} s")
    return samples


def ratio(over: Sequence[float], under: Sequence[float]) -> tuple[float, float, float]:
    """Return median, least and greatest of the ratios of two cases, each within one round."""
    values = [a / b for a, b in zip(over, under, strict=True)]
    return statistics.median(values), min(values), max(values)


def per_byte(samples: Sequence[Sample], size: int) -> list[float]:
    """Return wall seconds a byte of each sample."""
    return [sample.wall / size for sample in samples]
