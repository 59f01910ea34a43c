"""Let every operation on files of a command fail, one at a time, inside of a process that has loaded the program.

python -m benchmarks.torture.injected [--only NAME] [--each 1000] [--results FILE]

The command is run once to count them, then once for each of them and each error.
Each run is a copy of a process that has imported what it needs, so that only the command's own operations fail, and a run
takes a few hundredths of a second. A read or write may also be short, which must change nothing.
"""

from __future__ import annotations

import argparse
import builtins
import contextlib
import errno
import importlib
import io
import os
import shutil
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.torture.works import BUG, WORKS, Made, Tally, Work, judge, tell_all

SHORT = 0
"""Instead of an error: half of what was asked for, which is no failure."""
ERRORS = {
    "open": (errno.EMFILE, errno.EACCES, errno.EIO),
    "read": (errno.EIO, SHORT),
    "write": (errno.ENOSPC, errno.EIO, SHORT),
    "fsync": (errno.EIO, errno.ENOSPC),
    "replace": (errno.EACCES, errno.EIO),
    "rename": (errno.EACCES,),
    "link": (errno.EACCES, errno.EMLINK),
    "unlink": (errno.EACCES,),
    "mkdir": (errno.EACCES, errno.ENOSPC),
    "chmod": (errno.EPERM,),
    "stat": (errno.EACCES, errno.EIO),
    "fstat": (errno.EIO,),
    "listdir": (errno.EACCES, errno.EMFILE),
    "scandir": (errno.EACCES, errno.EMFILE),
    "pipe": (errno.EMFILE,),
}
_DIRECT = ("fsync", "replace", "rename", "link", "unlink", "mkdir", "chmod", "stat", "fstat", "listdir", "scandir", "pipe")


class Faults:
    """Counts operations by kind; the one of ``kind`` and ``number``, from 1, meets ``error``."""

    def __init__(self, kind: str = "", number: int = 0, error: int = SHORT) -> None:
        self.kind, self.number, self.error = kind, number, error
        self.counts: Counter[str] = Counter()

    def short(self, kind: str, file: object = None) -> bool:
        """Count an operation on ``file``; return whether it is to be short. Raises ``OSError`` where it is to fail."""
        self.counts[kind] += 1
        if (kind, self.counts[kind]) != (self.kind, self.number):
            return False
        if self.error != SHORT:
            raise OSError(self.error, os.strerror(self.error), *([os.fspath(file)] if isinstance(file, str | Path) else []))
        return True

    def install(self) -> None:
        """Take the place of what ``os``, ``io`` and ``open`` offer, for the rest of this process."""
        for name in _DIRECT:
            setattr(os, name, self._failing(name, getattr(os, name)))
        os.open = self._failing("open", os.open)
        io.open = builtins.open = self.open

    def _failing(self, kind: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            self.short(kind, *arguments[:1])
            return real(*arguments, **more)

        return call

    def open(
        self,
        file: Any,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
        closefd: bool = True,
        opener: Any = None,
    ) -> Any:
        """Do as ``open`` does, with a raw file whose reads and writes are counted."""
        if not isinstance(file, int):
            self.short("open", file)
        raw = _Raw(file, mode.replace("b", "").replace("t", ""), closefd, opener)
        raw.faults = self
        if buffering == 0:
            return raw
        size = buffering if buffering > 1 else io.DEFAULT_BUFFER_SIZE
        kind = io.BufferedRandom if "+" in mode else io.BufferedReader if "r" in mode else io.BufferedWriter
        buffer = kind(raw, size)
        return buffer if "b" in mode else io.TextIOWrapper(buffer, encoding, errors, newline, buffering == 1)


class _Raw(io.FileIO):
    faults: Faults

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        return super().readinto(view[: max(1, len(view) // 2)] if self.faults.short("read") else view)

    def readall(self) -> bytes:
        self.faults.short("read")
        return super().readall()

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        return super().write(view[: max(1, len(view) // 2)] if self.faults.short("write") else view)


def run(work: Work, folder: Path, faults: Faults, told: Path) -> tuple[int, str, Made, Made]:
    """Run a command in a copy of this process; return exit code, what was said, what was there before, and what then."""
    folder.mkdir()
    work.prepare(folder)
    before = work.result(folder, b"")
    sys.stdout.flush()
    child = os.fork()
    if not child:
        _inside(work, folder, faults, told)
    _, status = os.waitpid(child, 0)
    out, said = told.with_suffix(".out").read_bytes(), told.with_suffix(".err").read_text("utf-8", "replace")
    return os.waitstatus_to_exitcode(status), said, before, work.result(folder, out)


def _inside(work: Work, folder: Path, faults: Faults, told: Path) -> None:
    """Be the command; never returns."""
    code = 1
    try:
        os.chdir(folder)
        counts, real = told.with_suffix(".counts"), open
        out, err = real(told.with_suffix(".out"), "wb", buffering=0), real(told.with_suffix(".err"), "w", buffering=1)
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        sys.stderr, sys.argv = err, ["receipt", *work.arguments]
        faults.install()
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  # closed with the process
        from receipt_cli.cli.main import main

        try:
            main()
        except SystemExit as stopped:
            code = int(stopped.code or 0)
        with real(told.with_suffix(".modules"), "w") as file:
            file.write("\n".join(name for name in list(sys.modules) if name != "__main__"))
        with real(counts, "w") as file:
            file.writelines(f"{kind} {count}\n" for kind, count in faults.counts.items())
    except BaseException:
        err.write(traceback.format_exc())
    finally:
        os._exit(code)


def counted(work: Work, base: Path) -> tuple[dict[str, int], Made]:
    """Return how many operations of each kind a command has, and what it makes where none fails."""
    told = base / "told"
    run(work, base / "first", Faults(), told)  # fills the cache
    for module in told.with_suffix(".modules").read_text().splitlines():
        with contextlib.suppress(ImportError):  # of those that are no files
            importlib.import_module(module)
    code, said, before, made = run(work, base / "whole", Faults(), told)
    if code or made == before:
        raise SystemExit(f"{work.name} fails by itself: {said}")
    pairs = (line.split() for line in told.with_suffix(".counts").read_text().splitlines())
    return {kind: int(count) for kind, count in pairs}, made


def torture(work: Work, each: int) -> Tally:
    """Let operations of a command fail with each of their errors, of each kind ``each`` evenly spread ones; judge each."""
    import receipt_cli.cli.commands.parse
    import receipt_cli.cli.main  # noqa: F401

    tally = Tally()
    with tempfile.TemporaryDirectory() as name:
        base = Path(name)
        counts, wanted = counted(work, base)
        for kind, count in counts.items():
            for error in ERRORS[kind]:
                for number in range(count, 0, -max(1, count // each)):
                    tally.injected += 1
                    folder = base / str(tally.injected)
                    code, said, before, made = run(work, folder, Faults(kind, number, error), base / "told")
                    shutil.rmtree(folder)
                    what = f"{work.name}: {kind} number {number} {errno.errorcode.get(error, 'is short')}"
                    fault = judge(code, said, made, wanted, before, unlinks=kind == "unlink")
                    if code == BUG or (error == SHORT and code):
                        fault = fault or f"exit {code}: {said}"
                    tally.count(what, code, fault)
    return tally


def main() -> int:
    """Run all and print the table; 1 where one result was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="the commands whose name holds this text")
    parser.add_argument("--each", type=int, default=1000, help="operations of each kind that fail with each of its errors")
    parser.add_argument("--results", type=Path, help="write the table into this JSON file, too")
    options = parser.parse_args()
    works = [work for work in WORKS if options.only in work.name and not work.workers]
    return tell_all(works, lambda work: torture(work, options.each), "operations", options.results)


if __name__ == "__main__":
    sys.exit(main())
