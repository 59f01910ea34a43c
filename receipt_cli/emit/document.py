"""Common parts of documents that a job writes: run, header, attachments, statistics, and the file."""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from receipt_cli import __version__

Document = dict[str, Any]
RUN_KEYS = ("name", "lane", "preset", "started_at", "finished_at", "exit_code")
PRODUCER = "receipt_cli.emit"


def run_block(run: Mapping[str, Any]) -> Document:
    """Return the ``run`` block; missing keys are null. Raises ``ValueError`` for an unknown key."""
    unknown = sorted(run.keys() - set(RUN_KEYS))
    if unknown:
        raise ValueError(f"run has no {unknown[0]!r}; it has {', '.join(RUN_KEYS)}")
    return {key: run.get(key) for key in RUN_KEYS}


def header_block(header: Mapping[str, Any] | None) -> Document:
    """Return a complete ``header`` block: ``header`` (from the document of ``receipt header``), or an empty one."""
    if header is not None:
        return dict(header)
    from receipt_cli.header.document import empty_header

    return empty_header()


def attachment(kind: str, uri: str) -> Document:
    """Return an attachment, with digest and size in bytes if ``uri`` is a readable file."""
    digest, size = None, None
    if "://" not in uri:
        import hashlib

        with contextlib.suppress(OSError), open(uri, "rb") as file:
            digest, size = hashlib.file_digest(file, "sha256").hexdigest(), file.tell()
    return {"kind": kind, "uri": uri, "sha256": digest, "size_bytes": size}


def producer_block() -> Document:
    """Return the program that wrote the document."""
    return {"name": PRODUCER, "version": __version__}


def rfc3339(seconds: float) -> str:
    """Return a time in seconds since 1970 as RFC 3339 in UTC with milliseconds."""
    whole = math.floor(seconds)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(whole))}.{int((seconds - whole) * 1000):03d}Z"


def figures(values: Iterable[float | None]) -> Document:
    """Return the statistics of a curve; None is a step without a value; NaN and infinities are counted and left out."""
    from receipt_cli.documents.invariants.rule import column_figures

    known = [value for value in values if value is not None]
    finite = [value for value in known if math.isfinite(value)]
    ends = {"first": finite_or_none(known[0]), "last": finite_or_none(known[-1])} if known else {}
    return {"record_count": len(known), "nonfinite_count": len(known) - len(finite), **column_figures(finite), **ends}


def finite_or_none(value: float | None) -> float | None:
    """Return ``value`` for JSON: None for NaN and infinities."""
    return value if value is not None and math.isfinite(value) else None


def write_document(path: str | os.PathLike[str], document: Document) -> None:
    """Write ``document`` to ``path`` atomically. Raises ``OutputError``."""
    from pathlib import Path

    from receipt_cli.documents.canonical import canonical_bytes
    from receipt_cli.io.atomic import write_atomically

    write_atomically(Path(path), canonical_bytes(document))


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
