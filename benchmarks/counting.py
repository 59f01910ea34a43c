"""Run the command line and count its work: calls of the package's functions, calls into C, and pattern searches.

    python -m benchmarks.counting OUTPUT parse LOG …

Counts do not depend on the machine's speed, but differ a little between Python versions. Threads are counted, worker
processes are not.
"""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from pathlib import Path
from types import FrameType
from typing import Any

PACKAGE = "receipt_cli"
CALLS, C_CALLS, PATTERNS = "calls", "c_calls", "pattern_calls"


class Counts:
    """Counts by thread, so that no two threads write to the same counter."""

    def __init__(self) -> None:
        self.threads: dict[int, Counter[str]] = {}

    def see(self, frame: FrameType, event: str, arg: Any) -> None:
        """Count one event of ``sys.setprofile``, if the package's code caused it."""
        if event not in ("call", "c_call") or not frame.f_globals.get("__name__", "").startswith(PACKAGE):
            return
        counts = self.threads.setdefault(threading.get_ident(), Counter())
        if event == "call":
            counts[CALLS] += 1
        else:
            counts[C_CALLS] += 1
            if type(getattr(arg, "__self__", None)).__name__ == "Pattern":
                counts[PATTERNS] += 1

    def total(self) -> dict[str, int]:
        """Return the sums over all threads."""
        counted = sum(self.threads.values(), Counter())
        return {name: counted[name] for name in (CALLS, C_CALLS, PATTERNS)}


def main() -> None:
    """Run the command and write the counts as JSON."""
    output = Path(sys.argv[1])
    sys.argv = ["receipt", *sys.argv[2:]]
    from receipt_cli.cli.main import main as command

    counts = Counts()
    threading.setprofile(counts.see)
    sys.setprofile(counts.see)
    try:
        command()
    except SystemExit as ended:
        if ended.code:
            raise
    finally:
        sys.setprofile(None)
    output.write_text(json.dumps(counts.total()))


if __name__ == "__main__":
    main()
