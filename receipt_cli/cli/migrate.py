"""``receipt migrate``: documents in a newer version of their schema."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from receipt_cli.cli.migrating import run_migrate
from receipt_cli.cli.options import Json


def migrate(
    files: Annotated[list[Path], typer.Argument(help="Receipts and other documents.", metavar="FILE...")],
    to: Annotated[str | None, typer.Option("--to", metavar="KIND/X.Y", help="Version; the newest by default.")] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write to this file; several FILEs: into this folder, under their names."),
    ] = None,
    in_place: Annotated[
        bool, typer.Option("--in-place", help="Replace each FILE; the original is kept beside it as NAME.DIGEST.json.")
    ] = False,
    json_output: Json = False,
) -> None:
    """Lift documents to a newer version of their schema, the newest by default.

    Prints the new document; -o writes it to a file that does not exist yet, and no original changes without
    --in-place. Captured and derived values stay as they are; the result is validated before it is written. --json tells
    what was done, or would be, field by field. Exits 2 for a downgrade, 3 when a document cannot be read or is not
    valid, 5 for an unknown version, 6 when a file cannot be written; the worst of several files wins.
    """
    run_migrate(files, to=to, output=output, in_place=in_place, json_output=json_output)
