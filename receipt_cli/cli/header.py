"""``receipt header``: what only the job's own machine knows, written when the job starts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from receipt_cli.cli.output import note, write_stdout


def header(
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to this file instead of stdout.")] = None,
    repository: Annotated[Path, typer.Option("--repository", "-C", help="Folder whose .git is the run's.")] = Path("."),
    name: Annotated[str | None, typer.Option(help="Name of the run.")] = None,
    lane: Annotated[str | None, typer.Option(help="Line of comparable runs (hardware and recipe).")] = None,
    preset: Annotated[str | None, typer.Option(help="Name of the recipe.")] = None,
) -> None:
    """Record git, GPUs, torch, RAM and the host at job start, for `receipt parse --header`.

    Run it on the machine that trains. RECEIPT_GIT_COMMIT, _BRANCH, _DIRTY, _MESSAGE and the JSON blob
    RECEIPT_BUILD_PROVENANCE win over what is found here.
    """
    from receipt_cli.documents.canonical import canonical_bytes
    from receipt_cli.receipts.production import capture_header, rfc3339_now

    now = rfc3339_now()
    run = {"name": name, "lane": lane, "preset": preset, "started_at": now}
    document, notes = capture_header(run, repository, dict(os.environ), now)
    note(notes)
    data = canonical_bytes(document)
    if output is None:
        write_stdout(data)
        return
    from receipt_cli.io.atomic import write_atomically

    write_atomically(output, data)
