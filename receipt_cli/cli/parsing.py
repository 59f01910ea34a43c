"""What ``receipt parse`` does, once its command line is read; loads no typer."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from receipt_cli.cli.output import ColorChoice, note, progress, style, write_stdout
from receipt_cli.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from receipt_cli.analysis.goodput.model import Wall
    from receipt_cli.receipts.production import Product


def run_parse(
    logs: Sequence[str],
    *,
    json_output: bool = False,
    output: Path | None = None,
    series: Path | None = None,
    html: Path | None = None,
    all_runs: bool = False,
    follow: bool = False,
    idle: int | None = None,
    pid: int | None = None,
    grammar: str | None = None,
    exit_code: int | None = None,
    wall: str | None = None,
    name: str | None = None,
    lane: str | None = None,
    preset: str | None = None,
    attach: Sequence[str] | None = None,
    header: Path | None = None,
    here: bool = False,
    strict: bool = False,
    workers: int | None = None,
    color: ColorChoice = "auto",
) -> None:
    """Make the receipts of ``logs`` and deliver them; the options are those of ``cli.parse``. Raises ``ReceiptError``."""
    from receipt_cli.receipts.production import Request, produce, produce_all, refusal, rfc3339_now
    from receipt_cli.scan.workers import AUTO

    if html is not None and all_runs:
        raise UsageError("--html is the page of one run", why="--all-runs gives a receipt of each")
    request = Request(
        path=logs[0],
        more=tuple(logs[1:]),
        grammar=grammar,
        exit_code=exit_code,
        wall=_read_wall(wall) if wall is not None else None,
        name=name,
        lane=lane,
        preset=preset,
        attachments=tuple(attach or ()),
        header_file=header,
        here=Path.cwd() if here else None,
        workers=workers or AUTO,
        environ=dict(os.environ),
        now=rfc3339_now() if here else None,
    )
    if series is not None:
        from receipt_cli.io.duckdb import check_installed

        check_installed()
    if follow:
        from receipt_cli.cli.following import follow_log

        products = follow_log(request, every=all_runs, idle=idle, pid=pid, output=output, color=color)
    elif idle is not None or pid is not None:
        raise UsageError("--idle and --pid go with --follow")
    else:
        with progress(logs[0]) as bar:
            request = replace(request, progress=bar)
            products = list(produce_all(request)) if all_runs else [produce(request)]
    note(dict.fromkeys(text for product in products for text in product.notes))
    if all_runs:
        _deliver_all(products, json_output, output, color)
    else:
        _deliver(products[0], json_output, output, color)
    if series is not None:
        _write_series(products, series, all_runs)
    if html is not None:
        from receipt_cli.cli.reporting import write_run_page

        write_run_page(products[0], html)
    for product in products:
        error = refusal(product.derivation, logs[0])
        if error is not None:
            raise error
    if strict and not all(product.clean for product in products):
        sys.exit(ExitCode.NO)


def _read_wall(wall: str) -> Wall:
    from receipt_cli.importers.wall_time import read_wall

    return read_wall(wall)


def _deliver(product: Product, json_output: bool, output: Path | None, color: ColorChoice) -> None:
    from receipt_cli.documents.canonical import canonical_bytes

    data = canonical_bytes(product.document)
    if output is not None:
        from receipt_cli.io.atomic import write_atomically

        write_atomically(output, data)
    if json_output:
        write_stdout(data)
    elif product.derivation.detection.chosen:
        _show(product, color)


def _deliver_all(products: Sequence[Product], json_output: bool, output: Path | None, color: ColorChoice) -> None:
    """Write ``run-1.json`` and so on into ``output``, a line of JSON each to stdout, or the summaries."""
    from receipt_cli.documents.canonical import canonical_bytes, canonical_line

    if output is not None:
        from receipt_cli.io.atomic import make_folder, write_atomically

        make_folder(output)
        for path, product in zip(_numbered(output, len(products), ".json"), products, strict=True):
            write_atomically(path, canonical_bytes(product.document))
    for product in products:
        if json_output:
            write_stdout(canonical_line(product.document))
        elif product.derivation.detection.chosen:
            _show(product, color)


def _write_series(products: Sequence[Product], output: Path, all_runs: bool) -> None:
    """Write the records of a run to ``output``, or those of every run to ``run-1.parquet`` and so on in it."""
    from receipt_cli.io.atomic import make_folder
    from receipt_cli.receipts.series_file import write_series

    if all_runs:
        make_folder(output)
    paths = _numbered(output, len(products), ".parquet") if all_runs else [output]
    for path, product in zip(paths, products, strict=True):
        write_series(product.derivation, path)


def _numbered(folder: Path, count: int, suffix: str) -> list[Path]:
    """Return the names of the files of ``count`` runs, which sort as the runs are numbered."""
    width = len(str(count))
    return [folder / f"run-{number:0{width}d}{suffix}" for number in range(1, count + 1)]


def _show(product: Product, color: ColorChoice) -> None:
    from receipt_cli.render.receipt.summary import render_receipt

    write_stdout(render_receipt(product.document, series=product.series, style=style(color)))
