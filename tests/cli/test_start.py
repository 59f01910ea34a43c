"""What a start loads: no command imports what it does not need."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SMALL = ROOT / "fixtures" / "logs" / "autoresearch" / "five-minutes.log"
PROGRAM = """
import atexit, sys
before = set(sys.modules)  # what measures the tests is there already
atexit.register(lambda: print(*sys.modules.keys() - before, file=sys.stderr))
from receipt_cli.cli.main import main
main()
"""
UNUSED = (
    "asyncio", "charset_normalizer", "concurrent.futures.process", "duckdb", "fsspec", "git", "jsonschema", "multiprocessing",
    "psutil", "pydantic", "ssl", "unittest", "yaml", "zlib_ng", "zstandard",
    "receipt_cli.authoring.lint", "receipt_cli.batch", "receipt_cli.ci", "receipt_cli.comparison", "receipt_cli.emit",
    "receipt_cli.export", "receipt_cli.follow", "receipt_cli.gpu_profile",
    "receipt_cli.header.host", "receipt_cli.header.git", "receipt_cli.header.host", "receipt_cli.history",
    "receipt_cli.importers", "receipt_cli.learn", "receipt_cli.mcp_server", "receipt_cli.report", "receipt_cli.store",
    "receipt_cli.verification", "receipt_cli.wrap",
)  # fmt: skip
"""What takes long to load, or belongs to other commands: a plain log of 30 kB needs nothing of it."""


def loaded(*words: str) -> list[str]:
    """Return the modules that a command has loaded when it ends."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stderr.split()


def test_a_small_log_loads_what_it_needs() -> None:
    assert [name for name in loaded("parse", "--json", str(SMALL)) if name in UNUSED] == []
    assert [name for name in loaded("check", str(SMALL)) if name in ("git", "jsonschema", "psutil", "pydantic")] == []


def test_the_version_loads_no_part_of_a_scan() -> None:
    parts = ("receipt_cli.definitions", "receipt_cli.derive", "receipt_cli.grammar", "receipt_cli.scan.engine", "regex.")
    assert [name for name in loaded("--version") if name.startswith(parts)] == []


def test_the_help_loads_no_command() -> None:
    assert [name for name in loaded("--help") if name.startswith("receipt_cli.cli.commands.")] == []
