"""``receipt validate``: do documents keep their contract?"""

from __future__ import annotations

import sys

from receipt_cli.cli.output import style, tell, write_json, write_stdout
from receipt_cli.cli.parameters import Color, Documents, Json
from receipt_cli.errors import ExitCode


def validate(files: Documents, json_output: Json = False, color: Color = "auto") -> None:
    """Check documents against their schema and the rules between fields.

    All findings are listed. Exits 1 when a document is invalid, 3 when one cannot be read, 5 when a schema is unknown;
    the worst of several files wins.
    """
    from receipt_cli.api.commands import validate as find_wrong
    from receipt_cli.problems import Finding
    from receipt_cli.render.findings import render_findings

    found = find_wrong(files)
    errors = [finding.refusal for finding in found if finding.refusal is not None]
    invalid = {finding.file for finding in found if finding.severity == "error" and finding.refusal is None}
    if json_output:
        write_json([finding.to_dict() for finding in found])
    else:
        shown = [Finding(f.severity, f"{f.file}#{f.pointer}", f"{f.reason} [{f.rule}]") for f in found if f.refusal is None]
        if shown:
            write_stdout(render_findings(shown, style(color)))
        write_stdout(f"{len(files) - len(invalid) - len(errors)} of {len(files)} valid\n")
    for error in errors:
        tell(error)
    if errors:
        sys.exit(max(error.exit_code for error in errors))
    if invalid:
        sys.exit(ExitCode.NO)
