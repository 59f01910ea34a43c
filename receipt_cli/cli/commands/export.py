"""``receipt export``: a receipt, or the records of a log, in the format of another system."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, get_args

from receipt_cli.cli.output import note, progress, write_stdout
from receipt_cli.cli.parameters import Argument, Option
from receipt_cli.cli.runs import InStore, receipt_file
from receipt_cli.errors import UsageError
from receipt_cli.export.names import Name


def export(
    file: Annotated[
        str, Argument("RECEIPT|LOG|RUN", "A receipt; a log, which has curves, too (- is stdin); or a run of the store.")
    ],
    to: Annotated[Name, Option(metavar="FORMAT", help=f"The format: {', '.join(get_args(Name))}.")],
    output: Annotated[
        Path | None,
        Option("-o", "--output", help="File to write; a folder for tensorboard and wandb, a SQLite database for mlflow."),
    ] = None,
    max_steps: Annotated[int | None, Option(least=2, help="Maximum points per curve; longer curves are sampled evenly.")] = None,
    at: Annotated[
        str | None, Option(metavar="TIME", help="Time of the run (RFC 3339) for formats that need one; else the receipt's.")
    ] = None,
    store: InStore = None,
) -> None:
    """Write a run in the format of another system, under registry names and in base units.

    openmetrics, otlp-json, csv, in-toto and bmf go to stdout without -o. mlflow, wandb, tensorboard, csv and parquet take the
    curves of a log; of a receipt, which has none, its figures. Nothing is sent anywhere.

    Example: receipt export run.receipt.json --to csv
    """
    from receipt_cli.export.formats import FORMATS, export
    from receipt_cli.export.run import gather
    from receipt_cli.receipts.open import read_given
    from receipt_cli.receipts.production import refusal

    most = FORMATS[to].most
    if max_steps is not None and not most:
        raise UsageError(f"--max-steps does not apply to {to}", why="it takes figures, or records as they are")
    file = receipt_file(file, store)
    document, product = read_given(file, environ=dict(os.environ), progress=progress, masked=False)
    refused = None if product is None else refusal(product.derivation, file)
    if refused is not None:
        raise refused
    run = gather(document, product if most else None, most=max_steps or most, at=at)
    notes = [*(product.notes if product else ()), *run.notes]
    if most and not run.curves:
        why = "a receipt has figures, no curves: export its log for these" if product is None else "no metric has step numbers"
        notes.append(f"{why}; figures alone are exported")
    note(dict.fromkeys(notes))
    data, opened = export(run, product, to, output)
    if data is not None:
        write_stdout(data)
    if opened:
        note([opened])
