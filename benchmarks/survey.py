"""List the results for a folder of logs: grammar, steps, ending and unread metric-looking lines of each log.

    python benchmarks/survey.py FOLDER [--all-runs]

Every log is read by the real command in a separate process. The last lines count faults: line counts that do not add up,
crashes, refusals. Exit code 1 if there was one of the first two.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
SUFFIXES = {".log", ".txt", ".out", ".err", ".json", ".jsonl", ".ndjson", ".md"}
NOT_LOGS = {"MANIFEST.tsv", "README.md", "truth.jsonl"}
REFUSALS = (3, 4)


def receipt_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``receipt`` of this checkout and return the finished process."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "receipt_cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False, env=environment)


def unread_lines(log: Path) -> int:
    """Return the number of metric-looking lines of ``log`` that match nothing."""
    done = receipt_command("grammar", "explain", "--json", str(log))
    return json.loads(done.stdout)["unmatched_metric_line_count"] if done.stdout else -1


def row(log: Path) -> tuple[list[str], str | None]:
    """Return the table cells of one log, and its fault, if any."""
    done = receipt_command("parse", "--json", str(log))
    try:
        document: dict[str, Any] = json.loads(done.stdout)
    except ValueError:
        last = (done.stderr.strip().splitlines() or ["no message"])[0]
        return ["", "", "", "", "", f"exit {done.returncode}: {last[:60]}"], None if done.returncode in REFUSALS else "crash"
    derivation = document["derivation"]
    lines = derivation["lines"]
    grammars = " ".join(f"{g['id']}@v{g['version']}" for g in derivation["grammars"]) or "none"
    steps = (document["summary"] or {}).get("steps") or {}
    loss = ((document["summary"] or {}).get("metrics") or {}).get("loss") or {}
    records = document["derivation"].get("record_count", sum(lines.values()))
    wrong = None if sum(lines.values()) == records and done.returncode in (0, 4) else "accounting"
    ending = (document["failure"] or {}).get("reason") or ("completed" if document["checks"]["completed"] else "open")
    span = f"{steps.get('first')}-{steps.get('last')}" if steps.get("first") is not None else ""
    losses = f"{loss.get('first')} {loss.get('last')}" if loss else ""
    counted = str(steps.get("record_count", ""))
    return [grammars, counted, span, losses, str(unread_lines(log)), ending], wrong


def main(folder: Path) -> int:
    """Print the table of every log under ``folder``."""
    logs = sorted(p for p in folder.rglob("*") if p.suffix in SUFFIXES and p.name not in NOT_LOGS)
    print("\t".join(["log", "grammars", "steps", "first-last", "loss first last", "unread", "ending"]))
    wrong: dict[str, int] = {}
    for log in logs:
        cells, fault = row(log)
        if fault:
            wrong[fault] = wrong.get(fault, 0) + 1
        print("\t".join([str(log.relative_to(folder)), *cells, *([fault] if fault else [])]), flush=True)
    print(f"{len(logs)} logs; " + (", ".join(f"{n} {what}" for what, n in wrong.items()) or "nothing wrong"))
    return 1 if wrong else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        print("survey.py: name a folder of logs")
        sys.exit(0)
    sys.exit(main(Path(sys.argv[1])))
