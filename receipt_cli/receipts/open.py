"""Open the file argument of a command: a receipt, or a log to derive one from."""

from __future__ import annotations

import json
import sys
from codecs import BOM_UTF8
from collections.abc import Callable
from contextlib import AbstractContextManager
from io import BufferedReader
from pathlib import Path
from typing import Any, cast

from receipt_cli.documents.validate import has_errors, validate_bytes
from receipt_cli.errors import InputError, UsageError, system_errors
from receipt_cli.io.source import Progress
from receipt_cli.receipts.production import Product, Request, produce
from receipt_cli.redaction.text import mask_texts
from receipt_cli.scan.workers import AUTO

MAX_DOCUMENT = 64 * 1024 * 1024
"""Largest receipt in bytes; a larger file is a log."""


def read_given(
    file: str,
    *,
    environ: dict[str, str],
    exit_code: int | None = None,
    progress: Callable[[str], AbstractContextManager[Progress | None]],
    masked: bool = True,
    workers: int | None = None,
) -> tuple[dict[str, Any], Product | None]:
    """Return (the valid receipt in ``file``, None), or the receipt of the log in ``file`` and its ``Product``.

    ``-`` is stdin; ``progress`` shows the progress of reading a log; ``workers`` is the number of scanning processes (None:
    automatic). If ``masked``, secrets in a receipt are masked again: its writer may have masked less. Raises ``ReceiptError``.
    """
    data = _document(file)
    if data is None:
        with progress(file) as bar:
            product = produce(Request(path=file, exit_code=exit_code, workers=workers or AUTO, progress=bar, environ=environ))
        return product.document, product
    if exit_code is not None:
        raise UsageError("--job-exit needs a log; a receipt already has an exit code", where=file)
    if has_errors(validate_bytes(data, file)):
        raise InputError("is not a valid receipt", where=file, try_=f"receipt schema check {file}")
    document: dict[str, Any] = json.loads(data)
    if not document["schema_version"].startswith("receipt/"):
        raise InputError(f"is not a receipt but {document['schema_version']}", where=file)
    return mask_texts(document) if masked else document, None


def _document(file: str) -> bytes | None:
    """Return the bytes of ``file`` if it is a document, None for a log."""
    if file == "-":
        if sys.stdin is None or b'"schema_version"' not in _peek():
            return None
        return sys.stdin.buffer.read()
    path = Path(file)
    if not path.is_file():
        return None
    with system_errors(InputError, "cannot read", file), path.open("rb") as stream:
        if not stream.read(512).removeprefix(BOM_UTF8).lstrip().startswith(b"{"):  # a BOM or blanks may precede it
            return None
        stream.seek(0)
        data = stream.read(MAX_DOCUMENT + 1)
    if len(data) > MAX_DOCUMENT:
        return None
    try:
        document = json.loads(data.removeprefix(BOM_UTF8))
    except (ValueError, RecursionError):
        return None
    return data if isinstance(document, dict) and "schema_version" in document else None


def _peek() -> bytes:
    """Return the first bytes of stdin, without consuming them, if they begin a JSON object, else b""."""
    head = cast("BufferedReader", sys.stdin.buffer).peek(512)
    return head[:512] if head.removeprefix(BOM_UTF8).lstrip().startswith(b"{") else b""
