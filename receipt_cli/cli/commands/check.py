"""``receipt check``: is this run healthy? For scripts and CI."""

from __future__ import annotations

import os
import sys
from typing import Annotated

from receipt_cli.analysis.checks import CORE, UNKNOWN, healthy, verdict
from receipt_cli.analysis.checks import proven as is_proven
from receipt_cli.cli.output import progress, write_json, write_stdout
from receipt_cli.cli.parameters import AllowTruncated, Argument, Json, Option
from receipt_cli.errors import ExitCode, GrammarChoiceError
from receipt_cli.receipts.open import read_given


def check(
    file: Annotated[str, Argument("FILE", "A receipt or a log; - for stdin.")],
    exit_code: Annotated[int | None, Option(help="The exit code of the training command (for a log).")] = None,
    proven: Annotated[bool, Option("--proven", help="Require all four core checks to be proven.")] = False,
    allow_unknown: Annotated[
        bool, Option("--allow-unknown", help="Pass a log in which no step line was recognised and nothing failed.")
    ] = False,
    allow_truncated: AllowTruncated = False,
    json_output: Json = False,
) -> None:
    """Exit 0 when the run is healthy, 1 when it is not, 4 when no step line was recognised and nothing failed.

    Healthy: none of finite_losses, zero_exit_code, has_steps, no_oom is false, has_steps is true, and nothing says that the
    run failed. A log that stops before its run ends is truncated, which is not healthy. Where steps were read and the log
    does not show how the run ended, the first word is unknown, and the exit code 0.

    Example: receipt check run.receipt.json
    """
    document, _ = read_given(file, environ=dict(os.environ), exit_code=exit_code, progress=progress)
    checks = document["checks"]
    failure = document["failure"]
    fine = healthy(checks, failure, allow_truncated=allow_truncated)
    good = fine is not False and (is_proven(checks) or not proven)
    if json_output:
        verdicts = {"healthy": fine is True, "proven": is_proven(checks)}
        write_json({**verdicts, "checks": checks, "reason": failure and failure["reason"]})
    else:
        words = {True: "true", False: "false", None: "unknown"}
        shown = " ".join(f"{name}={words[checks.get(name)]}" for name in CORE)
        reason = f" reason={failure['reason']}" if failure else ""
        state = verdict(checks, failure).partition(",")[0]
        told = UNKNOWN if state == UNKNOWN else "proven" if proven else "healthy"
        word = told if good else "not proven" if proven and fine else state
        write_stdout(f"{word}: {shown}{reason}\n")
    if fine is None and not allow_unknown:
        why = "without a step line the log shows neither that the run is healthy nor that it is not"
        try_ = "receipt parse shows what was not read; --allow-unknown passes such a log"
        raise GrammarChoiceError("cannot judge the run: no step line was recognised", where=file, why=why, try_=try_)
    if not good:
        sys.exit(ExitCode.NO)
