"""A receipt as an object whose attributes are its fields."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from html import escape
from typing import TYPE_CHECKING, Any

from receipt_cli.analysis.checks import contradicted_metrics, outcome
from receipt_cli.api.view import View
from receipt_cli.definitions.metrics import load_registry
from receipt_cli.documents.validate import validate_bytes
from receipt_cli.errors import InputError
from receipt_cli.io.file_kinds import read_file
from receipt_cli.receipts.production import MAX_DOCUMENT
from receipt_cli.redaction.text import mask_texts
from receipt_cli.render.scale import measure
from receipt_cli.render.text import clean

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
    data = read_file(where, MAX_DOCUMENT)
    wrong = next((finding for finding in validate_bytes(data, where) if finding.severity == "error"), None)
    if wrong is not None:
        why = f"{wrong.pointer or 'the document'}: {wrong.reason}"
        raise InputError("is not a valid receipt", where=where, why=why, try_=f"receipt schema check {where}")
    document = json.loads(data)
    if not document["schema_version"].startswith("receipt/"):
        raise InputError("is a document of another kind", where=where, why=f"its schema_version is {document['schema_version']}")
    return Receipt(mask_texts(document))


_MOST = 8
"""Most metrics shown; the receipt has the others."""


def receipt_table(document: Mapping[str, Any]) -> str:
    """Return a table of the outcome, trainer, steps and first metrics of a valid receipt."""
    cells = (f"<tr><th>{_shown(label)}</th><td>{_shown(value)}</td></tr>" for label, value in _rows(document))
    return f"<table>{''.join(cells)}</table>"


def _shown(text: object) -> str:
    return escape(clean(str(text)))


def _rows(document: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    failure, summary = document["failure"], document["summary"]
    word = outcome(document)
    if document["run"]["name"] is not None:
        yield "run", document["run"]["name"]
    yield "outcome", f"{word}: {failure['reason']}" if failure is not None else word
    grammars = document["derivation"]["grammars"]
    trainer = document["header"]["software"]["trainer"]
    yield "trainer", trainer or ", ".join(entry["id"] for entry in grammars) or "not recognised"
    if summary is None:
        return
    steps = summary["steps"]
    planned = f" of {steps['planned']}" if steps["planned"] is not None else ""
    yield "steps", f"{steps['first']} to {steps['last']}{planned}" if steps["record_count"] != 0 else "none"
    doubtful = contradicted_metrics(summary)
    for name, statistic in [item for item in summary["metrics"].items() if item[0] not in doubtful][:_MOST]:
        metric = load_registry().by_name.get(name)
        which = metric.headline if metric is not None else "last"
        if statistic[which] is not None:
            yield f"{name} ({which})", measure(name, statistic[which])
