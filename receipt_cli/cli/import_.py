"""``receipt import``: another system's record of a run in, a receipt or a GPU profile out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from receipt_cli.cli.importing import Wanted, import_files
from receipt_cli.cli.options import Color, Json

Format = Annotated[str | None, typer.Option("--format", metavar="NAME", help="The format that it is in; else it is found out.")]
Session = Annotated[str | None, typer.Option("--session", metavar="ID", help="Which session, where a recording holds several.")]


def import_(
    files: Annotated[
        list[str],
        typer.Argument(
            help="The document (also .gz .zst .xz .bz2), or - for stdin; a session's folder or its files.", metavar="FILE..."
        ),
    ],
    format_name: Format = None,
    session: Session = None,
    json_output: Json = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write what is made to this file.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the run.")] = None,
    lane: Annotated[str | None, typer.Option(help="Line of comparable runs (hardware and recipe).")] = None,
    preset: Annotated[str | None, typer.Option(help="Name of the recipe.")] = None,
    attach: Annotated[list[str] | None, typer.Option(metavar="KIND=URI", help="A heavy artefact, by reference.")] = None,
    color: Color = "auto",
) -> None:
    """Turn another system's record of a run into a receipt that names its origin.

    Reads trainer_state.json of the Hugging Face Trainer, wandb-summary.json (with wandb-metadata.json and config.yaml
    beside it), nanochat's report.md, Forgather's trainer_logs.json, and the training receipts of MegaCpp and cppmega.
    A session of GPU Flight (gpufl: a folder of device.log, scope.log and system.log) becomes a GPU profile, and so do
    the CSV tables of nsys stats.
    Exits 3 for a document that cannot be read and 4 for one in no known format.
    """
    wanted = Wanted(format_name, session, name, lane, preset, tuple(attach or ()))
    import_files(files, wanted, output=output, json_output=json_output, color=color)
