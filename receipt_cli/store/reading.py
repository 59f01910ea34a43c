"""Read and validate the receipts of a store; refuse invalid files with a reason."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from receipt_cli.documents.validate import validate_bytes
from receipt_cli.errors import InputError, ReceiptError
from receipt_cli.io.file_kinds import SpecialFile, read_regular
from receipt_cli.redaction.text import mask_texts
from receipt_cli.store.files import Store
from receipt_cli.store.places import marks_files, placed, places_by_log, read_marks, read_places

_NO_FILE = (FileNotFoundError, IsADirectoryError, NotADirectoryError, SpecialFile)


class Refused(ReceiptError):
    """A file in the place of a receipt is not a valid receipt of its log."""


def read_receipt(path: Path, log_sha256: str) -> dict[str, Any]:
    """Return the valid receipt of a log at ``path``, without secrets. Raises as ``read_valid``."""
    document = read_valid(path)
    if not document["schema_version"].startswith("receipt/"):
        raise Refused("not a receipt", why=document["schema_version"])
    if document["derivation"]["log"]["sha256"] != log_sha256:
        raise Refused("the file's name belongs to another log")
    return document


def read_valid(path: Path) -> dict[str, Any]:
    """Return the valid document in a file of a store, without secrets: its writer may have masked less.

    Raises ``Refused`` for a file without one, ``InputError`` if the system cannot read or validate the file: it may be fine, and
    leaving it out would change the answer.
    """
    try:
        data = read_regular(path)
        findings = validate_bytes(data, path.name)
    except OSError as error:
        why = error.strerror or str(error)
        if isinstance(error, _NO_FILE):
            raise Refused("cannot read", why=why) from error
        raise InputError("cannot read the store", where=str(path), why=why) from error
    except ReceiptError as error:
        if isinstance(error.__cause__, OSError):  # one of our schemas
            raise
        raise Refused(error.message, why=error.why) from error
    wrong = [finding for finding in findings if finding.severity == "error"]
    if wrong:
        raise Refused("not valid", why=f"{wrong[0].pointer or '/'}: {wrong[0].reason}")
    masked: dict[str, Any] = mask_texts(json.loads(data))
    return masked


def read_receipts(store: Store, warn: Callable[[str], None], *, excluded: bool = True) -> Iterator[dict[str, Any]]:
    """Yield the current receipt of every run, ordered by the log's digest; call ``warn`` for each skipped file.

    Missing name, lane and preset come from the log's first path (``placed``), a missing lane also from the run's marks. Without
    ``excluded``, runs that a user excluded are left out. Raises ``InputError`` if the store does not exist or cannot be read.
    """
    store.check_exists()
    places, marks = places_by_log(store.root), marks_files(store.root)
    for receipt in store.receipts():
        mine = read_marks(marks.get(receipt.run_id))
        if mine.excluded and not excluded:
            continue
        try:
            document = read_receipt(receipt.path, receipt.log_sha256)
            found = read_places(places.get(receipt.log_sha256, ()))
            document = mask_texts(placed(document, found)) if found else document
            if mine.lane and document["run"]["lane"] is None:
                document = {**document, "run": {**document["run"], "lane": mine.lane}}
            yield document
        except Refused as error:
            name = receipt.path.relative_to(store.root).as_posix()
            warn(f"{name} is skipped: {error}")
