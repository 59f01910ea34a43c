"""``receipt validate``: do documents keep their contract?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from receipt_cli.cli.options import Color, Json
from receipt_cli.cli.output import read_bytes, style, tell, write_json, write_stdout
from receipt_cli.errors import ExitCode, ReceiptError


def validate(
    files: Annotated[list[Path], typer.Argument(help="Receipts and header files.", metavar="FILE...")],
    json_output: Json = False,
    color: Color = "auto",
) -> None:
    """Check documents against their schema and the rules between fields.

    All findings are listed. Exits 1 when a document is invalid, 3 when one cannot be read, 5 when a schema is unknown;
    the worst of several files wins.
    """
    from receipt_cli.model import Finding as Shown
    from receipt_cli.render.findings import render_findings
    from receipt_cli.validate import Finding, has_errors, validate_bytes

    found: list[tuple[Path, Finding]] = []
    errors: list[ReceiptError] = []
    for file in files:
        try:
            found += [(file, finding) for finding in validate_bytes(read_bytes(file), str(file))]
        except ReceiptError as error:
            errors.append(error)
    if json_output:
        write_json(
            [{"file": str(f), "pointer": x.pointer, "rule": x.rule, "severity": x.severity, "reason": x.reason} for f, x in found]
        )
    else:
        shown = [Shown(x.severity, f"{f}#{x.pointer}", f"{x.reason} [{x.rule}]") for f, x in found]
        write_stdout(render_findings(shown, style(color)) if shown else "")
        valid = len(files) - len({f for f, x in found if x.severity == "error"}) - len(errors)
        write_stdout(f"{valid} of {len(files)} valid\n")
    for unread in errors:
        tell(unread)
    if errors:
        raise typer.Exit(max(unread.exit_code for unread in errors))
    if has_errors([x for _, x in found]):
        raise typer.Exit(ExitCode.NO)
