"""``receipt import``: another system's record of a run in, a receipt out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from receipt_cli.cli.options import Color, Json
from receipt_cli.cli.output import style, write_stdout

Format = Annotated[str | None, typer.Option("--format", metavar="NAME", help="The format that it is in; else it is found out.")]


def import_(
    file: Annotated[str, typer.Argument(help="The document (also .gz .zst .xz .bz2), or - for stdin.", metavar="FILE")],
    format_name: Format = None,
    json_output: Json = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the receipt to this file.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the run.")] = None,
    lane: Annotated[str | None, typer.Option(help="Line of comparable runs (hardware and recipe).")] = None,
    preset: Annotated[str | None, typer.Option(help="Name of the recipe.")] = None,
    color: Color = "auto",
) -> None:
    """Turn another system's record of a run into a receipt that names its origin.

    Reads trainer_state.json of the Hugging Face Trainer, wandb-summary.json (with wandb-metadata.json and config.yaml
    beside it), nanochat's report.md, Forgather's trainer_logs.json, and the training receipts of MegaCpp and cppmega.
    Exits 3 for a document that cannot be read and 4 for one in no known format.
    """
    from receipt_cli.foreign.importing import import_document
    from receipt_cli.receipt import canonical_bytes
    from receipt_cli.render.receipt import render_receipt
    from receipt_cli.write import write_atomically

    imported = import_document(file, wanted=format_name, name=name, lane=lane, preset=preset)
    data = canonical_bytes(imported.document)
    if output is not None:
        write_atomically(output, data)
    shown = data if json_output else render_receipt(imported.document, series=imported.series, style=style(color))
    write_stdout(shown)
