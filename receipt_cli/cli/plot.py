"""``receipt plot``: the curves of a run, in the terminal."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from receipt_cli.cli.options import Color
from receipt_cli.cli.output import note, progress, style, write_stdout


def plot(
    file: Annotated[str, typer.Argument(help="A log, or a receipt, which has no curves; - is stdin.", metavar="RECEIPT|LOG")],
    metric: Annotated[
        list[str] | None, typer.Option("--metric", "-m", help="A metric to draw; more than once for several.", metavar="NAME")
    ] = None,
    height: Annotated[int, typer.Option(min=3, max=60, help="Lines of each curve.")] = 10,
    color: Color = "auto",
) -> None:
    """Draw the curves of a log: by default loss, gradient norm and throughput.

    A receipt keeps statistics and no records: of one, the range of each metric is drawn.
    """
    from receipt_cli.receipts.open import read_given
    from receipt_cli.render.plot import render_curves, render_ranges
    from receipt_cli.report.plot_data import choose, plotted

    document, product = read_given(file, environ=dict(os.environ), progress=progress)
    names = choose(document, metric or [])
    if product is None:
        note(["a receipt keeps statistics, not records: the range of each metric; plot the log for its curves"])
        write_stdout(render_ranges(document["summary"]["metrics"], names, style(color)))
    else:
        note(product.notes)
        write_stdout(render_curves(plotted(product, names), height, style(color)))
