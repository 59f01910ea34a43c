"""``receipt plot``: the curves of a run, or of several over one another, in the terminal."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from receipt_cli.cli.output import note, progress, style, write_stdout
from receipt_cli.cli.parameters import Argument, Option
from receipt_cli.cli.runs import InStore, log_or_receipt
from receipt_cli.comparison.load import short_names
from receipt_cli.errors import UsageError
from receipt_cli.receipts.production import read_given
from receipt_cli.render.plot import MOST_RUNS, render_curves, render_overlay, render_ranges
from receipt_cli.report.curves import choose, overlaid, plotted

Align = Literal["step", "tokens", "samples", "time"]


def plot(
    files: Annotated[
        list[str],
        Argument("RECEIPT|LOG|RUN...", "Logs, or receipts, which have no curves; - is stdin; or runs of the store."),
    ],
    metric: Annotated[
        list[str] | None,
        Option("-m", "--metric", metavar="NAME", help="A metric to draw; may be given several times.", completes="metric"),
    ] = None,
    height: Annotated[int, Option(least=3, most=60, help="Lines of each curve.")] = 10,
    align: Annotated[Align, Option(help="What the horizontal axis counts.")] = "step",
    store: InStore = None,
) -> None:
    """Draw the curves of a log: by default loss, gradient norm and throughput.

    Several runs are drawn over one another, each with a letter or, on a terminal, a colour. For a single receipt (no per-step
    records), draws the range of each metric.

    Example: receipt plot a.log b.log --metric loss --align tokens
    """
    if len(files) > 1:
        _overlay(files, metric or [], height, align, store)
        return

    document, product = read_given(log_or_receipt(files[0], store), environ=dict(os.environ), progress=progress)
    names = choose([document], metric or [])
    if product is None:
        note(["a receipt has statistics, not records: these are the ranges; plot the log for its curves"])
        write_stdout(render_ranges(document["summary"]["metrics"], names, style()))
    else:
        note(product.notes)
        write_stdout(render_curves(plotted(product, names, align), height, style(), align))


def _overlay(files: Sequence[str], metrics: Sequence[str], height: int, align: Align, store: Path | None) -> None:
    if len(files) > MOST_RUNS:
        raise UsageError(f"{len(files)} runs are too many for one plot", why=f"at most {MOST_RUNS}", try_="receipt report")
    if files.count("-") > 1:
        raise UsageError("- can be given once")
    given = [read_given(log_or_receipt(file, store), environ=dict(os.environ), progress=progress) for file in files]
    names = choose([document for document, _ in given], metrics)
    note(dict.fromkeys(text for _, product in given if product is not None for text in product.notes))
    called = zip(short_names(files), given, strict=True)
    runs = [overlaid(name, document, product, names, align) for name, (document, product) in called]
    write_stdout(render_overlay(runs, names, height, style(), align))
