"""Feed every hostile log to ``receipt parse -`` and print how it went: outcome, time, processor time and peak memory.

python -m benchmarks.torture [--scale 1] [--only NAME] [--results FILE]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import unicodedata
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.torture.cases import CASES, Hostile
from benchmarks.torture.hidden import wrong
from benchmarks.torture.results import note

TURNING = ("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
"""What turns the direction of the text behind it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one case went. ``memory`` is the peak of the process in bytes; ``fault`` None where all was as it must be."""

    name: str
    size: int
    code: int
    wall: float
    cpu: float
    memory: int
    receipt_bytes: int
    fault: str | None


def feed(pieces: Iterator[bytes], sink: int, told: list[int]) -> None:
    """Write the pieces into a pipe until its reader has had enough; ``told`` gets how many bytes were written."""
    with contextlib.suppress(BrokenPipeError), os.fdopen(sink, "wb", buffering=0) as pipe:
        for piece in pieces:
            view = memoryview(piece)
            while view:
                view = view[pipe.write(view) :]
            told.append(len(piece))


def run(case: Hostile, scale: float) -> Outcome:
    """Run one case and judge it."""
    reader, writer = os.pipe()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as said:
        begun = time.perf_counter()
        command = [sys.executable, "-m", "receipt_cli", "parse", "-", "--json", *case.arguments]
        process = subprocess.Popen(command, stdin=reader, stdout=out, stderr=said)
        os.close(reader)
        told: list[int] = []
        feeder = threading.Thread(target=feed, args=(case.make(scale), writer, told), daemon=True)
        feeder.start()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        wall = time.perf_counter() - begun
        out.seek(0)
        said.seek(0)
        document, text = out.read(), said.read().decode("utf-8", "replace")
    fault = judge(case, process.returncode, document, text)
    cpu = usage.ru_utime + usage.ru_stime
    return Outcome(case.name, sum(told), process.returncode, wall, cpu, usage.ru_maxrss * 1024, len(document), fault)


def judge(case: Hostile, code: int, document: bytes, said: str) -> str | None:
    """Return what is wrong with how a case ended, or None."""
    if code != case.code:
        return f"exit {code}: {said[-300:]}"
    if "Traceback" in said:
        return "a traceback"
    if case.says and case.says not in said and case.says.encode() not in document:
        return f"{case.says!r} is not said"
    shown = {*said, *document.decode()} - {"\n"}
    if any(unicodedata.category(char) == "Cc" or unicodedata.bidirectional(char) in TURNING for char in shown):
        return "control characters"
    return wrong(json.loads(document)) if case.hidden and code == 0 else None


def main() -> int:
    """Run the cases and print the table; 1 where one went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the whole size")
    parser.add_argument("--only", help="the cases whose name holds this text")
    parser.add_argument("--results", type=Path, help="write the table into this JSON file, too")
    options = parser.parse_args()
    outcomes = []
    print(f"{'case':<22} {'bytes fed':>14} {'exit':>4} {'wall s':>8} {'cpu s':>8} {'peak MB':>8} {'receipt':>9}  verdict")
    for case in CASES:
        if options.only and options.only not in case.name:
            continue
        if options.scale < case.least:
            print(f"{case.name:<22} left out: at this scale its bound is not reached", flush=True)
            continue
        done = run(case, options.scale)
        outcomes.append(done)
        figures = f"{done.wall:>8.1f} {done.cpu:>8.1f} {done.memory / 1e6:>8.0f} {done.receipt_bytes:>9,}"
        print(f"{done.name:<22} {done.size:>14,} {done.code:>4} {figures}  {done.fault or 'as it must be'}", flush=True)
    if options.results:
        note(options.results, "size", [asdict(one) for one in outcomes])
    return 1 if any(one.fault for one in outcomes) else 0


if __name__ == "__main__":
    sys.exit(main())
