"""``receipt ci``: the verdict on a run, where a CI system wants it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from receipt_cli.cli.judging import run_ci
from receipt_cli.cli.options import Color, Json


def ci(
    file: Annotated[str, typer.Argument(help="The run's receipt or log; - for stdin.", metavar="FILE")],
    baseline: Annotated[
        list[str] | None, typer.Option(help="Receipt or log to compare with; several are repeats of one run.", metavar="FILE")
    ] = None,
    gates: Annotated[Path | None, typer.Option(help="YAML: what the run must prove; without it, health.", metavar="FILE")] = None,
    policy: Annotated[Path | None, typer.Option(help="YAML: what runs must share to compare.", metavar="FILE")] = None,
    allow_truncated: Annotated[
        bool, typer.Option("--allow-truncated", help="Pass a log that stops before its run ends: the run may go on.")
    ] = False,
    exit_code: Annotated[int | None, typer.Option(help="The exit code of the training command (for a log).")] = None,
    log: Annotated[
        str | None, typer.Option(help="Where a receipt's log is: it gives findings lines and changes intervals.", metavar="PATH")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the receipt to this file.")] = None,
    summary: Annotated[Path | None, typer.Option(help="Markdown page; default: $GITHUB_STEP_SUMMARY if set.")] = None,
    junit: Annotated[Path | None, typer.Option(help="JUnit XML: a test case for each check and gate.")] = None,
    sarif: Annotated[Path | None, typer.Option(help="SARIF 2.1.0: failures and problems with their lines.")] = None,
    dotenv: Annotated[Path | None, typer.Option(help="RECEIPT_NAME=value lines for later jobs.")] = None,
    annotations: Annotated[
        bool | None, typer.Option("--annotations/--no-annotations", help="Print GitHub annotations; default: on GitHub.")
    ] = None,
    json_output: Json = False,
    color: Color = "auto",
) -> None:
    """Judge a run by its checks and by gates of your own, and report it to the CI system.

    Exits 0 when it passes, 1 when a required check or a gate fails. On GitHub the job's page, annotations and outputs are
    written unasked; JUnit, SARIF and dotenv files serve other systems.
    """
    run_ci(**locals())
