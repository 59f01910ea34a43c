"""Kill a batch at random moments and restart it: its store must equal an undisturbed batch's, byte by byte.

python -m benchmarks.kill FOLDER [--kills 50] [--workers 2] [--engine local]

Every kill is SIGKILL: of the leading process only, of it and all its workers, or of one worker. After each kill, every file
in the store must equal the undisturbed batch's file. If a batch ends before its kill, the whole store is compared, and the
next batch begins with an empty store.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

import psutil

VICTIMS = ("leader", "everybody", "worker")
LEFT_OUT = ".cache"
DONE = (0, 3)
"""Exit codes of a batch that was not killed: all logs have receipts, or some are in quarantine."""


@dataclass
class Outcome:
    """Counts of the kills, and faults."""

    kills: Counter[str] = field(default_factory=Counter)
    completed: int = 0
    receipts: int = 0
    wrong: list[str] = field(default_factory=list)


def files_of(store: Path) -> dict[str, bytes]:
    """Return path → bytes of every file of a store, without its cache."""
    found = (path for path in sorted(store.rglob("*")) if path.is_file())
    names = ((path.relative_to(store), path) for path in found)
    return {name.as_posix(): path.read_bytes() for name, path in names if name.parts[0] != LEFT_OUT}


def start(folder: Path, store: Path, options: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a batch in its own process group."""
    command = [sys.executable, "-m", "receipt_cli", "rederive", str(folder), "--store", str(store), *options]
    with _said(store).open("wb") as said:
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=said, start_new_session=True)


def _said(store: Path) -> Path:
    """Return the file beside the store with the stderr of the last batch."""
    return store.with_suffix(".stderr")


def kill(batch: subprocess.Popen[bytes], victim: str, chance: random.Random) -> None:
    """Kill the leader, or its group and descendants, or one descendant."""
    with contextlib.suppress(psutil.NoSuchProcess):
        leader = psutil.Process(batch.pid)
        below = leader.children(recursive=True)
        doomed = {"leader": [leader], "everybody": [leader, *below], "worker": [chance.choice(below)] if below else []}[victim]
        for process in doomed:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
    if victim != "worker":
        batch.wait()


def kill_and_resume(folder: Path, work: Path, kills: int, options: Sequence[str], seed: int = 0) -> Outcome:
    """Kill batches over ``folder`` ``kills`` times, with stores in ``work``; return the outcome."""
    chance, outcome = random.Random(seed), Outcome()
    quiet, store = work / "quiet", work / "killed"
    before = time.monotonic()
    batch = start(folder, quiet, options)
    code = batch.wait()
    length = time.monotonic() - before
    want = files_of(quiet)
    outcome.receipts = sum(name.startswith("receipts/") for name in want)
    if code not in DONE or not outcome.receipts:
        outcome.wrong.append(f"the quiet batch ended with {code} and {outcome.receipts} receipts")
        return outcome
    while outcome.kills.total() < kills:
        batch = start(folder, store, options)
        with contextlib.suppress(subprocess.TimeoutExpired):
            batch.wait(chance.uniform(0.1, max(1.0, length * 0.8)))
        if batch.poll() is None:
            victim = chance.choice(VICTIMS)
            kill(batch, victim, chance)
            outcome.kills[victim] += 1
            outcome.wrong += [f"after kill {outcome.kills.total()}: {text}" for text in _wrong(files_of(store), want)]
            if victim != "worker":
                continue
            batch.wait()
        _finish(batch, store, want, outcome)
    _finish(start(folder, store, options), store, want, outcome)
    return outcome


def _finish(batch: subprocess.Popen[bytes], store: Path, want: dict[str, bytes], outcome: Outcome) -> None:
    """Let a batch end, compare its whole store with the undisturbed one, and delete it."""
    code, found = batch.wait(), files_of(store)
    if code not in DONE:
        outcome.wrong.append(f"a batch ended with {code}: {_said(store).read_text(errors='replace')[-2000:]}")
    outcome.wrong += [*_wrong(found, want), *(f"{name} is missing" for name in want.keys() - found.keys())]
    outcome.completed += 1
    while store.exists():  # workers of a killed leader may still write
        shutil.rmtree(store, ignore_errors=True)


def _wrong(found: dict[str, bytes], want: dict[str, bytes]) -> list[str]:
    """Return the files that the undisturbed batch did not write, or wrote differently."""
    return [f"{name} is {'another' if name in want else 'new'}" for name, data in found.items() if want.get(name) != data]


def print_and_exit(wrong: Sequence[str]) -> NoReturn:
    """Print the number of differences and the first of them; exit with 1 if there are any, else with 0."""
    print(f"{len(wrong)} differences")
    for text in wrong[:20]:
        print(f"  {text}")
    sys.exit(1 if wrong else 0)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--engine", choices=("local", "ray"), default="local")
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(4), "big"))
    given = parser.parse_args()
    options = ["--workers", str(given.workers), "--engine", given.engine]
    with tempfile.TemporaryDirectory(prefix="receipt-kill-") as work:
        outcome = kill_and_resume(given.folder, Path(work), given.kills, options, given.seed)
    killed = ", ".join(f"{victim} {outcome.kills[victim]}" for victim in VICTIMS)
    total = outcome.kills.total()
    print(f"seed {given.seed}: {outcome.receipts} receipts; {total} kills ({killed}), {outcome.completed} completed")
    print_and_exit(outcome.wrong)


if __name__ == "__main__":
    main()
