"""Describe the machine of a measurement."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path

from benchmarks.inputs import ROOT


def describe_machine() -> dict[str, str]:
    """Return processor, cores, memory, kernel, Python and the commit of this checkout."""
    return {
        "processor": _processor(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.1f} GiB",
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()} ({' '.join(platform.python_build())})",
        "commit": commit(),
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or "unknown"


def commit() -> str:
    """Return the short commit of this checkout, with ``-dirty`` if tracked files of the program were changed."""

    def git(*words: str) -> str:
        done = subprocess.run(("git", "-C", str(ROOT), *words), capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    name = git("rev-parse", "--short", "HEAD") or "unknown"
    return name + ("-dirty" if git("status", "--porcelain", "--", "receipt_cli", "grammars", "schemas") else "")
