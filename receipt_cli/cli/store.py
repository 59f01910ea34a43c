"""``receipt store``: what is in a store of receipts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from receipt_cli.cli.asking import run_export, run_query, run_stats
from receipt_cli.cli.options import Color, Json
from receipt_cli.cli.storing import run_add, run_ls

app = typer.Typer(help="Keep receipts in a store, and ask it.", no_args_is_help=True, rich_markup_mode=None)

StoreFolder = Annotated[Path, typer.Argument(help="Folder of the receipts.", metavar="STORE")]


@app.command("add")
def add(
    store: StoreFolder,
    files: Annotated[list[Path], typer.Argument(help="Receipts and other documents.", metavar="FILE...")],
    json_output: Json = False,
) -> None:
    """Add documents to a store: a receipt becomes the current one of its log.

    Each is checked first. Exits 1 when one is invalid, 2 when a store does not take it, 3 when it cannot be read, 6 when
    the store cannot be written; the others are added all the same.
    """
    run_add(store, files, json_output)


@app.command("ls")
def ls(
    store: StoreFolder,
    quarantine: Annotated[bool, typer.Option("--quarantine", help="List the logs that gave no receipt, and why.")] = False,
    json_output: Json = False,
    color: Color = "auto",
) -> None:
    """List the current receipts of a store, ordered by the digest of their log; --json prints a line of JSON for each."""
    run_ls(store, quarantine, json_output, color)


@app.command("query")
def query(
    store: StoreFolder,
    sql: Annotated[str | None, typer.Argument(help="One SELECT, or - to read it from stdin.", metavar="SQL")] = None,
    json_output: Json = False,
    csv_output: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    color: Color = "auto",
) -> None:
    """Ask the receipts of a store in SQL; without SQL, show the views and their columns.

    The view runs has a row a run; phases, metrics, checks, failures and history stand beside it. No file is seen or
    written by a question. Exits 2 for what is no single SELECT, or cannot be answered.
    """
    run_query(store, sql, json_output=json_output, csv_output=csv_output, color=color)


@app.command("stats")
def stats(
    store: StoreFolder,
    question: Annotated[
        Literal["tokens", "goodput", "memory", "checks"] | None,
        typer.Argument(help="One question; all four by default.", metavar="[tokens|goodput|memory|checks]"),
    ] = None,
    by: Annotated[Literal["run", "day", "week", "month"], typer.Option(help="Period of what is told over time (UTC).")] = "day",
    last: Annotated[int, typer.Option(min=1, help="How many of the newest runs the checks are of.")] = 100,
    json_output: Json = False,
    color: Color = "auto",
) -> None:
    """Show how the runs of a store went: throughput, goodput and memory over time, and the share that passes each check.

    A run is of the time when it started, else when it finished, else when its header was collected.
    """
    run_stats(store, question, by=by, last=last, json_output=json_output, color=color)


@app.command("export")
def export(
    store: StoreFolder,
    output: Annotated[Path, typer.Option("--output", "-o", help="A folder for all views, or FILE.parquet for one.")],
    view: Annotated[str | None, typer.Option(help="Write this view alone; a file is of runs by default.")] = None,
    json_output: Json = False,
) -> None:
    """Write the views of a store as Parquet files, for any program that reads tables."""
    run_export(store, output, view, json_output=json_output)
