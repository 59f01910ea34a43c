"""Count the right cards: for a log with a known cause, the first row must give its line, and a row the last step.

python -m benchmarks.answers CORPUS [--details]

``CORPUS/truth.jsonl`` has one entry per line: ``path``, ``failure_line`` (text of the line; entries without it are left out) and
``expect``, of which ``summary.steps.last`` is compared. The prefix of a rank, such as ``[rank3]:``, is ignored, because all ranks
print the same line, and so are the numbers in Slurm's lines of a job and of its step. torchrun reports one signal in two lines,
on its arrival and as its exception: either is right. If the entry expects that the run completed, the line of a finished run is
no other cause, because its card names none. Exit code 1 if fewer than 90 % are right.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from benchmarks.cards import card
from receipt_cli.errors import ReceiptError
from receipt_cli.io.source import Source
from receipt_cli.receipts.production import Request, produce

WANTED = 0.9
_RANK = re.compile(r"^(?:\s*\d+: )?(?:\[rank\d+\]:\s*)+")
_JOB = re.compile(r"\b(?:JOB \d+|STEP \d+\.\w+)")
_SIGNAL = re.compile(r".*\b(?:Received (\d+) death signal|SignalException: Process \d+ got signal: (\d+)).*")
_LINE = re.compile(r"\((?:log|[^()]+):(\d+)\)$")


def words(line: str) -> str:
    """Return a line without its rank prefix and without the number of a job; of a signal to torchrun, only its number."""
    line = _SIGNAL.sub(lambda found: f"torchrun got signal {found[1] or found[2]}", line)
    return _JOB.sub("JOB", _RANK.sub("", line)).strip()


def judge(log: Path, truth: dict[str, Any]) -> tuple[bool, bool, bool, str]:
    """Return whether the card gives the line, whether it gives another line, whether it gives the step, and the card."""
    shown = card(produce(Request(path=str(log))).document, log.name)
    found = _LINE.search(shown.splitlines()[0])
    line = None
    if found is not None:
        source = Source(str(log))
        try:
            lines = b"".join(source.blocks()).decode("utf-8", "replace").split("\n")
        finally:
            source.close()
        line = lines[int(found[1]) - 1]
    named = line is not None and words(truth["failure_line"]) in words(line)
    last = truth["expect"].get("summary.steps.last")
    finished = shown.startswith("✓") and truth["expect"].get("checks.completed") is True
    stepped = last is None or re.search(rf"(?<!\d){last:.0f}(?!\d)", shown) is not None
    return named, line is not None and not named and not finished, stepped, shown


def main() -> int:
    """Print the share of right cards; return 1 if it is too small."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--details", action="store_true", help="print each card that is not right")
    given = parser.parse_args()
    truths = [json.loads(line) for line in (given.corpus / "truth.jsonl").read_text("utf-8").splitlines() if line.strip()]
    truths = [truth for truth in truths if truth.get("failure_line")]
    right = other = 0
    for truth in truths:
        try:
            named, another, stepped, shown = judge(given.corpus / truth["path"], truth)
        except ReceiptError as error:
            named, another, stepped, shown = False, False, False, f"{error.message}\n"
        right += named and stepped
        other += another
        if given.details and not (named and stepped):
            print(f"# {truth['path']}: {truth['failure_line'][:120]}\n{shown}")
    print(f"{right} of {len(truths)} cards name the line and the last step; {other} name another line")
    return 0 if truths and right >= WANTED * len(truths) else 1


if __name__ == "__main__":
    sys.exit(main())
