"""Run all tests, including slow ones, and write a page with their outcomes and the reasons of skips.

python -m benchmarks.test_all [--jobs 2] [--results benchmarks/results/test-all.md] [PATH...]

``make test-all`` first installs the packages for the tests of readers, trainers and Ray. The exit code is pytest's.
"""

from __future__ import annotations

import argparse
import datetime
import platform
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from benchmarks.test_lines import SECTION
from tests.browser.chromium import find_chromium

ROOT = Path(__file__).resolve().parents[1]
REPORT = ROOT / "build" / "test-all.xml"
READERS = ("tensorboard", "wandb", "mlflow-skinny", "ray")


def outcomes(report: Path) -> tuple[Counter[tuple[str, str]], Counter[str], list[str]]:
    """Return the outcome counts of each folder, the reasons of skips, and the names of failed tests."""
    counts: Counter[tuple[str, str]] = Counter()
    reasons: Counter[str] = Counter()
    failed = []
    for case in ET.parse(report).iter("testcase"):
        found = next((child for child in case if child.tag in ("failure", "error", "skipped")), None)
        outcome = {"failure": "failed", "error": "failed"}.get(found.tag, found.tag) if found is not None else "passed"
        folder = case.get("classname", "").split(".")[1]
        counts[folder, outcome] += 1
        if outcome == "skipped" and found is not None:
            reasons[found.get("message", "")] += 1
        if outcome == "failed":
            failed.append(f"{case.get('classname')}::{case.get('name')}")
    return counts, reasons, failed


def write_page(report: Path, paths: list[str]) -> str:
    """Return the page of a run as Markdown."""
    counts, reasons, failed = outcomes(report)
    describe = ["git", "-C", str(ROOT), "describe", "--always", "--dirty"]
    commit = subprocess.run(describe, stdout=subprocess.PIPE, check=True).stdout
    lines = [
        "# All tests",
        "",
        f"Commit {commit.decode().strip()}, {datetime.datetime.now(datetime.UTC).date()}, {platform.python_version()} on "
        f"{platform.system()} {platform.machine()}; {', '.join(_installed())}.",
        *(["", f"Only {' '.join(paths)}."] if paths else []),
        "",
        "| tests/ | passed | failed | skipped |",
        "|---|--:|--:|--:|",
    ]
    for folder in sorted({folder for folder, _ in counts}):
        row = (counts[folder, outcome] for outcome in ("passed", "failed", "skipped"))
        lines.append(f"| {folder} | {' | '.join(map(str, row))} |")
    lines += ["", "## Failed", "", *([f"- `{name}`" for name in failed] or ["None."])]
    lines += ["", "## Skipped", "", *([f"- {count}: {reason}" for reason, count in reasons.most_common()] or ["None."]), ""]
    return "\n".join(lines)


def _installed() -> list[str]:
    """Return optional package → version or a remark that it is missing."""
    found = []
    for name in READERS:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            found.append(f"no {name}")
    program = find_chromium()
    if program is None:
        return [*found, "no Chromium"]
    said = subprocess.run([program, "--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False).stdout
    return [*found, said.decode().strip()]


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", default=[])
    parser.add_argument("--jobs", default="2")
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    REPORT.parent.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "pytest", "-n", given.jobs, "--dist", "worksteal", f"--junitxml={REPORT}", *given.paths]
    code = subprocess.run(command, cwd=ROOT, check=False).returncode
    if given.results is not None and REPORT.exists():
        _, title, lines = (given.results.read_text("utf-8") if given.results.exists() else "").partition(SECTION)
        given.results.write_text(write_page(REPORT, given.paths) + title + lines, "utf-8")
    return code


if __name__ == "__main__":
    sys.exit(main())
