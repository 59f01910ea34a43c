"""Derive an archive of edited copies of real logs, and check the paths, names and outcomes of all files and runs.

python -m benchmarks.edited FOLDER [--logs 2000] [--workers 2] [--largest BYTES]

A copy has another name, other seeds, and other last digits in a tenth of its decimal numbers; steps and structure stay. The
archive contains the logs too: each copy must have as many runs as its log, and a time if its log has one. Each file of the
archive must have a line of ``receipt store build --json`` with an outcome, and a reason if it is left out.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.kill import print_and_exit
from receipt_cli.io.discovery import find_logs
from receipt_cli.store.index import open_store

_SEED = re.compile(rb"(?i)(seed\w*['\"]?[ =:]{1,3})(\d{1,9})\b")
_DECIMAL = re.compile(rb"(?<![\d.:])\d{1,6}\.\d{2,12}(?![\d.:])")
_SHARE = 0.1
NO_LOGS = {"about.md": b"# About\n", "job.err": b"", "model.safetensors": b"\x08\0\0\0\0\0\0\0{}", ".hidden.log": b"step 1\n"}
"""Files of the archive that are not logs: each must have a line with its reason."""


@dataclass
class Outcome:
    """Counts, and faults."""

    files: int = 0
    receipts: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    several: int = 0
    dated: int = 0
    wrong: list[str] = field(default_factory=list)


def edited(text: bytes, chance: random.Random) -> bytes:
    """Return an equally long log with other seeds, and other last digits in a tenth of its decimal numbers."""

    def digits(found: re.Match[bytes]) -> bytes:
        number = found[0]
        return number if chance.random() > _SHARE else number[:-1] + b"%d" % chance.randrange(10)

    def seed(found: re.Match[bytes]) -> bytes:
        return found[1] + str(chance.randrange(10 ** (len(found[2]) - 1), 10 ** len(found[2]))).encode()

    return _DECIMAL.sub(digits, _SEED.sub(seed, text))


def make(folder: Path, archive: Path, count: int, largest: int, chance: random.Random) -> dict[str, str]:
    """Write the folder's logs up to ``largest`` bytes and ``count`` edited copies; return copy → log."""
    found = [Path(path) for path in find_logs([str(folder)])[0]]
    texts = {path.relative_to(folder).as_posix(): path.read_bytes() for path in found if path.stat().st_size <= largest}
    copies: dict[str, str] = {}
    for name, text in texts.items():
        _write(archive / "logs" / name, text)
    for name, data in NO_LOGS.items():
        _write(archive / "logs" / name, data)
    names = sorted(texts)
    for number in range(count if names else 0):
        name = names[number % len(names)]
        copy = Path("copies", f"{number // len(names):03d}", name).with_name(f"{number:05d}-{Path(name).name}").as_posix()
        _write(archive / copy, edited(texts[name], chance) + b"\n" * (1 + number // len(names)))  # no two have the same bytes
        copies[copy] = f"logs/{name}"
    return copies


def _write(path: Path, text: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text)


def examine(archive: Path, store: Path, copies: dict[str, str], workers: int) -> Outcome:
    """Derive the archive and return the outcome."""
    outcome = Outcome(files=sum(path.is_file() for path in archive.rglob("*")))
    command = [sys.executable, "-m", "receipt_cli", "rederive", str(archive), "--store", str(store), "--json"]
    done = subprocess.run([*command, "--workers", str(workers)], stdout=subprocess.PIPE, check=False)
    listed: set[str] = set()
    for report in map(json.loads, done.stdout.splitlines()):
        listed.add(report["path"])
        outcome.reasons[": ".join(filter(None, (report["outcome"], report["why"])))] += 1
        if report["outcome"] in ("left_out", "quarantined") and not report["why"]:
            outcome.wrong.append(f"{report['path']} is {report['outcome']} without a reason")
    for path in archive.rglob("*"):
        name = path.relative_to(archive).as_posix()
        if path.is_file() and name not in listed:
            outcome.wrong.append(f"{name} has no line")
    database = open_store(store)
    rows = database.run("SELECT name, log_path, run_at IS NOT NULL, log_sha256 FROM runs")
    paths: dict[str, str] = dict(database.run("SELECT DISTINCT path, log_sha256 FROM paths"))
    runs, dated = Counter[str](), dict[str, bool]()
    for name, path, has_time, log in rows:
        outcome.receipts += 1
        runs[log] += 1
        dated[log] = dated.get(log, False) or has_time
        if name is None or path is None:
            outcome.wrong.append(f"a run of {path or log} has no {'name' if name is None else 'path'}")
    for copy, log in copies.items():
        here, there = paths.get(copy), paths.get(log)
        outcome.several += runs[there or ""] > 1
        outcome.dated += dated.get(here or "", False)
        if runs[here or ""] != runs[there or ""]:
            outcome.wrong.append(f"{copy} has {runs[here or '']} runs, its log {runs[there or '']}")
        if dated.get(here or "") != dated.get(there or ""):
            outcome.wrong.append(f"of {copy} and its log one alone has a time")
    return outcome


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--logs", type=int, default=2000)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--largest", type=int, default=128 << 10, help="bytes of the largest log that is taken")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if not given.folder.is_dir():
        print(f"there is no folder {given.folder}: nothing to do")
        return
    with tempfile.TemporaryDirectory(prefix="receipt-edited-") as work:
        archive = Path(work, "archive")
        copies = make(given.folder, archive, given.logs, given.largest, random.Random(given.seed))
        outcome = examine(archive, Path(work, "store"), copies, given.workers)
    print(f"{outcome.files} files, {len(copies)} of them edited copies: {outcome.receipts} runs, each with its path and name")
    print(f"{outcome.several} copies of logs with several runs; {outcome.dated} copies with a time")
    for reason, count in sorted(outcome.reasons.items()):
        print(f"  {reason:60} {count:6}")
    print_and_exit(outcome.wrong)


if __name__ == "__main__":
    main()
