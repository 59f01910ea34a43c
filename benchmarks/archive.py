"""Build an archive of many logs from the logs of a folder, and measure time and memory of two batches over it.

python -m benchmarks.archive FOLDER [--logs 10000] [--workers 2] [--engine local] [--largest BYTES] [--keep DIR]

Each log of the archive is one of the folder's after a unique first line, so that no two are equal; every tenth is compressed.
The second run has nothing to do, and must not touch a file of the store.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from receipt_cli.io.discovery import HEAD_BYTES, find_logs, is_log_text, unpacked

EACH_FOLDER = 100
COMPRESSED = 10
MEASURE_S = 0.2


@dataclass(frozen=True)
class Run:
    """One run over the archive. Memory is proportional set size: each process counts its part of shared memory."""

    seconds: float
    cpu_s: float
    leader_peak_bytes: int
    all_peak_bytes: int
    outcomes: dict[str, int]
    derived: int
    derived_bytes: int
    exit_code: int


def make_archive(folder: Path, archive: Path, count: int, largest: int) -> int:
    """Write ``count`` logs below ``archive``, made from the folder's logs up to ``largest`` bytes; return their plain bytes."""
    texts = []
    for path in find_logs([str(folder)])[0]:
        data = Path(path).read_bytes()
        if 0 < len(data) <= largest and is_log_text(data[:HEAD_BYTES]) and unpacked(path) == path:
            texts.append((Path(path), data))
    if not texts:
        sys.exit(f"{folder} holds no log of up to {largest} bytes")
    total = 0
    for number in range(count):
        path, data = texts[number % len(texts)]
        text = b"archived copy %d\n" % number + data
        total += len(text)
        packed = number % COMPRESSED == COMPRESSED - 1
        target = archive / f"{number // EACH_FOLDER:04d}" / f"{number:06d}-{path.name}{'.gz' if packed else ''}"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(gzip.compress(text, 6, mtime=0) if packed else text)
    return total


def run(archive: Path, store: Path, options: list[str]) -> Run:
    """Derive the archive into the store in a separate process, and measure it."""
    command = [sys.executable, "-m", "receipt_cli", "rederive", str(archive), "--store", str(store), "--json", *options]
    before = os.times()
    started = time.monotonic()
    outcomes: dict[str, int] = {}
    derived = derived_bytes = 0
    with subprocess.Popen(command, stdout=subprocess.PIPE) as batch:
        memory = Memory(batch.pid)
        memory.start()
        assert batch.stdout is not None
        for line in batch.stdout:
            report = json.loads(line)
            outcomes[report["outcome"]] = outcomes.get(report["outcome"], 0) + 1
            if report["derived"]:
                derived += 1
                derived_bytes += report["log_size_bytes"] or 0
        code = batch.wait()
    seconds = time.monotonic() - started
    memory.join()
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    cpu = max(cpu, memory.cpu_s)
    return Run(seconds, cpu, memory.leader, memory.all, outcomes, derived, derived_bytes, code)


class Memory(threading.Thread):
    """Samples the memory and CPU time of a process and its descendants."""

    def __init__(self, pid: int) -> None:
        super().__init__(daemon=True)
        self._pid = pid
        self.leader = self.all = 0
        self._cpu: dict[int, float] = {}

    @property
    def cpu_s(self) -> float:
        """CPU seconds of all sampled processes."""
        return sum(self._cpu.values())

    def run(self) -> None:
        """Sample until the process ends."""
        with suppress(psutil.NoSuchProcess):
            leader = psutil.Process(self._pid)
            while leader.is_running() and leader.status() != psutil.STATUS_ZOMBIE:
                sizes = [self._look(process) for process in [leader, *leader.children(recursive=True)]]
                self.leader = max(self.leader, sizes[0])
                self.all = max(self.all, sum(sizes))
                time.sleep(MEASURE_S)

    def _look(self, process: psutil.Process) -> int:
        with suppress(psutil.Error):
            times = process.cpu_times()
            self._cpu[process.pid] = times.user + times.system
            return int(process.memory_full_info().pss)
        return 0


def state_of(store: Path) -> dict[str, tuple[int, int, int]]:
    """Return path → (inode, size, time of change) of every file of a store, without its cache."""
    found = ((path, path.stat()) for path in store.rglob("*") if path.is_file() and ".cache" not in path.parts)
    return {str(path): (status.st_ino, status.st_size, status.st_mtime_ns) for path, status in found}


def tell(name: str, done: Run) -> None:
    """Print one run."""
    speed = f"{done.derived / done.seconds:.1f} logs/s, {done.derived_bytes / done.seconds / 1e6:.2f} MB/s"
    each = f", {1000 * done.cpu_s / done.derived:.1f} ms CPU a log" if done.derived else ""
    print(f"{name}: {done.seconds:.2f} s, {done.cpu_s:.1f} s CPU, {done.outcomes}, exit {done.exit_code}")
    print(f"  derived {done.derived} logs, {done.derived_bytes / 1e6:.1f} MB: {speed}{each}")
    print(f"  peak memory: leader {done.leader_peak_bytes / 2**20:.0f} MiB, all {done.all_peak_bytes / 2**20:.0f} MiB")


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--logs", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--engine", choices=("local", "ray"), default="local")
    parser.add_argument("--largest", type=int, default=1 << 20, help="bytes of the largest log that is taken")
    parser.add_argument("--keep", type=Path, help="folder for archive and store, which stay there")
    given = parser.parse_args()
    options = ["--workers", str(given.workers), "--engine", given.engine]
    with tempfile.TemporaryDirectory(prefix="receipt-archive-") as made:
        work = given.keep or Path(made)
        total = make_archive(given.folder, work / "archive", given.logs, given.largest)
        print(f"{given.logs} logs, {total / 1e6:.1f} MB; {given.workers} workers, engine {given.engine}")
        tell("first run", run(work / "archive", work / "store", options))
        before = state_of(work / "store")
        second = run(work / "archive", work / "store", options)
        tell("second run", second)
        touched = sum(before.get(path) != state for path, state in state_of(work / "store").items())
        print(f"  files of the store touched by the second run: {touched}")
        sys.exit(1 if touched or second.derived else 0)


if __name__ == "__main__":
    main()
