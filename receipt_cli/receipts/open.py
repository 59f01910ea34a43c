"""What a command was given: a receipt, or a log that gives one."""

from __future__ import annotations

import json
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from receipt_cli.errors import InputError, UsageError
from receipt_cli.io.source import Progress

if TYPE_CHECKING:
    from collections.abc import Callable
    from io import BufferedReader

    from receipt_cli.receipts.production import Product

MAX_DOCUMENT = 64 * 1024 * 1024
"""A larger file is a log, whatever it starts with."""


def read_given(
    file: str,
    *,
    environ: dict[str, str],
    exit_code: int | None = None,
    progress: Callable[[str], AbstractContextManager[Progress | None]],
    masked: bool = True,
    workers: int | None = None,
) -> tuple[dict[str, Any], Product | None]:
    """Return the valid receipt that ``file`` is, or that its log gives, then with what else the log gave.

    ``-`` is stdin; ``progress`` shows how far the reading of a log is; ``workers`` scan it, by default as many as pay. Unless
    ``masked`` is False, a receipt is given with what looks like a secret masked: whoever wrote it may have masked less. Raises
    ``ReceiptError``.
    """
    from receipt_cli.documents.validate import has_errors, validate_bytes
    from receipt_cli.receipts.production import Request, produce
    from receipt_cli.redaction.text import mask_texts
    from receipt_cli.scan.workers import AUTO

    data = _document(file)
    if data is None:
        with progress(file) as bar:
            product = produce(Request(path=file, exit_code=exit_code, workers=workers or AUTO, progress=bar, environ=environ))
        return product.document, product
    if exit_code is not None:
        raise UsageError("--exit-code goes with a log; a receipt has its own", where=file)
    if has_errors(validate_bytes(data, file)):
        raise InputError("is not a valid receipt", where=file, try_=f"receipt validate {file}")
    found: dict[str, Any] = json.loads(data)
    if not found["schema_version"].startswith("receipt/"):
        raise InputError(f"is a document of another kind: {found['schema_version']}", where=file)
    return mask_texts(found) if masked else found, None


def _document(file: str) -> bytes | None:
    """Return the bytes of ``file`` where it is a document, None where it must be a log."""
    if file == "-":
        if sys.stdin is None or b'"schema_version"' not in _peek():
            return None
        return sys.stdin.buffer.read()
    path = Path(file)
    if not path.is_file():
        return None
    try:
        with path.open("rb") as stream:
            if not stream.read(512).lstrip().startswith(b"{"):
                return None
            stream.seek(0)
            data = stream.read(MAX_DOCUMENT + 1)
    except OSError as error:
        raise InputError("cannot read", where=file, why=error.strerror or str(error)) from error
    if len(data) > MAX_DOCUMENT:
        return None
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(document, dict) and "schema_version" in document else None


def _peek() -> bytes:
    """Return what stands first on stdin, where that is the start of an object, without taking it."""
    head = cast("BufferedReader", sys.stdin.buffer).peek(512)
    return head[:512] if head.lstrip().startswith(b"{") else b""
