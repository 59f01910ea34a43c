"""``receipt validate``: do documents keep their contract?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from receipt_cli.cli.options import Color, Json
from receipt_cli.cli.validating import run_validate


def validate(
    files: Annotated[list[Path], typer.Argument(help="Receipts and other documents.", metavar="FILE...")],
    json_output: Json = False,
    color: Color = "auto",
) -> None:
    """Check documents against their schema and the rules between fields.

    All findings are listed. Exits 1 when a document is invalid, 3 when one cannot be read, 5 when a schema is unknown;
    the worst of several files wins.
    """
    run_validate(files, json_output=json_output, color=color)
