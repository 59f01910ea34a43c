"""Check round trips: ``receipt import`` must read the same values from the output of ``receipt export``.

    python -m benchmarks.round_trips [FOLDER...] [--jobs N] [--write] [--details]

Every log below the folders (by default the fixtures) is derived, exported with its curves to TensorBoard, W&B and MLflow (if
installed) and with its statistics to CSV, and imported again. First, last, min, max, mean and median of each printed and
other metric of the primary phase are compared. A value differs if it is another number or exists on one side only. The last
step is compared if there are curves: trackers have no place for a step without metrics, or with metrics of an evaluation
only. Logs without a receipt or a metric are left out. Exit code 1 if a value differs. ``--write`` keeps the table in
``benchmarks/results/round_trips.md``.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from receipt_cli.errors import ReceiptError
from receipt_cli.export.formats import FORMATS, Name, export
from receipt_cli.export.run import STATISTICS, gather
from receipt_cli.importers.importing import import_document
from receipt_cli.io.discovery import find_logs
from receipt_cli.receipts.production import read_given

ROOT = Path(__file__).resolve().parents[1]
FIXTURES = ROOT / "fixtures" / "logs"
RESULTS = ROOT / "benchmarks" / "results" / "round_trips.md"
TRACKERS: tuple[Name, ...] = ("tensorboard", "wandb", "mlflow", "csv")
BLOCKS = ("metrics", "other_metrics")
_SHOWN = 5


@dataclass
class Trip:
    """One log exported to one format and imported again: the number of values, and those that differ."""

    log: str
    form: str
    figures: int = 0
    differ: list[str] = field(default_factory=list)
    steps: str = ""
    """The last step before and after, if it differs."""


def trips(log: str, forms: Sequence[Name], empty: str | None) -> list[Trip]:
    """Return the round trips of a log; [] without a receipt or a metric. ``empty`` is a new MLflow database."""
    try:
        document, product = read_given(log, environ={}, progress=lambda _: nullcontext(), masked=False, workers=1)
    except ReceiptError:
        return []
    before = figures(document)
    if not before:
        return []
    found = []
    for form in forms:
        trip = Trip(log, form, len(before))
        with tempfile.TemporaryDirectory(prefix="receipt-trip-") as work:
            target = Path(work, {"mlflow": "runs.db", "csv": "run.csv"}.get(form, "run"))
            curves = product if form != "csv" else None
            run = gather(document, curves, most=FORMATS[form].most)
            if form == "mlflow" and empty is not None:
                shutil.copy(empty, target)  # its migrations take seconds
            try:
                export(run, form, target)
                after = import_document(str(target)).document
            except ReceiptError as error:
                trip.differ.append(f"{error.message}: {error.why}")
            else:
                trip.differ += differences(before, figures(after))
                last, again = (each["summary"]["steps"]["last"] for each in (document, after))
                trip.steps = f"{last} → {again}" if run.curves and last != again else ""
        found.append(trip)
    return found


def figures(document: dict[str, Any]) -> dict[str, float | None]:
    """Return (block, metric, statistic) → value for the known values of the primary phase."""
    summary = document["summary"] or {}
    entries = ((block, name, entry) for block in BLOCKS for name, entry in (summary.get(block) or {}).items())
    named = {f"{block}/{name} {key}": entry[key] for block, name, entry in entries for key in STATISTICS}
    return {name: value for name, value in named.items() if value is not None}


def differences(before: dict[str, float | None], after: dict[str, float | None]) -> list[str]:
    """Return the values that differ."""
    names = sorted(before.keys() | after.keys())
    return [f"{name}: {before.get(name)} → {after.get(name)}" for name in names if before.get(name) != after.get(name)]


def new_database(path: Path) -> str:
    """Create MLflow's database at ``path`` and return the path."""
    from mlflow import MlflowClient

    MlflowClient(tracking_uri=f"sqlite:///{path}").search_experiments()
    return str(path)


def table(found: Sequence[Trip], logs: int, forms: Sequence[str]) -> str:
    """Return the results as Markdown."""
    lines = [
        "# Round trips", "",
        "First, last, min, max, mean and median of each metric of the primary phase, exported and imported again.",
        f"`python -m benchmarks.round_trips FOLDER...` prints this table; its docstring describes the columns. {logs} logs.", "",
        "| format | logs with metrics | figures | figures that differ | logs with such | logs with another last step |",
        "|---|--:|--:|--:|--:|--:|",
    ]  # fmt: skip
    for form in forms:
        mine = [trip for trip in found if trip.form == form]
        differ = sum(bool(trip.differ) for trip in mine)
        total, wrong = sum(trip.figures for trip in mine), sum(len(trip.differ) for trip in mine)
        lines.append(f"| {form} | {len(mine)} | {total:,} | {wrong} | {differ} | {sum(bool(trip.steps) for trip in mine)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, default=[FIXTURES])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--form", action="append", choices=TRACKERS)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--details", action="store_true", help="every difference as a line of JSON")
    given = parser.parse_args()
    forms = [form for form in given.form or TRACKERS if form != "mlflow" or importlib.util.find_spec("mlflow")]
    logs = find_logs([str(folder) for folder in given.folders])[0]
    found: list[Trip] = []
    with (
        tempfile.TemporaryDirectory(prefix="receipt-trips-") as work,
        get_context("spawn").Pool(given.jobs, maxtasksperchild=20) as pool,  # MLflow keeps every database
    ):
        empty = pool.apply(new_database, (Path(work, "empty.db"),)) if "mlflow" in forms else None
        for trip in chain.from_iterable(pool.imap(partial(trips, forms=forms, empty=empty), logs)):
            found.append(trip)
            if trip.differ or trip.steps:
                shown = trip.differ if given.details else trip.differ[:_SHOWN]
                line = {"log": trip.log, "format": trip.form, "differ": shown, "last_step": trip.steps}
                print(json.dumps(line, ensure_ascii=False), flush=True)
    text = table(found, len(logs), forms)
    print(text)
    if given.write:
        RESULTS.write_text(text, encoding="utf-8")
    sys.exit(any(trip.differ for trip in found))


if __name__ == "__main__":
    main()
