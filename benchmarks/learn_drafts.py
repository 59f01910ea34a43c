"""Check the drafts of ``receipt grammar learn`` for real logs: do they pass the lint, and read as much as generic reading?

    python -m benchmarks.learn_drafts [FOLDER] [--family NAME]... [--jobs N] [--write]

FOLDER (default: the environment variable RECEIPT_LOGS) contains ``<kind>/<family>/<log>`` and ``truth.jsonl``, whose lines are
``{"path": …, "expect": {"summary.steps.record_count": …}}``. Logs without training records, by the truth or else by the full
program, are left out. A draft is good if it passes the lint, reads steps, and has every value of generic reading
(``--grammar generic``); if that refuses the log, steps are enough. ``--write`` writes the table to
``benchmarks/results/learn_drafts.json``. The exit code is 1 if fewer than nine in ten drafts are good.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

from receipt_cli.authoring.lint import lint_grammar
from receipt_cli.authoring.proposal import covers, propose
from receipt_cli.derive import Options, derive
from receipt_cli.errors import ReceiptError
from receipt_cli.io.source import Source

RESULT = Path(__file__).resolve().parent / "results" / "learn_drafts.json"
WANTED = 0.9
LONG = 300
"""Longest line of a pattern, in characters, in a readable draft."""


def measure(path: str, known: bool) -> dict[str, Any] | None:
    """Return the result for the draft of one log; None without records. ``known``: the log has records."""
    if not known:
        try:
            with closing(Source(path)) as source:
                if derive(source, workers=1).checks.get("has_steps") is not True:
                    return None
        except ReceiptError:
            return None
    started = time.perf_counter()
    try:
        proposal = propose(path, "drafted")
    except ReceiptError as error:
        return {"verdict": "no draft", "why": error.message, "seconds": time.perf_counter() - started}
    seconds = time.perf_counter() - started
    with closing(Source(path)) as source:
        generic = derive(source, Options(grammar="generic"), workers=1)
    read = generic.checks.get("has_steps") is True
    verdict = "good" if read else "good, where generic reading refuses"
    if lint_grammar(proposal.text, "drafted.yaml"):
        verdict = "fails the lint"
    elif not proposal.steps:
        verdict = "reads no step"
    elif read and not covers(proposal.derivation, generic):
        verdict = "reads less"
    lines = proposal.text.decode("utf-8").split("\n")
    return {
        "verdict": verdict,
        "kinds": sorted({rule.kind for rule in proposal.grammar.rules}),
        "longest": max((len(line) for line in lines if "(?P<" in line or "(?&" in line), default=0),
        "questions": len(proposal.questions),
        "seconds": seconds,
    }


def _has_records(expected: dict[str, Any] | None) -> bool | None:
    """Return whether a log has training records by its truth; None without a truth."""
    if expected is None:
        return None
    return bool(expected.get("summary.steps.record_count")) or expected.get("checks.has_steps") is True


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default=os.environ.get("RECEIPT_LOGS", ""))
    parser.add_argument("--family", action="append", help="only this family; may be given several times")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--write", action="store_true", help=f"write {RESULT.name}")
    options = parser.parse_args()
    folder = Path(options.folder)
    if not options.folder or not (folder / "truth.jsonl").is_file():
        print("no logs")
        return 0
    lines = (folder / "truth.jsonl").read_text("utf-8").splitlines()
    truths = {entry["path"]: entry["expect"] for entry in map(json.loads, filter(str.strip, lines))}
    paths = [p.relative_to(folder).as_posix() for p in sorted(folder.glob("*/*/*")) if p.is_file() and p.suffix != ".md"]
    paths = [path for path in paths if not options.family or path.split("/")[1] in options.family]
    known = [_has_records(truths.get(path)) for path in paths]
    asked = [(path, has is True) for path, has in zip(paths, known, strict=True) if has is not False]
    with ProcessPoolExecutor(options.jobs) as pool:
        results = pool.map(measure, [str(folder / path) for path, _ in asked], [has for _, has in asked])
        found = {path: result for (path, _), result in zip(asked, results, strict=True) if result is not None}
    for path, result in found.items():
        if not result["verdict"].startswith("good"):
            print(f"{result['verdict']:14} {path} {result.get('why', '')}")
    return show(found, options.write)


def show(found: dict[str, dict[str, Any]], write: bool) -> int:
    """Print the counts; return the exit code."""
    verdicts = Counter(result["verdict"] for result in found.values())
    kinds = Counter(kind for result in found.values() for kind in result.get("kinds", ()))
    good = sum(count for verdict, count in verdicts.items() if verdict.startswith("good"))
    seconds = sorted(result["seconds"] for result in found.values())
    table = {
        "logs with records": len(found),
        "good": good,
        "share": round(good / max(1, len(found)), 4),
        "verdicts": dict(sorted(verdicts.items())),
        "kinds of rules": dict(sorted(kinds.items())),
        f"patterns of at most {LONG} characters a line": sum(result.get("longest", 0) <= LONG for result in found.values()),
        "without a question": sum(result.get("questions") == 0 for result in found.values()),
    }
    print(json.dumps({**table, "median seconds": round(seconds[len(seconds) // 2], 2) if seconds else None}, indent=2))
    if write:
        RESULT.write_text(json.dumps(table, indent=2) + "\n", "utf-8")
    return 0 if good >= WANTED * len(found) else 1


if __name__ == "__main__":
    sys.exit(main())
