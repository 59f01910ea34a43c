"""``receipt show``: print a document for people."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

from receipt_cli.cli.output import note, style, write_json, write_stdout
from receipt_cli.cli.parameters import Argument, Full, Json
from receipt_cli.cli.runs import InStore, receipt_file
from receipt_cli.documents.validate import has_errors, validate_bytes
from receipt_cli.errors import ExitCode, InputError
from receipt_cli.io.file_kinds import read_file
from receipt_cli.receipts.sidecars import check_sidecar, read_sidecar, sidecar_kind
from receipt_cli.redaction.text import mask_texts
from receipt_cli.render.document import render_document


def show(
    given: Annotated[
        str, Argument("FILE|RUN", "A receipt, or a document of another kind; or a run of the store.", completes="run")
    ],
    store: InStore = None,
    json_output: Json = False,
    full: Full = False,
) -> None:
    """Show a receipt, or a document of another kind.

    A receipt looks as `receipt parse` shows it; of a file of times or samples beside a log --json prints what it says.
    Exits 1 when the document is not valid; what can be read of it is shown all the same.

    Example: receipt show run.receipt.json
    """
    file = Path(receipt_file(given, store))
    data = read_file(file)
    if sidecar_kind(data) is not None:
        _show_sidecar(data, file, json_output)
        return
    try:
        findings = validate_bytes(data, str(file))
    except InputError as error:  # most likely a log
        error.try_ = error.try_ or f"receipt parse {file}"
        raise
    document = mask_texts(json.loads(data))  # its writer may have masked less
    if json_output:
        write_json(document)
    elif isinstance(document, dict):
        write_stdout(render_document(document, style=style(), full=full))
    if has_errors(findings):
        note([f"{file} is not valid: receipt schema check {file}"])
        sys.exit(ExitCode.NO)


def _show_sidecar(data: bytes, file: Path, json_output: bool) -> None:
    if json_output:
        write_json(read_sidecar(data, str(file)))
        return
    found = check_sidecar(data, str(file))
    write_stdout("".join(f"{finding.pointer}{': ' * bool(finding.pointer)}{finding.reason}\n" for finding in found))
    if has_errors(found):
        sys.exit(ExitCode.NO)
