"""Let one system call of a command fail, each time another: the right result, or an error and nothing half done.

python -m benchmarks.torture.faults [--each 40] [--only NAME] [--results FILE]

strace injects the fault: call N of a kind, in one process or thread, fails with an error of that kind. N is of the calls
from the one on that first touches the command's own files; those before it load Python itself. What fails may be an import
that comes late: a message, and exit code 70. ``benchmarks.torture.injected`` is quicker and leaves no operation out.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.torture.works import WORKS, Made, Tally, Work, judge, tell_all

FAULTS = {
    "openat": ("EMFILE", "EACCES", "EIO"),
    "read": ("EIO", "EINTR"),
    "write": ("ENOSPC", "EIO", "EINTR"),
    "fsync": ("EIO", "ENOSPC"),
    "rename": ("EACCES", "EIO"),
    "link": ("EACCES", "EMLINK"),
    "mkdir": ("EACCES", "ENOSPC"),
    "mmap": ("ENOMEM",),
    "newfstatat": ("EACCES", "EIO"),
    "lseek": ("EIO",),
    "clone": ("EAGAIN",),
    "clone3": ("EAGAIN",),
}
LIMIT = 120
"""Seconds after which a command hangs."""
_CALL = re.compile(r"(?:(\d+) +)?(\w+)\(")


def run(work: Work, base: Path, trace: Sequence[str]) -> tuple[int, str, Made, Made]:
    """Run a command under strace; return exit code, what was said, and the files before and after."""
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    with tempfile.TemporaryDirectory(dir=base) as name:
        folder = Path(name)
        work.prepare(folder)
        before = work.result(folder, b"")
        command = ["strace", "-f", "-qq", *trace, sys.executable, "-m", "receipt_cli", *work.arguments]
        done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, timeout=LIMIT, check=False)
        said = (done.stderr if work.prints else done.stderr + done.stdout).decode("utf-8", "replace")
        return done.returncode, said, before, work.result(folder, done.stdout)


def calls(work: Work, base: Path) -> tuple[dict[str, list[int]], Made]:
    """Return, by kind, the numbers of the calls that are the command's own, and what it makes when none fails."""
    run(work, base, ["-o", os.devnull])  # fills the cache
    trace = base / "trace"
    code, said, before, made = run(work, base, ["-o", str(trace), "-e", f"trace={','.join(FAULTS)}"])
    if code or made == before:
        raise SystemExit(f"{work.name} fails by itself: {said}")
    counts: Counter[tuple[str, str]] = Counter()  # strace counts for each process and thread by itself
    own: dict[str, set[int]] = {}
    begun = False
    for line in trace.read_text("utf-8", "replace").splitlines():
        found = _CALL.match(line)
        if found is None:
            continue
        counts[found[1], found[2]] += 1
        begun = begun or work.marker in line
        if begun:
            own.setdefault(found[2], set()).add(counts[found[1], found[2]])
    return {kind: sorted(numbers) for kind, numbers in own.items()}, made


def torture(work: Work, base: Path, each: int) -> Tally:
    """Inject up to ``each`` faults of every kind and error; judge each."""
    tally = Tally()
    own, wanted = calls(work, base)
    source = random.Random(7)
    for kind, errors in FAULTS.items():
        numbers = own.get(kind, [])
        for error in errors:
            for number in sorted(source.sample(numbers, min(each, len(numbers)))):
                what = f"{work.name}: {kind} number {number} fails with {error}"
                tally.injected += 1
                inject = ["-o", os.devnull, "-e", f"trace={kind}", "-e", f"inject={kind}:error={error}:when={number}"]
                try:
                    code, said, before, made = run(work, base, inject)
                except subprocess.TimeoutExpired:
                    tally.count(what, -1, "hangs")
                    continue
                tally.count(what, code, judge(code, said, made, wanted, before, others=work.workers))
    return tally


def main() -> int:
    """Run all and print the table; 1 where one result was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=40, help="calls of each kind that fail with each of its errors")
    parser.add_argument("--only", default="", help="the commands whose name holds this text")
    parser.add_argument("--results", type=Path, help="write the table into this JSON file, too")
    options = parser.parse_args()
    if shutil.which("strace") is None:
        print("strace is not installed: no faults injected", file=sys.stderr)
        return 0
    works = [work for work in WORKS if options.only in work.name]
    with tempfile.TemporaryDirectory() as name:
        return tell_all(works, lambda work: torture(work, Path(name), options.each), "system calls", options.results)


if __name__ == "__main__":
    sys.exit(main())
