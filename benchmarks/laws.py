"""Count the problems that each law of evidence reports on real logs: a wrong one costs a value.

    python -m benchmarks.laws FOLDER... [--results FILE] [--details]

Every log below the folders is read separately with all grammars. Problems are counted by law and kind; *null* is the number
of values that they make null. ``--details`` prints each problem, to be checked against the log.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import receipt_cli
from benchmarks.survey import NOT_LOGS
from receipt_cli.errors import ReceiptError

LAWS = {
    1: ("foreign_record",),
    2: ("step_printed_twice",),
    3: ("training_unread", "loss_ambiguous"),
    4: ("no_step_recognised",),
    6: ("step_jump",),
    7: ("end_before_plan",),
    8: ("number_ambiguous", "non_finite_unread", "record_cut", "unit_ambiguous"),
    9: ("figure_unread",),
    12: ("rate_contradicted", "loss_missing", "placeholder", "clock_skip"),
}
LARGEST = 4_000_000
SHOWN = 12
"""Most logs that a row of the table lists."""
KEPT = (".json", ".md", ".yaml", ".py")
"""Endings of files that are kept beside logs."""


class Named(NamedTuple):
    """One problem of a log."""

    log: str
    kind: str
    line: int | None
    detail: str
    values: tuple[str, ...]
    fields: int


def logs_of(folder: Path) -> list[Path]:
    """Return the logs below a folder, without those that are too large to read repeatedly."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name not in NOT_LOGS)
    return [path for path in files if not path.name.endswith(KEPT) and path.stat().st_size <= LARGEST]


def named_of(path: Path, name: str) -> Iterator[Named]:
    """Yield the laws' problems of each run in a log; none for a log without a receipt."""
    try:
        runs = receipt_cli.read_all(path, unrecognised=True)
    except (ReceiptError, UnicodeError):
        return
    kinds = {kind for those in LAWS.values() for kind in those}
    for run in runs:
        for problem in run.receipt.to_dict()["derivation"]["problems"]["first"]:
            if problem["kind"] in kinds:
                yield _named(name, problem)


def _named(name: str, problem: dict[str, Any]) -> Named:
    kind, line, detail, values, fields = (problem[key] for key in ("kind", "line_number", "detail", "values", "fields"))
    return Named(name, kind, line, detail, tuple(values), len(fields))


def table(found: list[Named], count: int) -> str:
    """Return a row for each law and kind: number of its logs of ``count``, number of null values, and log names."""
    lines = ["| law | kind | logs | of all | problems | null | on |", "|--:|---|--:|--:|--:|--:|---|"]
    for law, kinds in LAWS.items():
        for kind in kinds:
            those = [one for one in found if one.kind == kind]
            logs = sorted({one.log for one in those})
            on = ", ".join(logs[:SHOWN]) + (f" and {len(logs) - SHOWN} more" if len(logs) > SHOWN else "")
            share = f"{100 * len(logs) / max(count, 1):.1f} %"
            null = sum(one.fields for one in those)
            lines.append(f"| {law} | `{kind}` | {len(logs)} | {share} | {len(those)} | {null} | {on} |")
    return "\n".join(lines)


def main(arguments: list[str]) -> int:
    """Read the logs and print a table for each folder."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.laws", description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--results", type=Path, help="put the tables into this file, in the place of those between its marks")
    parser.add_argument("--details", action="store_true", help="print each problem")
    options = parser.parse_args(arguments)
    parts = []
    for folder in options.folders:
        logs, found = logs_of(folder), list[Named]()
        for path in logs:
            found += named_of(path, path.relative_to(folder).as_posix())
        for one in found if options.details else ():
            values = " ".join(one.values)
            print(f"{one.kind}: {one.log}:{one.line}: {one.detail} [{values}] {one.fields} null", file=sys.stderr)
        fired = len({one.log for one in found})
        head = f"## {'/'.join(folder.parts[-2:])}: {len(logs)} logs, {fired} with something named"
        parts.append(f"{head}\n\n{table(found, len(logs))}\n")
    text = "\n".join(parts)
    print(text)
    if options.results is not None:
        put(options.results, text)
    return 0


BEGIN, END = "<!-- tables: python -m benchmarks.laws -->", "<!-- end of the tables -->"


def put(path: Path, text: str) -> None:
    """Write the tables between the marks in a file; the text around the marks stays."""
    old = path.read_text("utf-8") if path.exists() else f"# How often each law fires\n\n{BEGIN}\n{END}\n"
    before, _, rest = old.partition(BEGIN)
    path.write_text(f"{before}{BEGIN}\n\n{text}\n{END}{rest.partition(END)[2]}", "utf-8")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
