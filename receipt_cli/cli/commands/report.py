"""``receipt report``: the runs of a store as one HTML file; also the page of ``receipt parse --html``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from receipt_cli.cli.output import note_some, print_line, read_policy
from receipt_cli.cli.parameters import Option, Output, Policy, StoreFolder, Was
from receipt_cli.definitions.metrics import load_registry
from receipt_cli.io.atomic import write_atomically
from receipt_cli.receipts.production import Product
from receipt_cli.render.scale import many
from receipt_cli.report.curves import SeriesFolder, product_curves
from receipt_cli.report.data import one_run_report, render_page, store_report
from receipt_cli.store.documents import read_receipts
from receipt_cli.store.files import Store
from receipt_cli.store.listing import list_documents


def report(
    store: StoreFolder,
    output: Annotated[Path, Output("File to write.")],
    title: Annotated[str, Option(help="Title of the report.")] = "Training runs",
    series: Annotated[
        Path | None,
        Option(
            "--series-from",
            metavar="FOLDER",
            help="Folder of files that --series wrote, for curves; default: STORE/series.",
        ),
        Was("series"),
    ] = None,
    policy: Policy = None,
) -> None:
    """Write a report of all runs of a store: one HTML file that needs no network and no server.

    Losses, throughput, time in steps, memory and checks over time, curves of chosen runs in one chart, what changed in each
    lane and why, failures by message, what varies, cost, signs that a format changed, and a page for every run and every
    other document. The output is deterministic.

    Example: receipt report runs/ -o report.html
    """
    kept, notes = Store(store), list[str]()
    kept.check_exists()
    folder = series or (store / "series" if (store / "series").is_dir() else None)
    curves = SeriesFolder(folder, notes.append) if folder is not None else None
    others = list_documents(store)
    notes += [f"{row['path']} is skipped: {row['refusal']}" for row in others if row["refusal"] is not None]
    found = store_report(
        read_receipts(kept, notes.append, excluded=False),
        read_policy(policy),
        load_registry(),
        title=title,
        quarantined=list(kept.quarantined()),
        series=curves,
        documents=others,
    )
    page = render_page(found)
    write_atomically(output, page)
    left_out, undrawn = found["left_out"]
    if left_out:
        notes.append(f"the pages of the {left_out} oldest runs are short: the report is bounded")
    if undrawn:
        notes.append(f"the curves of the {undrawn} oldest runs are left out: the report is bounded")
    note_some(notes)
    print_line(f"{output}: {many(len(found['details']), 'run')}, {len(page) / 1e6:.1f} MB")


def write_run_page(product: Product, output: Path, log: str | None = None) -> None:
    """Write the page of one run, with the curves of its ``log``. Raises ``ReceiptError``."""
    unread = () if product.derivation.detection.chosen else product.derivation.metric_lines
    found = one_run_report(product.document, load_registry(), product_curves(product), unread, log)
    write_atomically(output, render_page(found))
