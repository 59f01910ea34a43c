"""``receipt store``: add receipts to a store, list and query them."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from receipt_cli.cli.output import note, print_line, progress, style, tell, write_answer, write_json, write_lines, write_stdout
from receipt_cli.cli.parameters import Argument, Documents, Json, Option, Output, StoreFolder
from receipt_cli.documents.canonical import canonical_line
from receipt_cli.documents.validate import validate_bytes
from receipt_cli.errors import ExitCode, OutputError, ReceiptError, UsageError
from receipt_cli.io.duckdb import Answer, Database
from receipt_cli.io.file_kinds import read_file
from receipt_cli.render.differences import render_quarantine
from receipt_cli.render.store import render_answer, render_documents, render_meanings, render_panel, render_runs, tally_documents
from receipt_cli.store.files import Store
from receipt_cli.store.index import Row, current_rows, open_store
from receipt_cli.store.listing import list_documents, list_runs
from receipt_cli.store.query import csv_text, names, records, view_columns
from receipt_cli.store.query import export as write_views
from receipt_cli.store.stats import FIELDS, QUESTIONS, Period, Question, ask_panel, contradictions
from receipt_cli.store.views import VIEWS

LISTED = 20
SHOWN = 3
"""Most skipped receipt files that are named one by one."""


def add(store: StoreFolder, files: Documents, json_output: Json = False) -> None:
    """Add documents to a store: a receipt becomes the current one of its log.

    Each is checked first. Exits 1 when one is invalid, 2 when a store does not accept it, 3 when it cannot be read, 6 when
    the store cannot be written; the others are added all the same.

    Example: receipt store add runs/ *.receipt.json
    """
    add_each(store, ((str(file), partial(_valid, file)) for file in files), json_output)


def add_each(store: Path, sources: Iterable[tuple[str, Callable[[], Mapping[str, Any]]]], json_output: bool) -> None:
    """Add the document of each source and print its path in the store; exit with the worst code of an error."""
    kept, worst = Store(store), int(ExitCode.OK)
    for source, make in sources:
        try:
            outcome = kept.add(make())
        except OutputError:
            raise
        except ReceiptError as error:
            tell(error)
            worst = max(worst, error.exit_code)
            continue
        line = {"file": source, "outcome": outcome.change, "path": outcome.path}
        write_stdout(canonical_line(line) if json_output else f"{outcome.change:9}  {source}  {outcome.path}\n")
    if worst:
        sys.exit(worst)


def ls(
    store: StoreFolder,
    quarantine: Annotated[bool, Option("--quarantine", help="List the logs that have no receipt, and why.")] = False,
    kind: Annotated[
        Literal["receipt", "ablation", "evaluation", "gpu_profile", "golden"],
        Option("--kind", help="Kind of the documents to list; the runs are receipts."),
    ] = "receipt",
    limit: Annotated[int | None, Option(least=0, help="Most runs to list, 0 for all; 20 by default, with --json all.")] = None,
    json_output: Json = False,
) -> None:
    """List the runs of a store, the latest first and those without a time last; --json prints a line of JSON for each.

    Below them stands how many other documents the store has; --kind lists those of a kind, each with its run.

    Example: receipt store ls runs/ --kind evaluation
    """
    kept = Store(store)
    kept.check_exists()
    if quarantine:
        left_out = sorted(kept.quarantined(), key=lambda record: record.path)
        if json_output:
            return write_lines(map(asdict, left_out))
        shown = [(r.path, f"{r.error}: {r.why}" if r.why else r.error) for r in left_out]
        return write_stdout(render_quarantine(shown, len(shown), style()))
    with progress(str(store)) as bar:
        rows = list_runs(store, bar) if kind == "receipt" else list_documents(store, kind)
    _tell_damaged(rows)
    if json_output:
        return write_lines(rows[:limit] if limit else rows)
    most = LISTED if limit is None else limit
    if kind != "receipt":
        return write_stdout(render_documents(rows, kind, style(), most))
    others = list_documents(store, linked=False)
    _tell_damaged(others)
    write_stdout(render_runs(rows, style(), most))
    if counted := tally_documents(others):
        write_stdout(f"{counted}: receipt store ls {store} --kind {others[0]['kind']}\n")


def _tell_damaged(rows: Iterable[Mapping[str, Any]]) -> None:
    for row in rows:
        if row["refusal"] is not None:
            print_line(f"receipt: note: {row['path']} is damaged: {row['refusal']}: passed over")


def query(
    store: StoreFolder,
    sql: Annotated[str | None, Argument("SQL", "One SELECT, - to read it from stdin, or a view to list its columns.")] = None,
    json_output: Json = False,
    csv_output: Annotated[bool, Option("--csv", help="Print CSV.")] = False,
) -> None:
    """Run a read-only SQL query over a store; without SQL, list the views, with --json and --csv their columns too.

    The view runs has a row for each run. Exits 2 if the query is not a single SELECT or fails.

    Example: receipt store query runs/ 'SELECT name, loss_last FROM runs'
    """
    if json_output and csv_output:
        raise UsageError("--json and --csv exclude each other")
    if sql is None and not json_output and not csv_output:
        hint = f"columns of a view: receipt store query {store} runs"
        write_stdout(render_meanings({view.name: view.meaning for view in VIEWS}, style(), hint))
        return
    found = view_columns(sql) or answer(store, sys.stdin.read() if sql is None or sql == "-" else sql)
    if csv_output:
        write_stdout(csv_text(found).encode("utf-8"))
    else:
        write_answer(records(found), json_output, lambda: render_answer(names(found), records(found), style()))


def stats(
    store: StoreFolder,
    question: Annotated[
        Question | None, Argument("QUESTION", "One of tokens, goodput, memory and checks; all four by default.")
    ] = None,
    by: Annotated[Period, Option(help="Period of what is shown over time (UTC).")] = "day",
    last: Annotated[int, Option(least=1, help="Number of newest runs whose checks are counted.")] = 100,
    json_output: Json = False,
) -> None:
    """Show how the runs of a store went: throughput, goodput and memory over time, and the share that passes each check.

    A run's time is its start, else its end, else when its header was collected.

    Example: receipt store stats runs/ tokens --by week
    """
    rows = read_rows(store, FIELDS)
    asked = QUESTIONS if question is None else (question,)
    note(contradictions(rows))
    panels = [ask_panel(rows, each, by=by, last=last) for each in asked]
    found = panels if question is None else panels[0]
    write_answer(found, json_output, lambda: "\n".join(render_panel(panel, style()) for panel in panels))


def export(
    store: StoreFolder,
    output: Annotated[Path, Output("A folder for all views, or FILE.parquet for one.")],
    view: Annotated[str | None, Option(metavar="NAME", help="Write this view alone; a file contains runs by default.")] = None,
    json_output: Json = False,
) -> None:
    """Write the views of a store as Parquet files, for any program that reads tables.

    Example: receipt store export runs/ -o tables/
    """
    written = write_views(open_database(store), output, view)
    if json_output:
        write_json([{"path": str(path), "row_count": count} for path, count in written])
    else:
        note(f"wrote {path}: {count} rows" for path, count in written)


def read_rows(root: Path, fields: Sequence[str]) -> list[Row]:
    """Return the rows of the runs of a store (``index.current_rows``); note the receipts that are passed over."""
    with progress(str(root)) as bar:
        rows = current_rows(root, fields, bar)
    _note_refused(sorted((row["path"], row["refusal"]) for row in rows if row["refusal"] is not None))
    return [row for row in rows if row["refusal"] is None]


def open_database(root: Path) -> Database:
    """Return the database of a store; note the receipts that are passed over."""
    with progress(str(root)) as bar:
        database = open_store(root, bar)
    _note_refused(database.run("SELECT path, refusal FROM passed_over ORDER BY path"))
    return database


def _note_refused(refused: Sequence[tuple[Any, ...]]) -> None:
    note(f"passed over {path}: {why}" for path, why in refused[:SHOWN])
    if len(refused) > SHOWN:
        note([f"{len(refused)} receipt files are passed over in all: SELECT * FROM passed_over"])


def answer(root: Path, question: str) -> Answer:
    """Return the answer of a store to a query."""
    database = open_database(root)
    database.seal()
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours:  # Ctrl-C ends the process at once: there is nothing to tidy up, and DuckDB looks for it only now and then
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        return database.ask(question)
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


class InvalidDocument(ReceiptError):
    """A document breaks its contract."""

    exit_code = ExitCode.NO


def _valid(file: Path) -> dict[str, Any]:
    data = read_file(file)
    wrong = next((finding for finding in validate_bytes(data, str(file)) if finding.severity == "error"), None)
    if wrong is not None:
        why = f"{wrong.pointer}: {wrong.reason}"
        raise InvalidDocument("is not a valid document", where=str(file), why=why, try_=f"receipt schema check {file}")
    document: dict[str, Any] = json.loads(data)
    return document
