"""What ``receipt check`` does, once its command line is read; loads no typer."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from receipt_cli.cli.output import progress, write_json, write_stdout
from receipt_cli.errors import ExitCode, InputError, UsageError

if TYPE_CHECKING:
    from io import BufferedReader

MAX_DOCUMENT = 64 * 1024 * 1024
"""A larger file is a log, whatever it starts with."""


def run_check(file: str, *, exit_code: int | None = None, proven: bool = False, json_output: bool = False) -> None:
    """Tell whether the run of ``file`` is healthy; the options are those of ``cli.check``. Raises ``ReceiptError``."""
    from receipt_cli import checks as rules

    document = _document(file, exit_code)
    checks: dict[str, Any] = document["checks"]
    failure = document.get("failure") or {}
    good = rules.proven(checks) if proven else rules.healthy(checks)
    if json_output:
        write_json(
            {"healthy": rules.healthy(checks), "proven": rules.proven(checks), "checks": checks, "reason": failure.get("reason")}
        )
    else:
        words = {True: "true", False: "false", None: "unknown"}
        told = " ".join(f"{name}={words[checks.get(name)]}" for name in rules.CORE)
        reason = f" reason={failure['reason']}" if failure else ""
        verdict = ("proven" if proven else "healthy") if good else ("not proven" if proven else "not healthy")
        write_stdout(f"{verdict}: {told}{reason}\n")
    if not good:
        sys.exit(ExitCode.NO)


def _document(file: str, exit_code: int | None) -> dict[str, Any]:
    """Return the valid receipt that ``file`` is, or that its log gives."""
    from receipt_cli.parallel import AUTO
    from receipt_cli.produce import Request, produce
    from receipt_cli.validate import has_errors, validate_bytes

    data = _receipt(file)
    if data is None:
        with progress(file) as bar:
            request = Request(path=file, exit_code=exit_code, workers=AUTO, progress=bar, environ=dict(os.environ))
            return produce(request).document
    if exit_code is not None:
        raise UsageError("--exit-code goes with a log; a receipt has its own", where=file)
    if has_errors(validate_bytes(data, file)):
        raise InputError("is not a valid receipt", where=file, try_=f"receipt validate {file}")
    found: dict[str, Any] = json.loads(data)
    if not found["schema_version"].startswith("receipt/"):
        raise InputError(f"is a document of another kind: {found['schema_version']}", where=file)
    return found


def _receipt(file: str) -> bytes | None:
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
