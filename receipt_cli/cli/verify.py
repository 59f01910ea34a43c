"""``receipt verify``: does the log still give this receipt?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from receipt_cli.cli.options import Color, Json
from receipt_cli.cli.output import note, progress, read_bytes, style, write_json, write_stdout
from receipt_cli.errors import ExitCode


def verify(
    receipt: Annotated[Path, typer.Argument(help="A receipt.", metavar="RECEIPT")],
    logs: Annotated[
        list[str],
        typer.Argument(help="The log that it is of: a file (also .gz .zst .xz .bz2) or -; all files of one run.", metavar="LOG"),
    ],
    newest: Annotated[
        bool, typer.Option("--newest", help="Show what the definitions of today would change, instead of the recorded ones.")
    ] = False,
    grammar: Annotated[
        list[Path] | None, typer.Option("--grammar", "-g", metavar="FILE", help="A recorded grammar that does not ship.")
    ] = None,
    json_output: Json = False,
    color: Color = "auto",
) -> None:
    """Derive a receipt from its log once more, and compare.

    The log is read by the recorded grammars, options and run, whatever was added since. Exits 0 where the derived part is
    the same byte for byte, 1 with the fields that differ, 3 for a receipt or log that cannot be read, 5 for a grammar that
    is not known here.
    """
    from receipt_cli.grammar.catalog import get_grammar
    from receipt_cli.render.verification import Title, render_verification
    from receipt_cli.scan.workers import AUTO
    from receipt_cli.verification.verifier import read_receipt
    from receipt_cli.verification.verifier import verify as compare

    document, invalid = read_receipt(read_bytes(receipt), str(receipt))
    own = [get_grammar(str(path.absolute())) for path in grammar or ()]
    with progress(logs[0]) as bar:
        found = compare(document, logs, invalid=invalid, own=own, newest=newest, workers=AUTO, progress=bar)
    note(found.notes)
    if json_output:
        write_json({"receipt": str(receipt), "logs": logs, "newest": newest, **found.document()})
    else:
        broken = [f"{f.pointer}: {f.reason}" for f in found.invalid]
        title = Title(str(receipt), logs[0], found.refs, newest)
        write_stdout(render_verification(found.differences, found.other, broken, title, style(color)))
    if not found.verified:
        raise typer.Exit(ExitCode.NO)
