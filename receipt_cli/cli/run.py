"""``receipt run``: a command as it would run alone, and its receipt when it ends."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from receipt_cli.cli.options import GrammarOption
from receipt_cli.cli.running import run_command


def run(
    command: Annotated[
        list[str], typer.Argument(metavar="COMMAND", help="The training command with its arguments; -- before it is optional.")
    ],
    output: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="The receipt; by default <log's stem>.receipt.json.")
    ] = None,
    log: Annotated[
        Path | None, typer.Option("--log", metavar="FILE", help="The log; by default <name>-<UTC time>.log in this directory.")
    ] = None,
    append: Annotated[bool, typer.Option("--append", help="The log may exist: go on at its end, as another launch.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a log and a receipt that exist.")] = False,
    grammar: GrammarOption = None,
    name: Annotated[str | None, typer.Option(help="Name of the run.")] = None,
    lane: Annotated[str | None, typer.Option(help="Line of comparable runs (hardware and recipe).")] = None,
    preset: Annotated[str | None, typer.Option(help="Name of the recipe.")] = None,
    attach: Annotated[
        list[str] | None, typer.Option(metavar="KIND=URI", help="A heavy artefact, by reference; read at the end.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing after the run unless something failed.")] = False,
) -> None:
    """Run a training command unchanged; keep its output, and write its receipt when it ends.

    The header (git, GPUs, packages, host) is written before the command starts, the log while it runs, the receipt when
    it ends, however it does. Output and signals are passed on as they are; the exit status is the command's own, 127 or
    126 where it cannot be started.
    """
    run_command(**locals())
