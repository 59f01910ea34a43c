"""What ``receipt check`` does, once its command line is read; loads no typer."""

from __future__ import annotations

import os
import sys
from typing import Any

from receipt_cli.cli.output import progress, write_json, write_stdout
from receipt_cli.errors import ExitCode


def run_check(file: str, *, exit_code: int | None = None, proven: bool = False, json_output: bool = False) -> None:
    """Tell whether the run of ``file`` is healthy; the options are those of ``cli.check``. Raises ``ReceiptError``."""
    from receipt_cli.analysis.checks import CORE, healthy
    from receipt_cli.analysis.checks import proven as is_proven
    from receipt_cli.receipts.open import read_given

    document, _ = read_given(file, environ=dict(os.environ), exit_code=exit_code, progress=progress)
    checks: dict[str, Any] = document["checks"]
    failure = document.get("failure") or {}
    good = is_proven(checks) if proven else healthy(checks)
    if json_output:
        write_json(
            {"healthy": healthy(checks), "proven": is_proven(checks), "checks": checks, "reason": failure.get("reason")}
        )
    else:
        words = {True: "true", False: "false", None: "unknown"}
        told = " ".join(f"{name}={words[checks.get(name)]}" for name in CORE)
        reason = f" reason={failure['reason']}" if failure else ""
        verdict = ("proven" if proven else "healthy") if good else ("not proven" if proven else "not healthy")
        write_stdout(f"{verdict}: {told}{reason}\n")
    if not good:
        sys.exit(ExitCode.NO)
