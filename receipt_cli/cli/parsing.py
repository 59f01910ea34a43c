"""What ``receipt parse`` does, once its command line is read; loads no typer."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from receipt_cli.cli.output import ColorChoice, note, progress, style, write_stdout
from receipt_cli.errors import ExitCode

if TYPE_CHECKING:
    from receipt_cli.produce import Product


def run_parse(
    logs: Sequence[str],
    *,
    json_output: bool = False,
    output: Path | None = None,
    all_runs: bool = False,
    grammar: str | None = None,
    exit_code: int | None = None,
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
    from receipt_cli.parallel import AUTO
    from receipt_cli.produce import Request, produce, produce_all, refusal, rfc3339_now

    request = Request(
        path=logs[0],
        more=tuple(logs[1:]),
        grammar=grammar,
        exit_code=exit_code,
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
    with progress(logs[0]) as bar:
        request = replace(request, progress=bar)
        products = list(produce_all(request)) if all_runs else [produce(request)]
    note(dict.fromkeys(text for product in products for text in product.notes))
    if all_runs:
        _deliver_all(products, json_output, output, color)
    else:
        _deliver(products[0], json_output, output, color)
    for product in products:
        error = refusal(product.derivation, logs[0])
        if error is not None:
            raise error
    if strict and not all(product.clean for product in products):
        sys.exit(ExitCode.NO)


def _deliver(product: Product, json_output: bool, output: Path | None, color: ColorChoice) -> None:
    from receipt_cli.receipt import canonical_bytes

    data = canonical_bytes(product.document)
    if output is not None:
        from receipt_cli.write import write_atomically

        write_atomically(output, data)
    if json_output:
        write_stdout(data)
    elif product.derivation.detection.chosen:
        _show(product, color)


def _deliver_all(products: Sequence[Product], json_output: bool, output: Path | None, color: ColorChoice) -> None:
    """Write ``run-1.json`` and so on into ``output``, a line of JSON each to stdout, or the summaries."""
    from receipt_cli.receipt import canonical_bytes, canonical_line

    if output is not None:
        from receipt_cli.write import make_folder, write_atomically

        make_folder(output)
        width = len(str(len(products)))
        for number, product in enumerate(products, 1):
            write_atomically(output / f"run-{number:0{width}d}.json", canonical_bytes(product.document))
    for product in products:
        if json_output:
            write_stdout(canonical_line(product.document))
        elif product.derivation.detection.chosen:
            _show(product, color)


def _show(product: Product, color: ColorChoice) -> None:
    from receipt_cli.render.receipt import render_receipt

    write_stdout(render_receipt(product.document, series=product.series, style=style(color)))
