"""``receipt check``: is this run healthy? For scripts and CI."""

from __future__ import annotations

import os
import sys
from typing import Annotated

from receipt_cli.cli.output import progress, write_json, write_stdout
from receipt_cli.cli.parameters import AllowTruncated, Argument, Json, Option
from receipt_cli.errors import ExitCode


def check(
    file: Annotated[str, Argument("FILE", "A receipt or a log; - for stdin.")],
    exit_code: Annotated[int | None, Option(help="The exit code of the training command (for a log).")] = None,
    proven: Annotated[bool, Option(help="Require all four core checks to be proven.")] = False,
    allow_truncated: AllowTruncated = False,
    json_output: Json = False,
) -> None:
    """Exit 0 when the run is healthy, 1 when it is not.

    Healthy: none of finite_losses, zero_exit_code, has_steps, no_oom is false, has_steps is true, and nothing says that the
    run failed. A log that stops before its run ends is truncated, which is not healthy.

    Example: receipt check run.receipt.json
    """
    from receipt_cli.analysis.checks import CORE, healthy, verdict
    from receipt_cli.analysis.checks import proven as is_proven
    from receipt_cli.receipts.open import read_given

    document, _ = read_given(file, environ=dict(os.environ), exit_code=exit_code, progress=progress)
    checks = document["checks"]
    failure = document["failure"]
    fine = healthy(checks, failure, allow_truncated=allow_truncated)
    good = fine and (is_proven(checks) or not proven)
    if json_output:
        verdicts = {"healthy": fine, "proven": is_proven(checks)}
        write_json({**verdicts, "checks": checks, "reason": failure and failure["reason"]})
    else:
        words = {True: "true", False: "false", None: "unknown"}
        shown = " ".join(f"{name}={words[checks.get(name)]}" for name in CORE)
        reason = f" reason={failure['reason']}" if failure else ""
        state = verdict(checks, failure).partition(",")[0]
        word = ("proven" if proven else "healthy") if good else "not proven" if proven and fine else state
        write_stdout(f"{word}: {shown}{reason}\n")
    if not good:
        sys.exit(ExitCode.NO)
