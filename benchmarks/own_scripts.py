"""Generate 500 logs of people's own training scripts with their truths, read them, and count right, missing and wrong.

    python -m benchmarks.own_scripts [--count 500] [--seed 20261130] [--jobs N] [--form NAME]... [--details]
                                     [--keep FOLDER [--generate]] [--write]

Each form of a record is a production (``benchmarks/generators/own_scripts.py``); each has an equal share of the logs. Twelve
forms have a second production, their trait: tensors, rates, a hard wrap, folds, another launch, and so on. Words, order,
separators, marks, heads, loggers, units, evaluations and numbers are drawn from the seed.

Judged are ``checks.has_steps`` and, of the summary, the first and last step, the number of records, and the first, last and least
training loss. A log is right if every judged field is exact, missing if some are null and none differs, else wrong. A log without
training is right if the receipt claims no step and no loss. What a careful reader could judge either way is not judged:

- The first and last step, if a record prints epoch and batch without the number of batches, and of bars, where an epoch, a
  batch and a drawing all count. With the number of batches, steps go on from epoch to epoch.
- Bars with several drawings of an epoch: one record per epoch or one per drawing, both with their own losses.
- A total that is called a score, ``nll`` or ``logprob``: its value or null. Values without names: the loss is not judged.
- A resumed run: all its records, each step once, or those of its last launch alone.
- ``value (average)``: the loss is the value. Of several folds and launches, the last one is the run.
- Evaluations beside records, learning rates, speeds, times and planned steps are not judged; they must not become the loss.

``--keep`` writes each log, ``NNN.log``, and ``truth.jsonl``. ``--write`` writes the tables to
``benchmarks/results/own-scripts.md``. The exit code is 1 if a log is wrong.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from multiprocessing import Pool
from pathlib import Path
from typing import Any, NamedTuple

import receipt_cli
from benchmarks.generators.own_scripts import FIELDS, FORMS, TRAITS, Reading, Script, dealt, script
from receipt_cli.errors import ReceiptError

SEED, COUNT = 20261130, 500
RESULTS = Path(__file__).resolve().parent / "results" / "own-scripts.md"
VERDICTS = ("right", "missing", "wrong")


class Result(NamedTuple):
    """One log: its number and productions, the verdict, and what was expected and read."""

    number: int
    form: str
    trait: str
    verdict: str
    wanted: Reading
    got: Reading


def read(path: Path) -> Reading:
    """Return the judged fields of a log's receipt; none of them if it is refused."""
    try:
        document: dict[str, Any] = receipt_cli.read(path, unrecognised=True).product.document
    except ReceiptError:
        return dict.fromkeys(FIELDS)
    summary = document["summary"] or {}
    steps, loss = summary.get("steps") or {}, summary.get("metrics", {}).get("loss") or {}
    values = (
        steps.get("first"),
        steps.get("last"),
        steps.get("record_count"),
        loss.get("first"),
        loss.get("last"),
        loss.get("min"),
    )
    return dict(zip(FIELDS, (document["checks"]["has_steps"], *values), strict=True))


def agrees(field: str, wanted: float | bool | None, got: float | bool | None) -> str:
    """Return the verdict on one field."""
    if wanted is None:
        return "right" if not got and (got is None or field in ("has_steps", "record_count")) else "wrong"
    if got is None:
        return "missing"
    return "right" if math.isclose(wanted, got, rel_tol=1e-12) else "wrong"


def verdict(readings: Iterable[Reading], got: Reading) -> tuple[str, Reading]:
    """Return the best verdict over the readings of a log, and its reading."""
    judged = []
    for reading in readings:
        found = {agrees(field, value, got[field]) for field, value in reading.items()}
        judged.append((max(VERDICTS.index(one) for one in found), reading))
    best, reading = min(judged, key=lambda pair: pair[0])
    return VERDICTS[best], reading


def measure(seed: int, number: int, form: str, trait: str, folder: str) -> Result:
    """Generate one log, write it to ``folder`` and read it."""
    made = script(seed, number, form, trait)
    path = Path(folder) / f"{number:03d}.log"
    path.write_text(made.text, "utf-8", newline="")
    got = read(path)
    said, wanted = verdict(made.readings, got)
    return Result(number, form, trait, said, wanted, got)


def truth(number: int, made: Script) -> dict[str, Any]:
    """Return the line of ``truth.jsonl`` of a log."""
    return {
        "path": f"{number:03d}.log",
        "form": made.form,
        "trait": made.trait,
        "counter": made.counter,
        "readings": made.readings,
    }


def table(title: str, names: Iterable[str], results: list[Result], of: str) -> list[str]:
    """Return the counts of each production in Markdown."""
    rows = [f"| {title} | logs | right | missing | wrong | right, % |", "|---|--:|--:|--:|--:|--:|"]
    for name in [*names, "all"]:
        counts: dict[str, int] = defaultdict(int)
        for result in results:
            counts[result.verdict] += name in ("all", getattr(result, of))
        total = sum(counts.values())
        if total:
            shown = " | ".join(str(counts[one]) for one in VERDICTS)
            rows.append(f"| {name} | {total} | {shown} | {100 * counts['right'] / total:.0f} |")
    return rows


def main() -> int:
    """Print the tables; return 1 if a log is read wrongly."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=COUNT, help=f"logs (default: {COUNT})")
    parser.add_argument("--seed", type=int, default=SEED, help=f"default: {SEED}")
    parser.add_argument("--jobs", type=int, default=1, help="logs at once (default: 1)")
    parser.add_argument("--form", action="append", help="only this form or trait; may be given several times")
    parser.add_argument("--details", action="store_true", help="print each log that is not right")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="write the logs and truth.jsonl here")
    parser.add_argument("--generate", action="store_true", help="with --keep: write the logs, read nothing")
    parser.add_argument("--write", action="store_true", help="write the tables to benchmarks/results")
    options = parser.parse_args()
    asked = [(number, *names) for number, names in enumerate(dealt(options.seed, options.count))]
    asked = [row for row in asked if not options.form or set(row[1:]) & set(options.form)]
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.keep or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        if options.keep:
            made = [(row[0], script(options.seed, *row)) for row in asked]
            lines = [json.dumps(truth(*pair), ensure_ascii=False) + "\n" for pair in made]
            (folder / "truth.jsonl").write_text("".join(lines), "utf-8")
            if options.generate:
                for number, one in made:
                    (folder / f"{number:03d}.log").write_text(one.text, "utf-8", newline="")
                return 0
        work = [(options.seed, *row, str(folder)) for row in asked]
        with Pool(options.jobs) as pool:
            results = pool.starmap(measure, work, chunksize=1)
    for result in results if options.details else ():
        if result.verdict != "right":
            differing = {
                f: (value, result.got[f]) for f, value in result.wanted.items() if agrees(f, value, result.got[f]) != "right"
            }
            print(f"{result.verdict:8} {result.number:03d} {result.form}, {result.trait or 'plain'}: {differing}")
    parts = [table("form", FORMS, results, "form"), table("trait", [*TRAITS, ""], results, "trait")[:-1]]
    text = "\n\n".join("\n".join(part) for part in parts)
    print(text)
    if options.write:
        asked_by = f"`python -m benchmarks.own_scripts --count {options.count} --seed {options.seed}`"
        RESULTS.write_text(f"# Own scripts\n\n{asked_by}: logs by form and trait.\n\n{text}\n", "utf-8")
    return 1 if any(result.verdict == "wrong" for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
