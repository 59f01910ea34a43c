"""A receipt as an object whose attributes are its fields."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from receipt_cli.api.html import receipt_table
from receipt_cli.api.view import View
from receipt_cli.documents.validate import validate_bytes
from receipt_cli.errors import InputError
from receipt_cli.receipts.open import MAX_DOCUMENT
from receipt_cli.redaction.text import mask_texts

if TYPE_CHECKING:
    from receipt_cli.api.fields import ReceiptFields
else:
    ReceiptFields = View


class Receipt(ReceiptFields):
    """A valid receipt. Its attributes are the fields of ``receipt schema show receipt``, in base units.

    A receipt of an older version stays as it was written (see ``schema_version``): later fields are None, and ``migrate``
    upgrades the file.
    """

    __slots__ = ()

    def __init__(self, document: dict[str, Any]) -> None:
        """``document`` is the JSON object of a valid receipt, which must not change any more."""
        super().__init__(document, ())

    def _repr_html_(self) -> str:
        """Return a small table for a notebook."""
        return receipt_table(self._data)


def load(path: str | os.PathLike[str]) -> Receipt:
    """Return the checked receipt in the file ``path``, with texts that look like secrets masked.

    Raises ``InputError`` for a file that cannot be read or is no valid receipt, ``DataError`` for an unknown major version.
    Fields of a newer minor version are kept.
    """
    where = os.fsdecode(path)
    try:
        with Path(where).open("rb") as file:
            data = file.read(MAX_DOCUMENT + 1)
    except (OSError, ValueError) as error:
        raise InputError("cannot read", where=where, why=getattr(error, "strerror", None) or str(error)) from error
    if len(data) > MAX_DOCUMENT:
        raise InputError("is too large for a receipt", where=where, why=f"more than {MAX_DOCUMENT} bytes")
    wrong = next((finding for finding in validate_bytes(data, where) if finding.severity == "error"), None)
    if wrong is not None:
        why = f"{wrong.pointer or 'the document'}: {wrong.reason}"
        raise InputError("is not a valid receipt", where=where, why=why, try_=f"receipt schema check {where}")
    document = json.loads(data)
    if not document["schema_version"].startswith("receipt/"):
        raise InputError("is a document of another kind", where=where, why=f"its schema_version is {document['schema_version']}")
    return Receipt(mask_texts(document))
