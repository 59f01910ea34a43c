"""``receipt check``: is this run healthy? For scripts and CI."""

from __future__ import annotations

import os
import sys
from typing import Annotated

from receipt_cli.cli.output import progress, write_json, write_stdout
from receipt_cli.cli.parameters import Argument, Json, Option
from receipt_cli.errors import ExitCode


def check(
    file: Annotated[str, Argument("FILE", "A receipt or a log; - for stdin.")],
    exit_code: Annotated[int | None, Option(help="The exit code of the training command (for a log).")] = None,
    proven: Annotated[bool, Option(help="Require all four core checks to be proven.")] = False,
    json_output: Json = False,
) -> None:
    """Exit 0 when the run is healthy, 1 when it is not.

    Healthy: none of finite_losses, zero_exit_code, has_steps, no_oom is false, and has_steps is true.
    """
    from receipt_cli.analysis.checks import CORE, healthy
    from receipt_cli.analysis.checks import proven as is_proven
    from receipt_cli.receipts.open import read_given

    document, _ = read_given(file, environ=dict(os.environ), exit_code=exit_code, progress=progress)
    checks = document["checks"]
    failure = document.get("failure") or {}
    good = is_proven(checks) if proven else healthy(checks)
    if json_output:
        verdicts = {"healthy": healthy(checks), "proven": is_proven(checks)}
        write_json({**verdicts, "checks": checks, "reason": failure.get("reason")})
    else:
        words = {True: "true", False: "false", None: "unknown"}
        shown = " ".join(f"{name}={words[checks.get(name)]}" for name in CORE)
        reason = f" reason={failure['reason']}" if failure else ""
        write_stdout(f"{'' if good else 'not '}{'proven' if proven else 'healthy'}: {shown}{reason}\n")
    if not good:
        sys.exit(ExitCode.NO)
