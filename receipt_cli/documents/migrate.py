"""Migrate a document to a newer version of its schema, from one version to the next.

The original of a migrated file is kept beside it.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.documents.diff import Difference, differences
from receipt_cli.documents.schemas import list_schemas, read_version
from receipt_cli.documents.validate import has_errors, validate_bytes, validate_document
from receipt_cli.errors import DataError, ExitCode, InputError, OutputError, ReceiptError, UsageError, system_errors
from receipt_cli.io.atomic import NameTaken, write_atomically, write_new

Document = dict[str, Any]


def _with_scores(document: Document) -> Document:
    """Return an evaluation of 1.0 in 2.0: what a tracker recorded, without scores of tasks."""
    added: Document = {"model": None, "scores": [], "origin": None}
    last: Document = {key: document[key] for key in ("attachments", "producer") if key in document}
    return {**{key: value for key, value in document.items() if key not in last}, **added, **last}


MAJOR_STEPS: Mapping[str, Callable[[Document], Document]] = {"evaluation/2.0": _with_scores}
"""First version of a new major → the step that leads to it from the version before.

A step may add, move and rename fields. It keeps every captured and derived value, and computes none. A minor version only adds
optional fields, so it needs no step.
"""


@dataclass(frozen=True, slots=True)
class Migrated:
    """A document in the wanted version, and the versions on the way, its first one included."""

    document: Document
    versions: tuple[str, ...]


def migrate(document: Document, to: str | None = None) -> Migrated:
    """Return a copy of ``document`` in version ``to``, or in the newest version of its kind.

    ``to`` is KIND/MAJOR.MINOR. Raises ``UsageError`` for another kind or an older version, and ``DataError`` for an
    unknown version.
    """
    here = str(document.get("schema_version"))
    of_kind = sorted((entry for entry in list_schemas() if entry.kind == here.partition("/")[0]), key=lambda entry: entry.order)
    for version in [here] if to is None else [here, to]:
        _check_known(version)
    if to is not None:
        _check_upward(here, to)
    names = [entry.name for entry in of_kind]
    versions = names[names.index(here) : None if to is None else names.index(to) + 1]
    moved = copy.deepcopy(document)
    for version in versions[1:]:
        moved = {**(MAJOR_STEPS[version](moved) if version in MAJOR_STEPS else moved), "schema_version": version}
    return Migrated(moved, tuple(versions))


def _check_known(version: str) -> None:
    known = [entry.name for entry in list_schemas()]
    if version in known:
        return
    kind = version.partition("/")[0]
    of_kind = [name for name in known if name.startswith(f"{kind}/")]
    why = f"known: {', '.join(of_kind or sorted(known))}"
    here, newest = read_version(version), max((read_version(name) or ("", 0, 0) for name in of_kind), default=None)
    if here is not None and newest is not None and here > newest:
        why = f"it is newer than this receipt; {why}"
    raise DataError(f"unknown schema version {version}", why=why)


def _check_upward(here: str, to: str) -> None:
    old, new = read_version(here), read_version(to)
    if old is None or new is None or old[0] != new[0]:
        raise UsageError(f"cannot migrate {here} to {to}", why="migration cannot change the document kind")
    if new[1:] < old[1:]:
        why = "a downgrade would lose fields that the older version does not have"
        raise UsageError(f"cannot migrate {here} down to {to}", why=why, try_="keep the original that was migrated")


DIGITS = 12
"""Hexadecimal digits of the original's SHA-256 in the name of the kept file."""


class BrokenMigration(ReceiptError):
    """A step made a document that our own validator refuses: a bug; the document is not written."""

    exit_code = ExitCode.BUG


@dataclass(frozen=True, slots=True)
class MigratedFile:
    """Result of migrating one file. ``data`` is the new document, or the original's bytes if it was the newest version."""

    file: Path
    original: bytes
    data: bytes
    versions: tuple[str, ...]
    differences: tuple[Difference, ...]

    @property
    def changed(self) -> bool:
        """Whether the document had an older version."""
        return len(self.versions) > 1


def migrate_bytes(data: bytes, file: Path, to: str | None = None) -> MigratedFile:
    """Return the document in ``data``, the content of ``file``, in version ``to`` (default: the newest).

    Raises ``InputError`` if it is not a valid document, and the errors of ``migrate``.
    """
    if has_errors(validate_bytes(data, str(file))):
        raise InputError("is not a valid document", where=str(file), try_=f"receipt schema check {file}")
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


def replace_original(migrated: MigratedFile) -> Path | None:
    """Copy the original to ``STEM.DIGEST.json``, then replace the file; return the path of the copy, None if unchanged.

    If this is interrupted, the original's bytes are under one of the two names. Raises ``OutputError``.
    """
    if not migrated.changed:
        return None
    digest = hashlib.sha256(migrated.original).hexdigest()
    kept = migrated.file.with_name(f"{migrated.file.stem}.{digest[:DIGITS]}.json")
    write_once(kept, migrated.original)
    write_atomically(migrated.file, migrated.data)
    return kept


def write_once(path: Path, data: bytes) -> None:
    """Write ``data`` to ``path``. Raises ``OutputError`` if it exists with other bytes."""
    try:
        write_new(path, data)
    except NameTaken:
        with system_errors(OutputError, "cannot read the existing file", path):
            there = path.read_bytes()
        if there != data:
            raise
