"""End commands at random moments by Ctrl-C, SIGTERM and SIGKILL: nothing half done, nothing lost, no traceback.

python -m benchmarks.torture.signals [--times 200] [--only NAME] [--results FILE]
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.torture.works import WORKS, Made, Tally, Work, judge, tell_all

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
ENDS = {signal.SIGINT: 130, signal.SIGTERM: -signal.SIGTERM, signal.SIGKILL: -signal.SIGKILL}
"""How a command ends that a signal reaches in time; one that does not end so is to be done."""
LIMIT = 60


def run(work: Work, base: Path, number: int, after: float | None) -> tuple[float, int, str, Made, Made]:
    """Run a command and send it a signal ``after`` so many seconds; return seconds, exit code, words, files before, after.

    It is a process group of its own: as from a terminal, Ctrl-C goes to all of them, and so does SIGKILL. SIGTERM goes to
    the process that leads.
    """
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    with tempfile.TemporaryDirectory(dir=base) as name:
        folder = Path(name, "work")
        folder.mkdir()
        work.prepare(folder)
        before = work.result(folder, b"")
        with open(Path(name, "out"), "w+b") as out, open(Path(name, "err"), "w+b") as err:
            begun = time.monotonic()
            command = [sys.executable, "-m", "receipt_cli", *work.arguments]
            process = subprocess.Popen(command, cwd=folder, env=environ, stdout=out, stderr=err, start_new_session=True)
            if after is not None:
                time.sleep(after)
                if number == signal.SIGTERM:
                    process.send_signal(number)
                elif process.poll() is None:
                    os.killpg(process.pid, number)
            code = process.wait(LIMIT)
            took = time.monotonic() - begun
            out.seek(0)
            err.seek(0)
            said, printed = err.read().decode("utf-8", "replace"), out.read()
        return took, code, said, before, work.result(folder, printed)


def torture(work: Work, base: Path, times: int, source: random.Random) -> Tally:
    """End a command ``times`` times, at moments from its first line of code to its end; judge each."""
    tally = Tally()
    run(work, base, 0, None)  # fills the cache
    took, code, said, before, wanted = run(work, base, 0, None)
    if code or before == wanted:
        raise SystemExit(f"{work.name} fails by itself: {said}")
    least = _start()
    for turn in range(times):
        number, after = SIGNALS[turn % len(SIGNALS)], source.uniform(least, max(took, 2 * least))
        _, code, said, before, made = run(work, base, number, after)
        tally.injected += 1
        what = f"{work.name}: {number.name} after {after:.3f} s"
        fault = None
        if code == -signal.SIGINT and not said:
            code = ENDS[number]  # Python itself had not begun, or was done
        if code not in (0, ENDS[number]):
            fault = f"exit {code}: {said[-300:]}"
        made = {name: data for name, data in made.items() if not name.endswith(".tmp") or number == signal.SIGINT}
        fault = fault or judge(max(code, 0) or (130 if code else 0), said or "a signal", made, wanted, before)
        tally.count(what, code, fault)
    return tally


def _start() -> float:
    """Return seconds in which Python itself begins: nobody can answer a signal before."""
    begun = time.monotonic()
    subprocess.run([sys.executable, "-c", "import runpy, receipt_cli"], check=True)
    return (time.monotonic() - begun) * 1.5


def main() -> int:
    """Run all and print the table; 1 where one result was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=200, help="signals in all")
    parser.add_argument("--only", default="", help="the commands whose name holds this text")
    parser.add_argument("--results", type=Path, help="write the table into this JSON file, too")
    options = parser.parse_args()
    works = [work for work in WORKS if options.only in work.name]
    with tempfile.TemporaryDirectory() as name:

        def each(work: Work) -> Tally:
            return torture(work, Path(name), -(-options.times // len(works)), random.Random(work.name))

        return tell_all(works, each, "signals", options.results)


if __name__ == "__main__":
    sys.exit(main())
