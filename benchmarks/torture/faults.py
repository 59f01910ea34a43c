"""Let one system call of a command fail, each time another: the right result, or an error and nothing half done.

python -m benchmarks.torture.faults [--each 40]

strace injects the fault: call N of a kind fails with an error of that kind, from the call on that first touches the
command's own files. The calls before it load Python itself.
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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.torture.hidden import lines

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


@dataclass(frozen=True)
class Work:
    """A command, run in a folder of its own that ``prepare`` fills; ``result`` reads what it made, None where nothing."""

    name: str
    arguments: tuple[str, ...]
    prepare: Callable[[Path], None]
    result: Callable[[Path, bytes], dict[str, bytes]]
    marker: str
    """Text of the first call that is its own."""


@dataclass
class Tally:
    """What came of the faults of one command."""

    injected: int = 0
    unharmed: int = 0
    refused: Counter[int] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def _log(folder: Path) -> None:
    (folder / "run.log").write_bytes(b"".join(lines()))


def _logs(folder: Path) -> None:
    (folder / "logs").mkdir()
    for number in range(3):
        (folder / "logs" / f"{number}.log").write_bytes(b"".join(lines()[: 100 * (number + 1)]))


def _receipt(folder: Path, _out: bytes) -> dict[str, bytes]:
    made = folder / "run.receipt.json"
    return {"receipt": made.read_bytes()} if made.exists() else {}


def _store(folder: Path, _out: bytes) -> dict[str, bytes]:
    files = (p for p in sorted((folder / "store").rglob("*")) if p.is_file() and ".cache" not in p.parts)
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}


def _document(_folder: Path, out: bytes) -> dict[str, bytes]:
    return {"stdout": out} if out else {}


WORKS = (
    Work("parse -o", ("parse", "run.log", "-o", "run.receipt.json"), _log, _receipt, '"run.log"'),
    Work("parse --json", ("parse", "run.log", "--json"), _log, _document, '"run.log"'),
    Work("rederive", ("rederive", "logs", "--store", "store", "--workers", "1"), _logs, _store, '"logs"'),
)


def run(work: Work, folder: Path, trace: Sequence[str]) -> tuple[int, bytes, str, dict[str, bytes]]:
    """Run a command under strace; return exit code, output, what was said, and what was made."""
    work.prepare(folder)
    command = ["strace", "-f", "-qq", *trace, sys.executable, "-m", "receipt_cli", *work.arguments]
    environ = {**os.environ, "XDG_CACHE_HOME": str(folder.parent / "cache"), "PYTHONPATH": str(Path(__file__).resolve().parents[2])}
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, timeout=LIMIT, check=False)
    return done.returncode, done.stdout, done.stderr.decode("utf-8", "replace"), work.result(folder, done.stdout)


def calls(work: Work, base: Path) -> tuple[dict[str, list[int]], dict[str, bytes]]:
    """Return, by kind, the numbers of the calls that are the command's own, and what it makes when none fails."""
    with tempfile.TemporaryDirectory(dir=base) as name:
        run(work, _inner(name), ["-o", os.devnull])  # fills the cache
    with tempfile.TemporaryDirectory(dir=base) as name:
        trace = Path(name, "trace")
        code, _, said, made = run(work, _inner(name), ["-o", str(trace), "-e", f"trace={','.join(FAULTS)}"])
        if code or not made:
            raise SystemExit(f"{work.name} fails by itself: {said}")
        counts: Counter[str] = Counter()
        own: dict[str, list[int]] = {}
        begun = False
        for line in trace.read_text("utf-8", "replace").splitlines():
            found = re.match(r"(?:\d+ +)?(\w+)\(", line)
            if found is None:
                continue
            counts[found[1]] += 1
            begun = begun or work.marker in line
            if begun:
                own.setdefault(found[1], []).append(counts[found[1]])
    return own, made


def _inner(name: str) -> Path:
    folder = Path(name, "work")
    folder.mkdir()
    return folder


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
                with tempfile.TemporaryDirectory(dir=base) as name:
                    inject = ["-o", os.devnull, "-e", f"trace={kind}", "-e", f"inject={kind}:error={error}:when={number}"]
                    try:
                        code, _, said, made = run(work, _inner(name), inject)
                    except subprocess.TimeoutExpired:
                        tally.wrong.append(f"{what}: hangs")
                        continue
                fault = judge(code, said, made, wanted)
                if fault is not None:
                    tally.wrong.append(f"{what}: {fault}")
                elif code == 0:
                    tally.unharmed += 1
                else:
                    tally.refused[code] += 1
    return tally


def judge(code: int, said: str, made: dict[str, bytes], wanted: dict[str, bytes]) -> str | None:
    """Return what is wrong with a result, or None: whatever was made is right, and all of it unless the code says no."""
    other = [name for name, data in made.items() if "quarantine" not in name and wanted.get(name) != data]
    if other:
        return f"exit {code}, and {other[0]} is other than it must be"
    if code == 0 and made.keys() != wanted.keys():
        return f"exit 0, and {sorted(wanted.keys() - made.keys())} is missing"
    if code < 0:
        return f"died of signal {-code}"
    if code != 0 and not said.strip():
        return f"exit {code} without a word"
    return None


def main() -> int:
    """Run all and print the table; 1 where one result was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--each", type=int, default=40, help="calls of each kind that fail with each of its errors")
    options = parser.parse_args()
    if shutil.which("strace") is None:
        print("strace is not installed: no faults injected", file=sys.stderr)
        return 0
    wrong: list[str] = []
    print(f"{'command':<14} {'faults':>7} {'unharmed':>9} {'refused by exit code':<32} {'wrong':>6}")
    with tempfile.TemporaryDirectory() as name:
        for work in WORKS:
            tally = torture(work, Path(name), options.each)
            refused = ", ".join(f"{code}: {count}" for code, count in sorted(tally.refused.items()))
            print(f"{work.name:<14} {tally.injected:>7} {tally.unharmed:>9} {refused:<32} {len(tally.wrong):>6}", flush=True)
            wrong += tally.wrong
    print("\n".join(wrong))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
