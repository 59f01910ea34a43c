"""Measure which lines of the package the tests of ``make test`` run, of those that ``make test-all`` runs.

python -m benchmarks.test_lines [--jobs 2] [--results benchmarks/results/test-all.md] [PATH...]

The tests that are not slow run first, then the slow ones, both under coverage.py, which also measures the processes that
tests start. What a process runs that a signal kills, or that gets an environment of its own, is not measured. The section
*Lines* of the page is replaced. The exit code is 1 if the share is below ``LEAST``, or a test fails.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from coverage import CoverageData

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "test-lines"
LEAST = 0.98
"""Least share of the lines that all tests run, in ``make test``."""
SELECTIONS = {"test": "not slow", "slow": "slow"}
SECTION = "\n## Lines\n"
LISTED = 20
CONFIG = """[run]
source = {root}/receipt_cli
omit = {root}/receipt_cli/_compiled/*
data_file = {folder}/{name}.data
parallel = true
sigterm = true
patch = subprocess, _exit
"""
Lines = Mapping[str, frozenset[int]]
"""File → the numbers of its lines that were run."""


def measure(name: str, marks: str, jobs: str, paths: Sequence[str]) -> tuple[Lines, int]:
    """Run the tests with these ``marks``; return the lines that they run, and pytest's exit code (0 if no test has them)."""
    config = FOLDER / f"{name}.ini"
    config.write_text(CONFIG.format(root=ROOT, folder=FOLDER, name=name), "utf-8")
    coverage = [sys.executable, "-m", "coverage"]
    tests = ["-m", "pytest", "-q", "-n", jobs, "--dist", "worksteal", "-p", "no:cacheprovider", "-m", marks, *paths]
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    code = subprocess.run([*coverage, "run", f"--rcfile={config}", *tests], cwd=ROOT, env=environ, check=False).returncode
    subprocess.run([*coverage, "combine", "--quiet", f"--rcfile={config}"], cwd=ROOT, check=True)
    data = CoverageData(str(FOLDER / f"{name}.data"))
    data.read()
    found = {os.path.relpath(file, ROOT): frozenset(data.lines(file) or ()) - texts_of(file) for file in data.measured_files()}
    return found, 0 if code == 5 else code


def texts_of(file: str) -> frozenset[int]:
    """Return the lines of docstrings: ``python -OO`` counts their first lines as run."""
    tree = ast.walk(ast.parse(Path(file).read_bytes()))
    texts = (node.body[0] for node in tree if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and node.body)
    return frozenset(line for text in texts if _is_text(text) for line in range(text.lineno, (text.end_lineno or 0) + 1))


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def write_section(test: Lines, slow: Lines, failed: bool) -> tuple[str, float]:
    """Return the section of the page, and the share of lines."""
    every = {name: test.get(name, frozenset()) | slow.get(name, frozenset()) for name in (*test, *slow)}
    missing = {name: lines - test.get(name, frozenset()) for name, lines in every.items()}
    ran, whole = sum(map(len, test.values())), sum(map(len, every.values()))
    share = ran / whole if whole else 0.0
    describe = subprocess.run(["git", "-C", str(ROOT), "describe", "--always", "--dirty"], stdout=subprocess.PIPE, check=True)
    told = f"Commit {describe.stdout.decode().strip()}, {datetime.datetime.now(datetime.UTC).date()}."
    lines = [
        SECTION,
        f"{told} `make test` runs {ran:,} of the {whole:,} lines of `receipt_cli` that all tests run: **{100 * share:.2f} %**",
        f"(at least {100 * LEAST:.0f} % are wanted).{' Some tests failed.' if failed else ''}",
        "",
    ]
    rows = sorted(((len(lines), name) for name, lines in missing.items() if lines), key=lambda row: (-row[0], row[1]))
    if rows:
        lines += [
            "| run by slow tests alone | lines |",
            "|---|--:|",
            *(f"| {name} | {count} |" for count, name in rows[:LISTED]),
            "",
        ]
    return "\n".join(lines), share


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", default=[])
    parser.add_argument("--jobs", default="2")
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    found = {name: measure(name, marks, given.jobs, given.paths) for name, marks in SELECTIONS.items()}
    failed = any(code for _, code in found.values())
    section, share = write_section(found["test"][0], found["slow"][0], failed)
    print(section)
    if given.results is not None:
        page = given.results.read_text("utf-8") if given.results.exists() else "# All tests\n"
        given.results.write_text(page.partition(SECTION)[0] + section, "utf-8")
    return int(failed or share < LEAST)


if __name__ == "__main__":
    sys.exit(main())
