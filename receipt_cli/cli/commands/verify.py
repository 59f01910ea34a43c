"""``receipt verify``: does the log still give this receipt?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from receipt_cli.cli.output import note, progress, style, write_json, write_stdout
from receipt_cli.cli.parameters import Argument, Color, Json, Option
from receipt_cli.errors import ExitCode
from receipt_cli.io.compression import SUFFIXES


def verify(
    receipt: Annotated[Path, Argument("RECEIPT", "A receipt.")],
    logs: Annotated[
        list[str], Argument("LOG...", f"Its log: a file (also {' '.join(SUFFIXES)}) or - for stdin; or all files of the run.")
    ],
    newest: Annotated[bool, Option(help="Show what the current definitions would change, instead of the recorded ones.")] = False,
    grammar: Annotated[
        list[Path] | None, Option("-g", "--grammar", help="File of a recorded grammar that does not ship.")
    ] = None,
    json_output: Json = False,
    color: Color = "auto",
) -> None:
    """Derive a receipt from its log once more, and compare.

    The log is parsed with the recorded grammars, options and run, whatever was added since. Exits 0 where the derived part is
    the same byte for byte, 1 with the fields that differ, 3 for a receipt or log that cannot be read, 5 for an unknown
    grammar.

    Example: receipt verify run.receipt.json run.log
    """
    from receipt_cli.api.commands import verify as derive_again
    from receipt_cli.render.verification import Title, render_verification

    with progress(logs[0]) as bar:
        verification = derive_again(receipt, logs, newest=newest, grammars=grammar or (), workers=None, progress=bar)
    note(verification.notes)
    if json_output:
        write_json(verification.to_dict())
    else:
        found = verification.found
        broken = [f"{f.pointer}: {f.reason}" for f in found.invalid]
        title = Title(str(receipt), logs[0], found.refs, newest)
        page = render_verification(found.differences, found.other, broken, title, style(color), touched=found.touched is True)
        write_stdout(page)
    if not verification.verified:
        sys.exit(ExitCode.NO)
