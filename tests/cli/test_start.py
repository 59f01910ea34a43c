"""What a start loads: no command imports what it does not need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SMALL = ROOT / "fixtures" / "logs" / "autoresearch" / "five-minutes.log"
PROGRAM = """
import atexit, sys
atexit.register(lambda: print(*sys.modules, file=sys.stderr))
from receipt_cli.cli.main import main
main()
"""
HEAVY = (
    "argparse", "asyncio", "concurrent.futures", "jsonschema", "logging", "multiprocessing", "numpy", "psutil", "rich", "shlex",
    "ssl", "tomllib", "unittest", "yaml", "zstandard",
)  # fmt: skip
UNUSED = (
    "receipt_cli.analysis.goodput.stalls", "receipt_cli.analysis.goodput.step_time_account",
    "receipt_cli.detect.version_ratio", "receipt_cli.events.compact", "receipt_cli.events.file_order", "receipt_cli.follow",
    "receipt_cli.header.header_file", "receipt_cli.importers", "receipt_cli.io.pipe", "receipt_cli.io.prefetch",
    "receipt_cli.learn", "receipt_cli.records.literals", "receipt_cli.redaction.wrapped", "receipt_cli.render",
    "receipt_cli.scan.extraction.mapping", "receipt_cli.scan.last_record", "receipt_cli.store",
)  # fmt: skip
"""What a plain log with an end, of one run, needs nothing of."""


def loaded(*words: str) -> list[str]:
    """Return the modules that a command has loaded when it ends."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stderr.split()


def test_a_small_log_loads_what_it_needs() -> None:
    modules = loaded("parse", "--json", str(SMALL))
    assert [name for name in (*HEAVY, *UNUSED) if name in modules] == []
    assert sum(name.startswith("receipt_cli") for name in modules) <= 215


def test_the_version_loads_no_part_of_a_scan() -> None:
    modules = loaded("--version")
    assert [name for name in modules if name.startswith(("receipt_cli.definitions", "receipt_cli.grammar", "regex."))] == []
    assert sum(name.startswith("receipt_cli") for name in modules) <= 20
