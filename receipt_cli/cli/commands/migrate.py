"""``receipt migrate``: documents in a newer version of their schema."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from receipt_cli.cli.output import note, read_bytes, tell, write_json, write_stdout
from receipt_cli.cli.parameters import Documents, Json, Option
from receipt_cli.errors import ReceiptError, UsageError

if TYPE_CHECKING:
    from receipt_cli.documents.migrate_file import MigratedFile


def migrate(
    files: Documents,
    to: Annotated[str | None, Option(metavar="KIND/X.Y", help="Version; the newest by default.")] = None,
    output: Annotated[
        Path | None, Option("-o", "--output", help="Write to this file; several FILEs: into this folder, under their names.")
    ] = None,
    in_place: Annotated[bool, Option(help="Replace each FILE; the original is kept beside it as NAME.DIGEST.json.")] = False,
    json_output: Json = False,
) -> None:
    """Migrate documents to a newer version of their schema, the newest by default.

    Prints the new document; -o writes it to a file that does not exist yet, and no original changes without
    --in-place. Captured and derived values stay as they are; the result is validated before it is written. --json lists
    what was done, or would be, field by field. Exits 2 for a downgrade, 3 when a document cannot be read or is not
    valid, 5 for an unknown version, 6 when a file cannot be written; the worst of several files wins.
    """
    from receipt_cli.documents.migrate_file import migrate_bytes

    _check_usage(files, output, in_place, json_output)
    rows: list[dict[str, Any]] = []
    errors: list[ReceiptError] = []
    for file in files:
        try:
            migrated = migrate_bytes(read_bytes(file), file, to)
            row = _deliver(migrated, _target(file, files, output), in_place, json_output)
        except ReceiptError as error:
            tell(error)
            errors.append(error)
        else:
            rows.append(row)
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
        from receipt_cli.io.atomic import make_folder

        if len({file.name for file in files}) < len(files):
            raise UsageError("two of the files have the same name", try_="migrate them one folder at a time")
        make_folder(output)


def _target(file: Path, files: list[Path], output: Path | None) -> Path | None:
    if output is None:
        return None
    return output / file.name if len(files) > 1 or output.is_dir() else output


def _deliver(migrated: MigratedFile, target: Path | None, in_place: bool, json_output: bool) -> dict[str, Any]:
    """Write the new document to where it belongs, say so, and return what ``--json`` tells of it."""
    from receipt_cli.documents.migrate_file import replace_original, write_beside

    kept: Path | None = None
    if in_place:
        kept = replace_original(migrated)
        written = migrated.file if migrated.changed else None
    elif target is not None:
        write_beside(migrated, target)
        written = target
    else:
        written = None
        if not json_output:
            write_stdout(migrated.data)
    way = " → ".join(migrated.versions) if migrated.changed else f"is {migrated.versions[0]} already"
    if not json_output:
        places = [f", written to {written}" if written else "", f", the original kept as {kept}" if kept else ""]
        note([f"{migrated.file}: {way}{''.join(places)}"])
    return {
        "file": str(migrated.file),
        "versions": list(migrated.versions),
        "written": str(written) if written else None,
        "original_kept": str(kept) if kept else None,
        "differences": [difference.document() for difference in migrated.differences],
    }
