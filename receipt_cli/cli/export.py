"""``receipt export``: a receipt, or the records of a log, in the format of another system."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from receipt_cli.cli.exporting import run_export
from receipt_cli.export.names import Name


def export(
    file: Annotated[str, typer.Argument(help="A receipt, or a log, which has curves, too; - is stdin.", metavar="RECEIPT|LOG")],
    to: Annotated[Name, typer.Option("--to", help="The format.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File to write; a folder for tensorboard and wandb, a SQLite database for mlflow."),
    ] = None,
    max_steps: Annotated[
        int | None, typer.Option(min=2, help="Steps of a curve; of more, that many evenly spread ones are exported.")
    ] = None,
    at: Annotated[
        str | None, typer.Option(metavar="TIME", help="Time of the run (RFC 3339) for formats that want one; else the receipt's.")
    ] = None,
) -> None:
    """Write a run in the format of another system, under registry names and in base units.

    openmetrics, otlp-json, csv, in-toto and bmf go to stdout without -o. mlflow, wandb, tensorboard, csv and parquet take the
    curves of a log; of a receipt, which has none, its figures. Nothing is sent anywhere.
    """
    run_export(file, to, output, max_steps=max_steps, at=at)
