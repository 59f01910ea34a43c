"""``receipt parse``: a log in, a receipt out."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from receipt_cli.cli.output import Color, Json, note, progress, style, write_stdout
from receipt_cli.errors import ExitCode

if TYPE_CHECKING:
    from receipt_cli.produce import Product

Logs = Annotated[
    list[str],
    typer.Argument(
        help="The log: a file (also .gz .zst .xz .bz2), or - for stdin; or all files of one run, or their folder.",
        metavar="LOG",
    ),
]
GrammarOption = Annotated[
    str | None,
    typer.Option("--grammar", "-g", metavar="ID@vN", help="Read the log with this grammar (or YAML file) only."),
]


def parse(
    logs: Logs,
    json_output: Json = False,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="Write the receipt to this file; with --all-runs, the receipts to this folder."),
    ] = None,
    all_runs: Annotated[
        bool,
        typer.Option("--all-runs", help="A receipt of every run in the log, not of the last alone; --json gives JSON lines."),
    ] = False,
    grammar: GrammarOption = None,
    exit_code: Annotated[int | None, typer.Option(help="The exit code of the training command.")] = None,
    name: Annotated[str | None, typer.Option(help="Name of the run.")] = None,
    lane: Annotated[str | None, typer.Option(help="Line of comparable runs (hardware and recipe).")] = None,
    preset: Annotated[str | None, typer.Option(help="Name of the recipe.")] = None,
    attach: Annotated[list[str] | None, typer.Option(metavar="KIND=URI", help="A heavy artefact, by reference.")] = None,
    header: Annotated[Path | None, typer.Option(help="Header file that `receipt header` wrote at job start.")] = None,
    here: Annotated[bool, typer.Option("--here", help="This machine and this .git are the run's: record them.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Exit 1 on any problem, near-miss or absence of steps.")] = False,
    workers: Annotated[int | None, typer.Option(min=1, max=256, help="Processes for one large plain file.")] = None,
    color: Color = "auto",
) -> None:
    """Turn a training log into a receipt.

    Prints a summary; --json prints the receipt itself, -o writes it to a file. Several files, such as rank*.log or a
    folder, are the ranks and the rotated parts of one run. Of several runs in one log the last is taken. Exits 0 also
    for the receipt of a run that failed; 2 for files of several runs; 3 for a log that cannot be read; 4 when no grammar
    recognises it, or two do.
    """
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
        raise typer.Exit(ExitCode.NO)


def _deliver(product: Product, json_output: bool, output: Path | None, color: Color) -> None:
    from receipt_cli.receipt import canonical_bytes

    data = canonical_bytes(product.document)
    if output is not None:
        from receipt_cli.write import write_atomically

        write_atomically(output, data)
    if json_output:
        write_stdout(data)
    elif product.derivation.detection.chosen:
        _show(product, color)


def _deliver_all(products: Sequence[Product], json_output: bool, output: Path | None, color: Color) -> None:
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


def _show(product: Product, color: Color) -> None:
    from receipt_cli.render.receipt import render_receipt

    write_stdout(render_receipt(product.document, series=product.series, style=style(color)))
