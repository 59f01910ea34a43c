"""``receipt schema``: print schemas, and check and migrate documents by them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

from receipt_cli.api.commands import migrate as migrate_file
from receipt_cli.api.commands import validate as find_wrong
from receipt_cli.api.results import Migration
from receipt_cli.cli.output import note, style, tell, write_answer, write_json, write_stdout
from receipt_cli.cli.parameters import Argument, Documents, Json, Option, Output
from receipt_cli.documents.schema_fields import compare_schemas, is_compatible, list_fields
from receipt_cli.documents.schemas import find_entry, get_json_schema, list_schemas, read_entry
from receipt_cli.errors import ExitCode, ReceiptError, UsageError
from receipt_cli.io.atomic import make_folder
from receipt_cli.problems import Finding
from receipt_cli.render.console import render_table
from receipt_cli.render.schema import render_changes, render_fields, render_findings


def list_(json_output: Json = False) -> None:
    """List the schemas that ship.

    Example: receipt schema list
    """
    columns = ("kind", "version", "status", "since", "sha256")
    rows = [{name: str(getattr(entry, name)) for name in columns} for entry in list_schemas()]
    shown = [{**row, "sha256": row["sha256"][:12]} for row in rows]
    write_answer(rows, json_output, lambda: render_table(shown, columns, style()))


def show(
    kind: Annotated[str, Argument("KIND", "Kind, such as receipt or gpu_profile; or kind/1.0.")],
    version: Annotated[str | None, Option(metavar="X.Y", help="Version; the newest by default.")] = None,
    fields: Annotated[bool, Option("--fields", help="List the fields instead, with type, unit and meaning.")] = False,
    json_output: Json = False,
) -> None:
    """Print a schema, the field reference; --fields prints a readable list.

    Example: receipt schema show receipt
    """
    entry = find_entry(kind, version)
    if not fields:
        write_stdout(read_entry(entry))
        return
    found = list_fields(get_json_schema(entry))
    write_answer([field.document() for field in found], json_output, lambda: render_fields(found, style()))


def diff(
    old: Annotated[str, Argument("A", "A schema, such as receipt/1.0.")],
    new: Annotated[str, Argument("B", "Another version of it, such as receipt/1.1.")],
    json_output: Json = False,
) -> None:
    """List what changed from A to B, and whether a reader of A can read documents of B.

    Example: receipt schema diff receipt/1.0 receipt/1.1
    """
    entries = [find_entry(name) for name in (old, new)]
    changes = compare_schemas(*(get_json_schema(entry) for entry in entries))
    names = [entry.name for entry in entries]
    told = [change.document() for change in changes]
    answer = {"old": names[0], "new": names[1], "compatible": is_compatible(changes), "changes": told}
    write_answer(answer, json_output, lambda: render_changes(names[0], names[1], changes, style()))


def check(files: Documents, json_output: Json = False) -> None:
    """Check documents against their schema and the rules between fields.

    All findings are listed. Exits 1 when a document is invalid, 3 when one cannot be read, 5 when a schema is unknown;
    the worst of several files wins.

    Example: receipt schema check *.receipt.json
    """
    found = find_wrong(files)
    errors = [finding.refusal for finding in found if finding.refusal is not None]
    invalid = {finding.file for finding in found if finding.severity == "error" and finding.refusal is None}
    shown = [Finding(f.severity, f"{f.file}#{f.pointer}", f"{f.reason} [{f.rule}]") for f in found if f.refusal is None]
    total = f"{len(files) - len(invalid) - len(errors)} of {len(files)} valid\n"
    write_answer([finding.to_dict() for finding in found], json_output, lambda: render_findings(shown, style()) + total)
    for error in errors:
        tell(error)
    if errors:
        sys.exit(max(error.exit_code for error in errors))
    if invalid:
        sys.exit(ExitCode.NO)


def migrate(
    files: Documents,
    to: Annotated[str | None, Option(metavar="KIND/X.Y", help="Version; the newest by default.")] = None,
    output: Annotated[
        Path | None, Output("Write to this file; several FILEs: into this folder, under their names.", dash="stdout")
    ] = None,
    in_place: Annotated[
        bool, Option("--in-place", help="Replace each FILE; the original is kept beside it as NAME.DIGEST.json.")
    ] = False,
    json_output: Json = False,
) -> None:
    """Migrate documents to a newer version of their schema, the newest by default.

    Prints the new document; -o writes it to a file that does not exist yet, and no original changes without
    --in-place. Captured and derived values stay as they are; the result is validated before it is written. --json lists
    what was done, or would be, field by field. Exits 2 for a downgrade, 3 when a document cannot be read or is not
    valid, 5 for an unknown version, 6 when a file cannot be written; the worst of several files wins.

    Example: receipt schema migrate old.receipt.json
    """
    _check_usage(files, output, in_place, json_output)
    rows: list[dict[str, Any]] = []
    errors: list[ReceiptError] = []
    for file in files:
        try:
            migration = migrate_file(file, to=to, output=output, in_place=in_place)
        except ReceiptError as error:
            tell(error)
            errors.append(error)
            continue
        rows.append(migration.to_dict())
        if not json_output:
            if output is None and not in_place:
                write_stdout(migration.data)
            note([_done(migration)])
    if json_output:
        write_json(rows)
    if errors:
        sys.exit(max(error.exit_code for error in errors))


def _check_usage(files: list[Path], output: Path | None, in_place: bool, json_output: bool) -> None:
    if output is not None and in_place:
        raise UsageError("-o and --in-place exclude each other")
    if len(files) > 1 and output is None and not in_place and not json_output:
        raise UsageError("several documents do not fit on stdout", try_="-o FOLDER, or --in-place")
    if output is not None and len(files) > 1:
        if len({file.name for file in files}) < len(files):
            raise UsageError("two of the files have the same name", try_="migrate them one folder at a time")
        make_folder(output)


def _done(migration: Migration) -> str:
    first, *further = migration.versions
    way = " → ".join([first, *further]) if further else f"is {first} already"
    written = f", written to {migration.written}" if migration.written else ""
    kept = f", the original kept as {migration.original_kept}" if migration.original_kept else ""
    return f"{migration.file}: {way}{written}{kept}"
