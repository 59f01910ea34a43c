"""Read and validate the receipts of a store; invalid files are refused with a reason."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from receipt_cli.documents.validate import validate_bytes
from receipt_cli.errors import InputError, ReceiptError
from receipt_cli.redaction.text import mask_texts
from receipt_cli.store.files import Store

_NO_FILE = (FileNotFoundError, IsADirectoryError, NotADirectoryError)


class Refused(ReceiptError):
    """A file in the place of a receipt that is not a valid receipt of its log."""


def read_receipt(path: Path, log_sha256: str) -> dict[str, Any]:
    """Return the valid receipt of a log at ``path``.

    Raises ``Refused`` for a file without one, and ``InputError`` where the system does not let it be read or validated:
    the file may be fine, and leaving it out would change the answer.
    """
    try:
        data = path.read_bytes()
        findings = validate_bytes(data, path.name)
    except OSError as error:
        why = error.strerror or str(error)
        if isinstance(error, _NO_FILE):
            raise Refused("cannot read", why=why) from error
        raise InputError("cannot read the store", where=str(path), why=why) from error
    except ReceiptError as error:
        if isinstance(error.__cause__, OSError):  # a schema, of ours
            raise
        raise Refused(error.message, why=error.why) from error
    wrong = [finding for finding in findings if finding.severity == "error"]
    if wrong:
        raise Refused("not valid", why=f"{wrong[0].pointer or '/'}: {wrong[0].reason}")
    document: dict[str, Any] = json.loads(data)
    if not document["schema_version"].startswith("receipt/"):
        raise Refused("not a receipt", why=document["schema_version"])
    if document["derivation"]["log"]["sha256"] != log_sha256:
        raise Refused("the file's name belongs to another log")
    masked: dict[str, Any] = mask_texts(document)  # whoever wrote it may have masked less
    return masked


def read_receipts(store: Store, warn: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    """Yield the current receipt of every log, ordered by the log's digest; ``warn`` is called with each skipped file.

    Raises ``InputError`` where there is no store, or the system does not let it be read.
    """
    store.check_exists()
    for receipt in store.receipts():
        try:
            yield read_receipt(receipt.path, receipt.log_sha256)
        except Refused as error:
            name = receipt.path.relative_to(store.root).as_posix()
            warn(f"{name} is skipped: {error.message}{': ' if error.why else ''}{error.why}")
