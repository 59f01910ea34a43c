"""``receipt export``: a receipt, or the records of a log, in the format of another system."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, get_args

from receipt_cli.cli.output import note, progress, write_stdout
from receipt_cli.cli.parameters import Argument, Option, Output
from receipt_cli.cli.runs import InStore, receipt_file
from receipt_cli.errors import UsageError
from receipt_cli.export.formats import FORMATS, Name
from receipt_cli.export.formats import export as write_run
from receipt_cli.export.run import gather
from receipt_cli.io.atomic import make_folder
from receipt_cli.io.discovery import is_store
from receipt_cli.receipts.production import read_given, refusal
from receipt_cli.store.documents import read_receipts
from receipt_cli.store.files import Store


def export(
    file: Annotated[
        str,
        Argument("RECEIPT|LOG|RUN|STORE", "A receipt; a log, which has curves, too (- is stdin); a run of the store; a store."),
    ],
    to: Annotated[Name, Option(metavar="FORMAT", help=f"The format: {', '.join(get_args(Name))}.")],
    output: Annotated[
        Path | None,
        Output(
            "File to write; a folder for tensorboard, wandb and the runs of a store, a SQLite database for mlflow.", dash="stdout"
        ),
    ] = None,
    max_steps: Annotated[int | None, Option(least=2, help="Maximum points per curve; longer curves are sampled evenly.")] = None,
    at: Annotated[
        str | None, Option(metavar="TIME", help="Time of the run (RFC 3339) for formats that need one; else the receipt's.")
    ] = None,
    store: InStore = None,
) -> None:
    """Write a run in the format of another system, under registry names and in base units.

    openmetrics, otlp-json, csv, in-toto and bmf go to stdout without -o. mlflow, wandb, tensorboard, csv and parquet take the
    curves of a log; of a receipt, which has none, its figures. Of a store, every run is written: into one database or W&B
    folder, or to a file or folder each. Nothing is sent anywhere.

    Example: receipt export run.receipt.json --to csv
    """
    most = FORMATS[to].most
    if max_steps is not None and not most:
        raise UsageError(f"--max-steps does not apply to {to}", why="it takes figures or unchanged records")
    if is_store(file):
        _export_store(Path(file), to, output, max_steps, at)
        return
    file = receipt_file(file, store)
    document, product = read_given(file, environ=dict(os.environ), progress=progress, masked=False)
    refused = None if product is None else refusal(product.derivation, file)
    if refused is not None:
        raise refused
    run = gather(document, product, most=max_steps or most, at=at)
    notes = [*(product.notes if product else ()), *run.notes]
    if most and not run.curves:
        why = "a receipt has figures, no curves: export its log for these" if product is None else "no metric has step numbers"
        notes.append(f"{why}; figures alone are exported")
    note(dict.fromkeys(notes))
    data, opened = write_run(run, to, output)
    if data is not None:
        write_stdout(data)
    if opened:
        note([opened])


_SUFFIXES: dict[Name, str] = {
    "openmetrics": ".prom", "otlp-json": ".json", "parquet": ".parquet", "csv": ".csv", "in-toto": ".json", "bmf": ".json",
}  # fmt: skip
"""Format → suffix of the files of a store's runs."""


def _export_store(root: Path, to: Name, output: Path | None, max_steps: int | None, at: str | None) -> None:
    """Write every run of the store at ``root``; each is named by its identity. Raises ``ReceiptError``."""
    if output is None:
        raise UsageError("an export of a store needs an output path", try_=f"--to {to} -o PATH")
    if max_steps is not None:
        raise UsageError("--max-steps does not apply to a store", why="its receipts have figures, no curves")
    together = to in ("mlflow", "wandb")
    make_folder(output.parent if together else output)
    skipped: list[str] = []
    count, opened = 0, None
    for document in read_receipts(Store(root), skipped.append):
        run = gather(document, None, most=FORMATS[to].most, at=at)
        note(dict.fromkeys(run.notes))
        path = output if together else output / f"{run.identity}{_SUFFIXES.get(to, '')}"
        _, opened = write_run(run, to, path)
        count += 1
    note([*skipped, f"{count} run{'' if count == 1 else 's'} exported to {output}"])
    if opened and together:
        note([opened])
