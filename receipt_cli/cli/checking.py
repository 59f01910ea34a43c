"""What ``receipt check`` does, once its command line is read; loads no typer."""

from __future__ import annotations

import os
import sys
from typing import Any

from receipt_cli.cli.output import progress, write_json, write_stdout
from receipt_cli.errors import ExitCode


def run_check(
    file: str, *, exit_code: int | None = None, proven: bool = False, allow_truncated: bool = False, json_output: bool = False
) -> None:
    """Tell whether the run of ``file`` is healthy; the options are those of ``cli.check``. Raises ``ReceiptError``."""
    from receipt_cli.analysis.checks import CORE, healthy, verdict
    from receipt_cli.analysis.checks import proven as is_proven
    from receipt_cli.receipts.open import read_given

    document, _ = read_given(file, environ=dict(os.environ), exit_code=exit_code, progress=progress)
    checks: dict[str, Any] = document["checks"]
    failure = document["failure"]
    fine = healthy(checks, failure, allow_truncated=allow_truncated)
    good = fine and (is_proven(checks) or not proven)
    if json_output:
        write_json({"healthy": fine, "proven": is_proven(checks), "checks": checks, "reason": failure and failure["reason"]})
    else:
        words = {True: "true", False: "false", None: "unknown"}
        told = " ".join(f"{name}={words[checks.get(name)]}" for name in CORE)
        reason = f" reason={failure['reason']}" if failure else ""
        state = verdict(checks, failure)
        word = ("proven" if proven else "healthy") if good else "not proven" if proven and fine else state.partition(",")[0]
        write_stdout(f"{word}: {told}{reason}\n")
    if not good:
        sys.exit(ExitCode.NO)
