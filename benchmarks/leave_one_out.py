"""Measure generic reading and learning on the logs of each trainer family, with the family's grammars removed.

    python -m benchmarks.leave_one_out [FOLDER] [--family NAME]... [--details] [--generic-only] [--jobs N] [--write]

FOLDER (default: the environment variable RECEIPT_LOGS) contains ``<kind>/<family>/<log>`` and, for logs counted by hand,
``truth.jsonl``: ``{"path": …, "expect": {"summary.steps.record_count": …, "summary.metrics.loss.first": …}}``.
The family's grammars are removed from the shipped ones, and the spellings that only its trainers print. A log is right if
the step count and the first and last loss equal the truth, or without one, the full program's receipt; it is wrong if one
of them is another number, and missing if values are missing. Logs without a truth that no shipped grammar reads, and
logs that a grammar of another family reads, are not counted. The exit code is 1 if a number is wrong. ``--write`` writes the
table to ``benchmarks/results/leave_one_out.json`` and ``.md``.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections import defaultdict
from contextlib import closing
from multiprocessing import Pool
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from receipt_cli import derive as engine  # noqa: E402
from receipt_cli.authoring.proposal import propose  # noqa: E402
from receipt_cli.definitions.metrics import load_registry  # noqa: E402
from receipt_cli.detect import generic as fallback  # noqa: E402
from receipt_cli.errors import ReceiptError  # noqa: E402
from receipt_cli.grammar.catalog import definition, shipped  # noqa: E402
from receipt_cli.io.source import Source  # noqa: E402
from receipt_cli.learn.vocabulary import load_vocabulary  # noqa: E402

FIELDS = ("summary.steps.record_count", "summary.metrics.loss.first", "summary.metrics.loss.last")
Figures = tuple[float | None, float | None, float | None]
"""(step records, first loss, last loss); 0 without steps, None without a loss, or where the receipt withholds a value."""
RESULTS = Path(__file__).resolve().parent / "results"
NO_LOGS = {"MANIFEST.tsv", "README.md", "truth.jsonl"}


def figures(derivation: engine.Derivation) -> Figures:
    """Return the figures of a derivation's primary phase."""
    if derivation.primary is None:
        return 0, None, None
    summary = derivation.summaries[derivation.primary]
    loss = summary.metrics.get("loss")
    values = (summary.record_count, *((loss.first, loss.last) if loss else (None, None)))
    named = {field for problem in derivation.problems[1] for field in problem.fields}
    places = ("/summary", f"/phases/{derivation.primary}/summary")
    withheld = [any(place + field.removeprefix("summary").replace(".", "/") in named for place in places) for field in FIELDS]
    found = [None if gone or v is None or not math.isfinite(v) else v for gone, v in zip(withheld, values, strict=True)]
    return found[0], found[1], found[2]


def full(path: Path) -> tuple[Figures | None, list[str]]:
    """Return the full program's figures, None if generic reading read the log, and its chosen grammars."""
    try:
        with closing(Source(str(path))) as source:
            derivation = engine.derive(source)
    except ReceiptError:
        return None, []
    ids = [chosen.grammar.id for chosen in derivation.detection.chosen]
    known = bool(ids) and "generic" not in ids
    primary = derivation.phase_grammars[derivation.primary] if derivation.primary is not None else None
    read = figures(derivation)
    count = None if derivation.problems[0]["steps_missing"] else read[0]  # a hole that is named: no truth
    return (count, *read[1:]) if known else None, [primary] if known and primary else [i for i in ids if known]


def expected(truth: dict[str, Any] | None, read: Figures | None) -> dict[str, float | None] | None:
    """Return field → required value of a reading, or None if unknown."""
    wanted: dict[str, float | None] = {}
    if truth is not None:
        wanted = {field: truth[field] for field in FIELDS if field in truth}
    if read is not None:
        for field, value in zip(FIELDS, read, strict=True):
            if value is not None or field != FIELDS[0]:
                wanted.setdefault(field, value)
    return wanted or None


def verdict(wanted: dict[str, float | None], got: Figures | None, counted: bool) -> str:
    """Return ``right``, ``missing``, ``wrong``, or ``more``: right, with a loss that the full program does not read.

    ``counted``: ``wanted`` was counted by hand, so the log has no loss if ``wanted`` has none.
    """
    have = dict(zip(FIELDS, got if got is not None else (0, None, None), strict=True))
    if all(have[field] == value for field, value in wanted.items()):
        return "right"
    known = {f: v for f, v in wanted.items() if counted or v is not None}
    if all(have[field] == value for field, value in known.items()):
        return "more"
    wrong = [f for f, v in wanted.items() if have[f] != v and have[f] is not None and not (f == FIELDS[0] and have[f] == 0)]
    return "wrong" if wrong else "missing"


def read_without(path: Path, removed: set[str]) -> Figures | str | None:
    """Return the figures of ``path`` by generic reading without the grammars ``removed``; None if the log is refused.

    Returns the id of another family's grammar if that reads steps, because generic reading does not run then.
    """
    rest = tuple(grammar for grammar in shipped() if grammar.id not in removed)
    vocabulary = vocabulary_without(removed)
    with mock.patch.object(engine, "shipped", lambda: rest), mock.patch.object(fallback, "load_generic", lambda: vocabulary):
        try:
            with closing(Source(str(path))) as source:
                derivation = engine.derive(source)
        except ReceiptError:
            return None
    ids = [chosen.grammar.id for chosen in derivation.detection.chosen]
    found = figures(derivation)
    return ids[0] if ids and "generic" not in ids and found[0] else found


def learn_without(path: Path, removed: set[str]) -> Figures | None:
    """Return the figures of a log by the grammar learned from it; None if none is learned."""
    try:
        return figures(propose(str(path), "learned", vocabulary=vocabulary_without(removed)).derivation)
    except ReceiptError:
        return None


def vocabulary_without(removed: set[str]) -> Any:
    """Return the vocabulary without the spellings of the removed trainers."""
    trainers = {grammar.trainer for grammar in shipped() if grammar.id in removed} | removed
    return load_vocabulary(definition("generic"), fallback.WHERE, load_registry(), trainers)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default=os.environ.get("RECEIPT_LOGS", ""))
    parser.add_argument("--family", action="append", help="only this family; may be given several times")
    parser.add_argument("--details", action="store_true", help="print every log")
    parser.add_argument("--generic-only", action="store_true", help="measure no learned drafts, which take most of the time")
    parser.add_argument("--jobs", type=int, default=1, help="families at once (default: 1)")
    parser.add_argument("--write", action="store_true", help="write the table to benchmarks/results")
    options = parser.parse_args()
    folder = Path(options.folder)
    if not options.folder or not folder.is_dir():
        print("no logs")
        return 0
    truths: dict[str, dict[str, Any]] = {}
    if (folder / "truth.jsonl").is_file():
        entries = (json.loads(line) for line in (folder / "truth.jsonl").read_text("utf-8").splitlines() if line.strip())
        truths = {entry["path"]: entry["expect"] for entry in entries}
    families: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(folder.glob("*/*/*")):
        if (
            path.is_file()
            and path.name not in NO_LOGS
            and not path.name.endswith((".md", ".receipt.json"))
            and (not options.family or path.parent.name in options.family)
        ):
            families[path.parent.name].append(path)
    asked = [(f, paths, folder, truths, options.details, not options.generic_only) for f, paths in sorted(families.items())]
    with Pool(options.jobs) as pool:
        counted = pool.starmap(measure, asked, chunksize=1)
    table = dict(zip(sorted(families), counted, strict=True))
    if options.write:
        publish(table)
    return show(table)


def measure(
    family: str, paths: list[Path], folder: Path, truths: dict[str, Any], details: bool, learning: bool
) -> dict[str, int]:
    """Return the counts of one family."""
    counts: dict[str, int] = defaultdict(int)
    read = {path: full(path) for path in paths}
    removed = {name for _, names in read.values() for name in names} | {family}
    for path in paths:
        wanted = expected(truths.get(path.relative_to(folder).as_posix()), read[path][0])
        counts["logs"] += 1
        if wanted is None:
            continue
        counts["known"] += 1
        results: dict[str, Figures | str | None] = {"generic": read_without(path, removed)}
        if learning:
            results["learn"] = learn_without(path, removed)
        for how, got in results.items():
            if isinstance(got, str):
                counts["generic other"] += 1
                print(f"other    {how:8} {path.relative_to(folder)}: read by {got}", flush=True)
                continue
            said = verdict(wanted, got, path.relative_to(folder).as_posix() in truths)
            counts[f"{how} {said}"] += 1
            if details or said in ("wrong", "more"):
                print(f"{said:8} {how:8} {path.relative_to(folder)}: wanted {list(wanted.values())}, got {got}", flush=True)
    return dict(counts)


COLUMNS = (
    "logs", "known", "generic right", "generic more", "generic missing", "generic wrong", "generic other",
    "learn right", "learn more", "learn missing", "learn wrong",
)  # fmt: skip


def sums(table: dict[str, dict[str, int]]) -> dict[str, int]:
    """Return the counts of all families."""
    return {column: sum(counts.get(column, 0) for counts in table.values()) for column in COLUMNS}


def shown(total: dict[str, int]) -> list[str]:
    """Return the columns of the table; those of learning only if it was measured."""
    learned = any(count for column, count in total.items() if column.startswith("learn"))
    return [column for column in COLUMNS if learned or not column.startswith("learn")]


def shares(total: dict[str, int]) -> dict[str, float]:
    """Return the shares of known logs that generic reading and learning read right."""
    asked = {"generic": total["known"] - total["generic other"], "learn": total["known"]}
    found = {how: total[f"{how} right"] + total[f"{how} more"] for how in asked}
    return {how: found[how] / max(1, logs) for how, logs in asked.items() if f"{how} wrong" in shown(total)}


def publish(table: dict[str, dict[str, int]]) -> None:
    """Write the counts by family as JSON and as a Markdown table."""
    total = sums(table)
    columns = shown(total)
    rows = {family: {c: counts.get(c, 0) for c in columns} for family, counts in sorted(table.items())}
    found = {how: round(share, 4) for how, share in shares(total).items()}
    document = {"shares": found, "total": {c: total[c] for c in columns}, "families": rows}
    (RESULTS / "leave_one_out.json").write_text(json.dumps(document, indent=2) + "\n", "utf-8")
    lines = [
        "# Logs without the grammar of their trainer",
        "",
        "Generic parsing and learned drafts, each family of logs without its own grammars: step count, first and last loss.",
        "`python -m benchmarks.leave_one_out FOLDER --write` wrote this page; its docstring describes the columns.",
        "",
        "| family | " + " | ".join(columns) + " |",
        "|---|" + "--:|" * len(columns),
    ]
    for family, counts in {**rows, "**all**": total}.items():
        lines.append(f"| {family} | " + " | ".join(str(counts[column]) for column in columns) + " |")
    (RESULTS / "leave_one_out.md").write_text("\n".join(lines) + "\n", "utf-8")


def show(table: dict[str, dict[str, int]]) -> int:
    """Print the counts by family and in total; return the exit code."""
    total = sums(table)
    print(f"{'family':20}" + "".join(f"{column:>16}" for column in shown(total)))
    for family, counts in {**table, "TOTAL": total}.items():
        print(f"{family:20}" + "".join(f"{counts.get(column, 0):>16}" for column in shown(total)))
    for how, share in shares(total).items():
        asked = total["known"] - (total["generic other"] if how == "generic" else 0)
        print(f"{how}: {share:.0%} of {asked} logs right, {total[f'{how} wrong']} wrong")
    return 1 if total["generic wrong"] + total["learn wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
