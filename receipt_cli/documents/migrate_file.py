"""A file that holds a document → a file that holds it in a newer version; the original is never lost."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.documents.diff import Difference, differences
from receipt_cli.documents.migrate import migrate
from receipt_cli.documents.validate import has_errors, validate_bytes, validate_document
from receipt_cli.errors import ExitCode, InputError, OutputError, ReceiptError
from receipt_cli.io.atomic import NameTaken, write_atomically, write_new

DIGITS = 12
"""Hexadecimal digits of the original's SHA-256 in the name under which it is kept."""


class BrokenMigration(ReceiptError):
    """A step made a document that our own validator refuses: a bug, never written."""

    exit_code = ExitCode.BUG


@dataclass(frozen=True, slots=True)
class MigratedFile:
    """What became of one file. ``data`` is the new document, or the original's bytes where there was nothing to do."""

    file: Path
    original: bytes
    data: bytes
    versions: tuple[str, ...]
    differences: tuple[Difference, ...]

    @property
    def changed(self) -> bool:
        """Whether the document was of an older version."""
        return len(self.versions) > 1


def migrate_bytes(data: bytes, file: Path, to: str | None = None) -> MigratedFile:
    """Return the document in ``data``, which was read from ``file``, lifted to the version ``to`` (the newest by default).

    Raises ``InputError`` where it is no valid document, and what ``migrate`` raises.
    """
    if has_errors(validate_bytes(data, str(file))):
        raise InputError("is not a valid document", where=str(file), try_=f"receipt validate {file}")
    document = json.loads(data)
    try:
        moved = migrate(document, to)
    except ReceiptError as error:
        error.where = error.where or str(file)
        raise
    if len(moved.versions) == 1:
        return MigratedFile(file, data, data, moved.versions, ())
    wrong = [finding for finding in validate_document(moved.document) if finding.severity == "error"]
    if wrong:
        why = f"{wrong[0].pointer}: {wrong[0].reason}"
        raise BrokenMigration(f"made an invalid {moved.versions[-1]}", why=why, where=str(file))
    changes = tuple(differences(document, moved.document))
    return MigratedFile(file, data, canonical_bytes(moved.document), moved.versions, changes)


def write_beside(migrated: MigratedFile, target: Path) -> None:
    """Write the new document to ``target``, which must not exist or hold the same bytes. Raises ``OutputError``."""
    try:
        write_new(target, migrated.data)
    except NameTaken:
        if _read(target) != migrated.data:
            raise


def replace_original(migrated: MigratedFile) -> Path | None:
    """Replace the file by the new document, after the original was kept beside it; return where, or None unchanged.

    The original is kept as ``STEM.DIGEST.json``. Whenever this is interrupted, its bytes are under one of the two names.
    Raises ``OutputError``.
    """
    if not migrated.changed:
        return None
    digest = hashlib.sha256(migrated.original).hexdigest()
    kept = migrated.file.with_name(f"{migrated.file.stem}.{digest[:DIGITS]}.json")
    try:
        write_new(kept, migrated.original)
    except NameTaken:
        if _read(kept) != migrated.original:
            raise
    write_atomically(migrated.file, migrated.data)
    return kept


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise OutputError("cannot compare with what is there", where=str(path), why=error.strerror or str(error)) from error
