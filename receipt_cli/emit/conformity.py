"""Check that a document that a job made itself keeps its contract, as ``receipt schema check`` does.

For a document that keeps it the standard library is enough. What is wrong with another is reported by jsonschema where
that is installed; else the first error of its shape alone is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from receipt_cli.emit.document import Document


class Problem(NamedTuple):
    """One thing that is wrong: where (an RFC 6901 JSON pointer) and why."""

    pointer: str
    reason: str


class NotConforming(ValueError):
    """A document breaks its contract; ``problems`` says where."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        super().__init__(f"{problems[0].pointer or '/'}: {problems[0].reason}{more}")
        self.problems = tuple(problems)


def require(document: Document, kind: str) -> Document:
    """Return ``document``. Raises ``NotConforming`` where it breaks the contract of ``kind``."""
    problems = check_document(document, kind)
    if problems:
        raise NotConforming(problems)
    return document


def check_document(document: Document, kind: str) -> list[Problem]:
    """Return what is wrong with a document of ``kind``, ``evaluation`` or ``ablation``; an empty list means valid."""
    from receipt_cli.documents.validate import validate_document

    if document.get("schema_version") != f"{kind}/1.0":
        return [Problem("/schema_version", f"is not {kind}/1.0")]
    return [Problem(found.pointer, found.reason) for found in validate_document(document) if found.severity == "error"]
