"""What the questions to a store print, once their command lines are read."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from receipt_cli.cli.output import ColorChoice, note, progress, style, write_json, write_stdout
from receipt_cli.errors import UsageError

if TYPE_CHECKING:
    from receipt_cli.io.duckdb import Answer, Database
    from receipt_cli.store.stats import Period, Question

TOLD = 3
"""Receipt files passed over that are told one by one."""


def opened(root: Path) -> Database:
    """Return the database of a store; tell of receipts that do not count."""
    from receipt_cli.store.index import open_store

    with progress(str(root)) as bar:
        database = open_store(root, bar)
    refused = database.run("SELECT path, refusal FROM passed_over ORDER BY path")
    note(f"passed over {path}: {why}" for path, why in refused[:TOLD])
    if len(refused) > TOLD:
        note([f"{len(refused)} receipt files are passed over in all: SELECT * FROM passed_over"])
    return database


@contextmanager
def _interruptible() -> Iterator[None]:
    """Let Ctrl-C end the process at once: there is nothing to tidy up, and DuckDB looks for it only now and then."""
    ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def run_query(root: Path, question: str | None, *, json_output: bool, csv_output: bool, color: ColorChoice) -> None:
    """Print the answer to a question of SQL, or without one the columns of the views. Raises ``ReceiptError``."""
    from receipt_cli.render.store import render_answer
    from receipt_cli.store.query import csv_text, names, records, view_columns

    if json_output and csv_output:
        raise UsageError("--json and --csv are two forms of one answer", try_="name one of them")
    answer = view_columns() if question is None else _answer(root, sys.stdin.read() if question == "-" else question)
    if csv_output:
        write_stdout(csv_text(answer).encode("utf-8"))
    elif json_output:
        write_json(records(answer))
    else:
        write_stdout(render_answer(names(answer), records(answer), style(color)))


def _answer(root: Path, question: str) -> Answer:
    database = opened(root)
    database.seal()
    with _interruptible():
        return database.ask(question)


def run_stats(root: Path, question: Question | None, *, by: Period, last: int, json_output: bool, color: ColorChoice) -> None:
    """Print the answer to one question of the panel, or to all. Raises ``ReceiptError``."""
    from receipt_cli.render.store import render_panel
    from receipt_cli.store.stats import QUESTIONS, ask_panel, panel_document

    database = opened(root)
    asked = QUESTIONS if question is None else (question,)
    panels = [panel_document(ask_panel(database, each, by=by, last=last), by) for each in asked]
    if json_output:
        write_json(panels if question is None else panels[0])
    else:
        write_stdout("\n".join(render_panel(panel, style(color)) for panel in panels))


def run_export(root: Path, output: Path, view: str | None, *, json_output: bool) -> None:
    """Write views as Parquet and say what was written. Raises ``ReceiptError``."""
    from receipt_cli.store.query import export

    written = export(opened(root), output, view)
    if json_output:
        write_json([{"path": str(path), "row_count": count} for path, count in written])
    else:
        note(f"wrote {path}: {count} rows" for path, count in written)
