"""``receipt report``: the runs of a store as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from receipt_cli.cli.reporting import run_report


def report(
    store: Annotated[Path, typer.Argument(help="A store of receipts.", metavar="STORE")],
    output: Annotated[Path, typer.Option("--output", "-o", help="File to write.", metavar="FILE")],
    title: Annotated[str, typer.Option(help="Title of the report.")] = "Training runs",
    series: Annotated[
        Path | None,
        typer.Option(help="Folder of files that parse --series wrote, for curves; STORE/series where it exists.", metavar="DIR"),
    ] = None,
    policy: Annotated[Path | None, typer.Option(help="YAML: which fields matter, as for compare.", metavar="FILE")] = None,
) -> None:
    """Write a report of all runs of a store: one HTML file that needs no network and no server.

    Throughput, goodput, memory and checks over time, what changed in each lane and why, failures, signs of drift,
    and a page for every run. The same store gives the same bytes.
    """
    run_report(store, output, title=title, series=series, policy=policy)
