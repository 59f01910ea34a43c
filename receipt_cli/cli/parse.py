"""``receipt parse``: a log in, a receipt out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from receipt_cli.cli.options import Color, GrammarOption, Json
from receipt_cli.cli.parsing import run_parse

Logs = Annotated[
    list[str],
    typer.Argument(
        help="The log: a file (also .gz .zst .xz .bz2), or - for stdin; or all files of one run, or their folder.",
        metavar="LOG",
    ),
]


def parse(
    logs: Logs,
    json_output: Json = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the receipt to this file; with --all-runs, the receipts to this folder."),
    ] = None,
    series: Annotated[
        Path | None,
        typer.Option("--series", help="Write each record to this Parquet file; with --all-runs, the runs' files to this folder."),
    ] = None,
    html: Annotated[
        Path | None, typer.Option("--html", help="Write a page of the run, with its curves, to this HTML file.")
    ] = None,
    all_runs: Annotated[
        bool,
        typer.Option("--all-runs", help="A receipt of every run in the log, not of the last alone; --json gives JSON lines."),
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow", help="Read a log that still grows, or a pipe, until the job is over; Ctrl-C ends it.")
    ] = False,
    idle: Annotated[
        int | None, typer.Option(min=1, metavar="SECONDS", help="With --follow: the job is over after so long without output.")
    ] = None,
    pid: Annotated[int | None, typer.Option(min=1, help="With --follow: the job is over once this process has exited.")] = None,
    grammar: GrammarOption = None,
    exit_code: Annotated[int | None, typer.Option(help="The exit code of the training command.")] = None,
    wall: Annotated[
        str | None,
        typer.Option(
            metavar="TIME|FILE", help="Wall time of the job: 3h10m, seconds, or a wandb-summary.json, report.md or receipt."
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the run.")] = None,
    lane: Annotated[str | None, typer.Option(help="Line of comparable runs (hardware and recipe).")] = None,
    preset: Annotated[str | None, typer.Option(help="Name of the recipe.")] = None,
    attach: Annotated[list[str] | None, typer.Option(metavar="KIND=URI", help="A heavy artefact, by reference.")] = None,
    header: Annotated[Path | None, typer.Option(help="Header file that `receipt header` wrote at job start.")] = None,
    here: Annotated[bool, typer.Option("--here", help="This machine and this .git are the run's: record them.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 on any problem, near-miss or absence of steps.")] = False,
    workers: Annotated[int | None, typer.Option(min=1, max=256, help="Processes that scan; by default as many as pay.")] = None,
    color: Color = "auto",
) -> None:
    """Turn a training log into a receipt.

    Prints a summary; --json prints the receipt itself, -o writes it to a file. Several files, such as rank*.log or a
    folder, are the ranks and the rotated parts of one run. Of several runs in one log the last is taken. Exits 0 also
    for the receipt of a run that failed; 2 for files of several runs; 3 for a log that cannot be read; 4 when no grammar
    recognises it, or two do.
    """
    run_parse(**locals())
