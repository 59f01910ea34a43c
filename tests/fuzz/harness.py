"""One target under a watch: an exception, two seconds of CPU or a gigabyte of memory for one input is a crash, and kept."""

import hashlib
import importlib
import json
import resource
import sys
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RULES = tuple(f"rule_{kind}" for kind in ("block", "mapping", "pairs", "pattern", "table"))
"""Targets of ``tests.fuzz.rules``: rules of a kind on any record."""
TARGETS = tuple(sorted([*RULES, *(path.stem for path in (Path(__file__).parent / "targets").glob("[a-z]*.py"))]))
"""The names of all targets."""
BOUND_S = 2.0
"""CPU seconds that one input may take; libFuzzer's own inputs are at most 4 KiB long."""
BOUND_KB = 1 << 20
"""Growth of the largest memory by one input, in KiB."""


class Slow(Exception):
    """An input took more time than it may."""


class Large(Exception):
    """An input took more memory than it may."""


def load(name: str) -> tuple[Callable[[bytes], None], list[bytes]]:
    """Return the function of a target, and its seeds."""
    if name in RULES:
        target, seeds = importlib.import_module("tests.fuzz.rules").rule_target(name.removeprefix("rule_"))
        return target, seeds()
    module = importlib.import_module(f"tests.fuzz.targets.{name}")
    return module.target, list(module.seeds())


@dataclass
class Watch:
    """Runs inputs and remembers what happened. Of crashes at one place the shortest input is kept."""

    name: str
    target: Callable[[bytes], None]
    folder: Path
    executions: int = 0
    slowest_s: float = 0.0
    crashes: dict[str, int] = field(default_factory=dict)
    started: float = field(default_factory=time.process_time)

    def __call__(self, data: bytes) -> None:
        """Run one input; a crash is kept and passed over, so that one does not hide the next."""
        self.executions += 1
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        begun = time.process_time()
        try:
            self.target(data)
        except Exception as error:
            self._keep(place_of(error), data, "".join(traceback.format_exception(error)))
        spent = time.process_time() - begun
        self.slowest_s = max(self.slowest_s, spent)
        if spent > BOUND_S:
            self._keep("slow", data, f"{spent:.2f} s\n")
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory
        if grown > BOUND_KB:
            self._keep("large", data, f"{grown} KiB\n")

    def _keep(self, place: str, data: bytes, report: str) -> None:
        stem = hashlib.sha256(place.encode()).hexdigest()[:12]
        path = self.folder / f"crash-{stem}"
        if place not in self.crashes or len(data) < path.stat().st_size:
            self.folder.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            path.with_suffix(".txt").write_text(f"{place}\n\n{report}", "utf-8", "replace")
        self.crashes[place] = self.crashes.get(place, 0) + 1

    def result(self, engine: str) -> dict[str, object]:
        """Return the counts."""
        spent = time.process_time() - self.started
        return {
            "target": self.name,
            "engine": engine,
            "executions": self.executions,
            "cpu_s": round(spent, 1),
            "slowest_s": round(self.slowest_s, 3),
            "crashes": len(self.crashes),
            "places": sorted(self.crashes),
        }


def place_of(error: BaseException) -> str:
    """Return the kind of ``error`` and the innermost line of ours that it went through."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "receipt_cli" in frame.filename] or list(frames)
    last = ours[-1] if ours else None
    return f"{type(error).__name__} {Path(last.filename).name}:{last.lineno}" if last else type(error).__name__


def write_result(path: Path, result: dict[str, object]) -> None:
    """Write the counts for whoever started us."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result), "utf-8")


def report_inputs(name: str, paths: Sequence[Path]) -> int:
    """Run the inputs in ``paths`` once each, as they are; raise what they raise."""
    target, _ = load(name)
    for path in paths:
        print(path, file=sys.stderr)
        target(path.read_bytes())
    return 0
