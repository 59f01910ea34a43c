"""``receipt plot``: the curves of a run, in the terminal."""

from __future__ import annotations

import os
from typing import Annotated

from receipt_cli.cli.output import note, progress, style, write_stdout
from receipt_cli.cli.parameters import Argument, Color, Option
from receipt_cli.cli.runs import InStore, log_or_receipt


def plot(
    file: Annotated[
        str, Argument("RECEIPT|LOG|RUN", "A log, or a receipt, which has no curves; - is stdin; or a run of the store.")
    ],
    metric: Annotated[
        list[str] | None,
        Option("-m", "--metric", metavar="NAME", help="A metric to draw; may be given several times.", completes="metric"),
    ] = None,
    height: Annotated[int, Option(least=3, most=60, help="Lines of each curve.")] = 10,
    store: InStore = None,
    color: Color = "auto",
) -> None:
    """Draw the curves of a log: by default loss, gradient norm and throughput.

    For a receipt (no per-step records), draws the range of each metric.

    Example: receipt plot run.log --metric loss
    """
    from receipt_cli.receipts.open import read_given
    from receipt_cli.render.plot import render_curves, render_ranges
    from receipt_cli.report.plot_data import choose, plotted

    document, product = read_given(log_or_receipt(file, store), environ=dict(os.environ), progress=progress)
    names = choose(document, metric or [])
    if product is None:
        note(["a receipt has statistics, not records: these are the ranges; plot the log for its curves"])
        write_stdout(render_ranges(document["summary"]["metrics"], names, style(color)))
    else:
        note(product.notes)
        write_stdout(render_curves(plotted(product, names), height, style(color)))
