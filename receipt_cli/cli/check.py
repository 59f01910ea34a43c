"""``receipt check``: is this run healthy? For scripts and CI."""

from __future__ import annotations

from typing import Annotated

import typer

from receipt_cli.cli.checking import run_check
from receipt_cli.cli.options import Json


def check(
    file: Annotated[str, typer.Argument(help="A receipt or a log; - for stdin.", metavar="FILE")],
    exit_code: Annotated[int | None, typer.Option(help="The exit code of the training command (for a log).")] = None,
    proven: Annotated[bool, typer.Option("--proven", help="Demand that all four core checks are proven true.")] = False,
    allow_truncated: Annotated[
        bool, typer.Option("--allow-truncated", help="Pass a log that stops before its run ends: the run may go on.")
    ] = False,
    json_output: Json = False,
) -> None:
    """Exit 0 when the run is healthy, 1 when it is not.

    Healthy: none of finite_losses, zero_exit_code, has_steps, no_oom is false, has_steps is true, and nothing says that the
    run failed. A log that stops before its run ends is truncated, which is not healthy.
    """
    run_check(**locals())
