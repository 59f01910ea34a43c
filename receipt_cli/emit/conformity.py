"""Check a document that a job made against its contract, as ``receipt schema check`` does.

A valid document needs only the standard library. jsonschema, if installed, reports all errors of an invalid one; else only
the first error of its structure is reported.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from receipt_cli.emit.document import Document


class Problem(NamedTuple):
    """One error: its place (an RFC 6901 JSON pointer) and reason."""

    pointer: str
    reason: str


class NotConforming(ValueError):
    """A document breaks its contract; ``problems`` lists the errors."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(f"{problems[0].pointer or '/'}: {problems[0].reason}{more}")
        self.problems = tuple(problems)


def require(document: Document, kind: str) -> Document:
    """Return ``document``. Raises ``NotConforming`` if it breaks the contract of ``kind``."""
    problems = check_document(document, kind)
    if problems:
        raise NotConforming(problems)
    return document


def check_document(document: Document, kind: str) -> list[Problem]:
    """Return the errors of a document of ``kind`` (``evaluation`` or ``ablation``), [] if it is valid."""
    from receipt_cli.documents.validate import validate_document

    if document.get("schema_version") != f"{kind}/1.0":
        return [Problem("/schema_version", f"is not {kind}/1.0")]
    return [Problem(found.pointer, found.reason) for found in validate_document(document) if found.severity == "error"]
