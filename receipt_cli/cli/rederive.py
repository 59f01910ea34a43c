"""``receipt rederive``: an archive of logs in, a store of receipts out."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from receipt_cli.cli.options import Color, Json
from receipt_cli.cli.rederiving import run_rederive


def rederive(
    paths: Annotated[
        list[str] | None,
        typer.Argument(help="Logs, folders of logs, patterns ('runs/**/*.log') and URLs (s3://, gs://, …).", metavar="PATH..."),
    ] = None,
    *,
    store: Annotated[str, typer.Option(help="Folder of the receipts; made where there is none.", metavar="DIR")],
    workers: Annotated[int | None, typer.Option(min=1, max=1024, help="Logs at once; by default as many as cores.")] = None,
    engine: Annotated[
        Literal["local", "ray"], typer.Option(help="Who works: processes here, or the Ray cluster at RAY_ADDRESS.")
    ] = "local",
    paths_from: Annotated[str | None, typer.Option(metavar="FILE", help="More paths, one a line; - is stdin.")] = None,
    root: Annotated[
        str | None, typer.Option(metavar="DIR", help="Folder that names are relative to; by default the one above all paths.")
    ] = None,
    json_output: Json = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Write nothing; show what would be gained, lost, changed.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Derive all logs again: also what is done, or in quarantine.")] = False,
    color: Color = "auto",
) -> None:
    """Derive a receipt of every log of an archive into a store.

    One log, one receipt. A log whose file, definitions and schema are those of its receipt is not read again; the command
    can be interrupted at any time, and goes on where it stopped. A log that cannot be derived goes into quarantine, with the
    reason, and stops no other. The run, header and attachments of an existing receipt are carried over as they are.
    --json prints a line of JSON for each log, ordered by path. Exits 0 when every log has its receipt, else with the worst
    code of those in quarantine: 3 for a log that cannot be read, 70 for one that killed its process or that we failed on;
    6 when the store cannot be written.
    """
    run_rederive(
        paths,
        store,
        workers=workers,
        engine=engine,
        paths_from=paths_from,
        root=root,
        json_output=json_output,
        dry_run=dry_run,
        again=again,
        color=color,
    )
