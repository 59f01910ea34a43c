"""Measure the cost of ``receipt run`` for a job that prints ten thousand lines per second: our CPU time ÷ the command's.

The command computes all the time, like a trainer, and prints lines of 120 bytes evenly, each flushed. On a busy machine it
gets less than a core, but prints as much: then our share of a core is more meaningful than our share of its time. Our CPU
time is the wrapping process's while the command runs, from ``/proc``; the cost of the start (interpreter, header) and of the
final parse is reported separately. Runs on Linux only.
"""

from __future__ import annotations

import argparse
import json
import os
import pty
import select
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

COMMAND = r"""
import os, sys, time
seconds, rate = float(sys.argv[1]), int(sys.argv[2])
line = "step {:>9} | loss: 2.123456 | lr 6.0000e-04 | norm: 0.2911 | dt: 340.90ms | tok/sec: 1537936.04 | mfu 41.20% |"
began, printed, x = time.perf_counter(), 0, 1.0
while (passed := time.perf_counter() - began) < seconds:
    for _ in range(200):
        x = x * 1.0000001 % 7.0
    while printed < passed * rate:
        os.write(1, (line.format(printed).ljust(119) + "\n").encode())
        printed += 1
used = os.times()
os.write(2, f"used {used.user + used.system} {printed}\n".encode())
"""


def cpu_s(pid: int) -> float:
    """Return the CPU seconds used by ``receipt run``: its threads, and its process that copies the output."""
    own = Path(f"/proc/{pid}/cmdline").read_bytes()
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    ours = [pid, *(int(child) for child in children if Path(f"/proc/{child}/cmdline").read_bytes() == own)]
    tasks = [task for each in ours for task in Path(f"/proc/{each}/task").iterdir()]
    return sum(int((task / "schedstat").read_bytes().split()[0]) for task in tasks) / 1e9


def measure(terminal: bool, seconds: float, rate: int) -> dict[str, float]:
    """Run the command once under ``receipt run``; return its CPU seconds and ours, and its number of lines."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "burn.py").write_text(COMMAND)
        wrapped = [sys.executable, "-m", "receipt_cli", "run", "--log", "job.log", "--quiet", "--"]
        command = [*wrapped, sys.executable, "burn.py", str(seconds), str(rate)]
        master, slave = pty.openpty() if terminal else os.pipe()
        with (folder / "err").open("wb") as errors:
            began = time.monotonic()
            job = subprocess.Popen(
                command, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}, stdout=slave, stderr=errors, close_fds=True
            )
        os.close(slave)
        start_s = running_s = 0.0
        seen = 0
        while True:
            ready = select.select([master], [], [], 0.2)[0]
            try:
                block = os.read(master, 1 << 16) if ready else b"-"
            except OSError:
                block = b""
            if not block:
                break
            seen += len(block) if ready else 0
            if seen and not start_s:
                start_s, first = cpu_s(job.pid), time.monotonic()
            if start_s and time.monotonic() < first + seconds - 0.1:
                running_s = cpu_s(job.pid)
        os.close(master)
        _, status, usage = os.wait4(job.pid, 0)
        job.returncode = os.waitstatus_to_exitcode(status)
        assert job.returncode == 0, (folder / "err").read_text()
        used, printed = (float(word) for word in (folder / "err").read_text().split("used ")[1].split()[:2])
        assert (folder / "job.log").read_bytes().count(b"\n") == printed + 1  # without the line about its CPU time
        assert (folder / "job.receipt.json").exists(), (folder / "err").read_text()
        receipt = json.loads((folder / "job.receipt.json").read_bytes())
        assert receipt["run"]["exit_code"] == 0
        return {
            "command_s": used,
            "ours_s": running_s - start_s,
            "start_s": start_s,
            "end_s": usage.ru_utime + usage.ru_stime - used - running_s,
            "lines_per_s": printed / seconds,
            "wall_s": time.monotonic() - began,
        }


def main() -> None:
    """Print our share of CPU time for a pipe and for a terminal, as the median of the rounds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--rate", type=int, default=10_000, help="lines a second")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    print("stdout       lines/s   command      ours    share of a core     before    after   (CPU seconds)")
    for terminal in (False, True):
        found = [measure(terminal, given.seconds, given.rate) for _ in range(given.rounds)]
        middle = {key: statistics.median(one[key] for one in found) for key in found[0]}
        share = statistics.median(one["ours_s"] / one["command_s"] for one in found)
        figures = [middle[key] for key in ("lines_per_s", "command_s", "ours_s")]
        row = "{:10} {:9.0f} {:9.3f} {:9.3f} {:8.3%} {:9.3%}   {:8.3f} {:8.3f}"
        figures += [share, middle["ours_s"] / given.seconds, middle["start_s"], middle["end_s"]]
        print(row.format("terminal" if terminal else "pipe", *figures))


if __name__ == "__main__":
    main()
