"""Run the command line with a thread that samples the position of every thread a thousand times per second.

    python -m benchmarks.sampling OUTPUT parse LOG …

Only this process is sampled, not its workers. A call that holds the interpreter's lock is sampled at its return.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import FrameType

PACKAGE = "receipt_cli"
IMPORTING = "(imports)"
WAITING = "(waiting)"
ELSEWHERE = "(elsewhere)"
_WAITS = {"threading", "queue", "selectors", "concurrent.futures._base", "multiprocessing.connection"}
PERIOD = 0.001
"""Seconds between two samples."""


class Sampler(threading.Thread):
    """Counts the positions of threads: ``own`` by place, ``total`` by every function of the package on a stack."""

    def __init__(self, main: int) -> None:
        super().__init__(daemon=True)
        self.own: dict[str, Counter[str]] = {"main": Counter(), "others": Counter()}
        self.total: Counter[str] = Counter()
        self.looks = 0
        self.done = threading.Event()
        self._main = main

    def run(self) -> None:
        """Sample until ``done`` is set."""
        while not self.done.wait(PERIOD):
            self.looks += 1
            for ident, frame in sys._current_frames().items():
                if ident != self.ident:
                    self._count("main" if ident == self._main else "others", frame)

    def _count(self, thread: str, innermost: FrameType) -> None:
        place, seen = "", set()
        waiting = innermost.f_globals.get("__name__") in _WAITS
        frame: FrameType | None = innermost
        while frame is not None:
            module = frame.f_globals.get("__name__", "")
            if module == "importlib._bootstrap" and not place:
                place = IMPORTING
            if module.partition(".")[0] == PACKAGE and frame.f_code.co_name != "<module>":
                name = f"{module.removeprefix(PACKAGE + '.')}.{frame.f_code.co_qualname}"
                place = place or (WAITING if waiting else name)
                seen.add(name)
            frame = frame.f_back
        self.own[thread][place or (WAITING if waiting else ELSEWHERE)] += 1
        if thread == "main":
            self.total.update(seen)


def main() -> None:
    """Run the command and write the counts as JSON."""
    output = Path(sys.argv[1])
    sys.argv = ["receipt", *sys.argv[2:]]
    sys.setswitchinterval(PERIOD / 2)
    sampler = Sampler(threading.get_ident())
    begun = time.perf_counter()
    sampler.start()
    try:
        from receipt_cli.cli.main import main as command

        command()
    except SystemExit as ended:
        if ended.code:
            raise
    sampler.done.set()
    sampler.join()
    document = {"seconds": time.perf_counter() - begun, "looks": sampler.looks, "own": sampler.own, "total": sampler.total}
    output.write_text(json.dumps(document))


if __name__ == "__main__":
    main()
