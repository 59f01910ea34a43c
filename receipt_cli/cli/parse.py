"""``receipt parse``: a log in, a receipt out."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from receipt_cli.cli.output import Color, Json, note, progress, style, write_stdout
from receipt_cli.errors import ExitCode

if TYPE_CHECKING:
    from receipt_cli.produce import Product

Log = Annotated[str, typer.Argument(help="The log: a file (also .gz .zst .xz .bz2), or - for stdin.", metavar="LOG")]
GrammarOption = Annotated[
    str | None,
    typer.Option("--grammar", "-g", metavar="ID@vN", help="Read the log with this grammar (or YAML file) only."),
]


def parse(
    log: Log,
    json_output: Json = False,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the receipt to this file.")] = None,
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

    Prints a summary; --json prints the receipt itself, -o writes it to a file. Exits 0 also for the receipt of a run
    that failed; 3 for a log that cannot be read; 4 when no grammar recognises it, or two do.
    """
    from receipt_cli.parallel import AUTO
    from receipt_cli.produce import Request, produce, refusal, rfc3339_now

    request = Request(
        path=log,
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
    with progress(log) as bar:
        product = produce(replace(request, progress=bar))
    note(product.notes)
    _deliver(product, json_output, output, color)
    error = refusal(product.derivation, log)
    if error is not None:
        raise error
    if strict and not product.clean:
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
        from receipt_cli.render.receipt import render_receipt

        write_stdout(render_receipt(product.document, series=product.series, style=style(color)))
