"""The commands whose operations fail, what each makes, and what is wrong with how one ended."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from benchmarks.torture.hidden import STEPS, lines
from benchmarks.torture.results import note

Made = dict[str, bytes]
"""By name, the files that a command made or found, and ``stdout`` where it printed a document."""
BUG = 70


@dataclass(frozen=True)
class Work:
    """A command, run in a folder of its own that ``prepare`` fills. ``prints`` says that its result is what it prints.

    ``marker`` is text of the first system call that is its own. ``workers`` says that others do the work for it.
    """

    name: str
    arguments: tuple[str, ...]
    prepare: Callable[[Path], None]
    marker: str
    prints: bool = False
    workers: bool = False

    def result(self, folder: Path, out: bytes) -> Made:
        """Return every file of the folder, the store's cache left out, and what was printed if that is the result."""
        files = (path for path in sorted(folder.rglob("*")) if path.is_file() and ".cache" not in path.parts)
        made = {str(path.relative_to(folder)): path.read_bytes() for path in files}
        return {**made, "stdout": out} if self.prints and out else made


@dataclass
class Tally:
    """What came of the faults of one command."""

    HEAD: ClassVar[str] = f"{'command':<22} {'faults':>7} {'unharmed':>9} {'refused by exit code':<32} {'wrong':>6}"

    injected: int = 0
    unharmed: int = 0
    refused: Counter[int] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)

    def count(self, what: str, code: int, fault: str | None) -> None:
        """Count how a command ended that met the fault ``what``; ``fault`` is what was wrong with it."""
        if fault is not None:
            self.wrong.append(f"{what}: {fault}")
        elif code == 0:
            self.unharmed += 1
        else:
            self.refused[code] += 1

    def as_dict(self, name: str) -> dict[str, Any]:
        """Return the line of the table as JSON has it."""
        refused = {str(code): count for code, count in sorted(self.refused.items())}
        return {"command": name, "injected": self.injected, "unharmed": self.unharmed, "refused": refused, "wrong": self.wrong}

    def row(self, name: str) -> str:
        """Return a line of the table."""
        refused = ", ".join(f"{code}: {count}" for code, count in sorted(self.refused.items()))
        return f"{name:<22} {self.injected:>7} {self.unharmed:>9} {refused:<32} {len(self.wrong):>6}"


def tell_all(works: Iterable[Work], torture: Callable[[Work], Tally], part: str, results: Path | None) -> int:
    """Torture each command and print the table, and write it into ``results`` as its ``part``; 1 where one result was wrong."""
    wrong: list[str] = []
    rows: list[dict[str, Any]] = []
    print(Tally.HEAD)
    for work in works:
        tally = torture(work)
        print(tally.row(work.name), flush=True)
        wrong += tally.wrong
        rows.append(tally.as_dict(work.name))
    print("\n".join(wrong))
    if results:
        note(results, part, rows)
    return 1 if wrong else 0


def judge(
    code: int, said: str, made: Made, wanted: Made, before: Made, *, unlinks: bool = False, others: bool = False
) -> str | None:
    """Return what is wrong with how a command ended, or None.

    Every file is what it was ``before`` or what it is ``wanted`` to be, and all of them the latter unless the code says no.
    Where nothing can be unlinked, a temporary file may stay. With ``others``, processes that Python itself starts for us
    (the one that workers are copied from, the one that tracks resources) have met the fault, too, and say so in their way.
    """
    for name in sorted(made.keys() | before.keys()):
        if made.get(name) not in (before.get(name), wanted.get(name)) and not (unlinks and name.endswith(".tmp")):
            if "quarantine" in name and code:
                continue  # the log could not be read, as the exit code says; the next batch tries again
            return f"exit {code}, and {name} is other than it must be: {said[-300:]}"
    if code == 0 and any(made.get(name) != data for name, data in wanted.items()):
        return f"exit 0, and not all was made: {said[-300:]}"
    if code < 0:
        return f"died of signal {-code}"
    if "Traceback" in said and not others:
        return f"a traceback: {said[-300:]}"
    if code != 0 and not said.strip():
        return f"exit {code} without a word"
    return None


@functools.cache
def _receipts() -> tuple[bytes, ...]:
    """Return the receipts of three logs."""
    made = []
    with tempfile.TemporaryDirectory() as name:
        for number, text in enumerate(_texts()):
            Path(name, "run.log").write_bytes(text)
            command = [sys.executable, "-m", "receipt_cli", "parse", "run.log", "-o", f"{number}.json", "--lane", "a"]
            environ = {"PYTHONPATH": str(Path(__file__).resolve().parents[2])}
            subprocess.run(command, cwd=name, env=environ, stdout=subprocess.DEVNULL, check=True)
            made.append(Path(name, f"{number}.json").read_bytes())
    return tuple(made)


def _texts() -> list[bytes]:
    return [b"".join(lines()[: STEPS - number]) for number in range(3)]


def _log(folder: Path) -> None:
    (folder / "run.log").write_bytes(_texts()[0])


def _old(folder: Path) -> None:
    """Write a log, and the receipt of another under the name that its own will have."""
    _log(folder)
    (folder / "run.receipt.json").write_bytes(_receipts()[1])


def _logs(folder: Path) -> None:
    (folder / "logs").mkdir()
    for number, text in enumerate(_texts()[:2]):
        (folder / "logs" / f"{number}.log").write_bytes(text)


def _both(folder: Path) -> None:
    _log(folder)
    (folder / "run.receipt.json").write_bytes(_receipts()[0])


def _store(folder: Path) -> None:
    """Write a store of two receipts, and a third beside it."""
    for document in _receipts()[:2]:
        digest = json.loads(document)["derivation"]["log"]["sha256"]
        path = folder / "store" / "receipts" / digest[:2] / f"{digest}.1.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(document)
    (folder / "run.receipt.json").write_bytes(_receipts()[2])


WORKS = (
    Work("parse -o", ("parse", "run.log", "-o", "run.receipt.json"), _old, '"run.log"'),
    Work("parse --json", ("parse", "run.log", "--json"), _log, '"run.log"', prints=True),
    Work("verify", ("verify", "run.receipt.json", "run.log", "--json"), _both, '"run.receipt.json"', prints=True),
    Work("export", ("export", "run.receipt.json", "--to", "csv", "-o", "run.csv"), _both, '"run.receipt.json"'),
    Work("store add", ("store", "add", "store", "run.receipt.json"), _store, '"run.receipt.json"'),
    Work("report", ("report", "store", "-o", "report.html"), _store, '"store'),
    Work("rederive", ("rederive", "logs", "--store", "store", "--workers", "1"), _logs, '"logs"', workers=True),
)
