"""``receipt validate``: do documents keep their contract?"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from receipt_cli.cli.output import ColorChoice, read_bytes, style, tell, write_json, write_stdout
from receipt_cli.cli.parameters import Color, Documents, Json
from receipt_cli.errors import DataError, ExitCode, ReceiptError


def validate(files: Documents, json_output: Json = False, color: Color = "auto") -> None:
    """Check documents against their schema and the rules between fields.

    All findings are listed. Exits 1 when a document is invalid, 3 when one cannot be read, 5 when a schema is unknown;
    the worst of several files wins.
    """
    from receipt_cli.documents.validate import Finding, has_errors, validate_bytes

    found: list[tuple[Path, Finding]] = []
    errors: list[tuple[Path, ReceiptError]] = []
    for file in files:
        try:
            found += [(file, finding) for finding in validate_bytes(read_bytes(file), str(file))]
        except ReceiptError as error:
            errors.append((file, error))
    if json_output:
        write_json([*(_row(f, x.pointer, x.rule, x.severity, x.reason) for f, x in found), *(_refused(f, e) for f, e in errors)])
    else:
        _write_findings(found, color)
        valid = len(files) - len({f for f, x in found if x.severity == "error"}) - len(errors)
        write_stdout(f"{valid} of {len(files)} valid\n")
    for _, refusal in errors:
        tell(refusal)
    if errors:
        sys.exit(max(refusal.exit_code for _, refusal in errors))
    if has_errors([x for _, x in found]):
        sys.exit(ExitCode.NO)


def _write_findings(found: list[tuple[Path, Any]], color: ColorChoice) -> None:
    from receipt_cli.problems import Finding as Shown
    from receipt_cli.render.findings import render_findings

    shown = [Shown(x.severity, f"{f}#{x.pointer}", f"{x.reason} [{x.rule}]") for f, x in found]
    if shown:
        write_stdout(render_findings(shown, style(color)))


def _row(file: Path, pointer: str, rule: str, severity: str, reason: str) -> dict[str, str]:
    return {"file": str(file), "pointer": pointer, "rule": rule, "severity": severity, "reason": reason}


def _refused(file: Path, error: ReceiptError) -> dict[str, str]:
    """Return the row of a file that was not judged: of a version that nobody here knows, or no document at all."""
    reason = f"{error.message}: {error.why}" if error.why else error.message
    unknown = isinstance(error, DataError)
    return _row(file, "/schema_version" if unknown else "", "unknown_version" if unknown else "unreadable", "error", reason)
