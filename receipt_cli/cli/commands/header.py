"""``receipt header``: record the job's machine and code when the job starts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from receipt_cli.cli.output import note, write_output
from receipt_cli.cli.parameters import Lane, Option, Output, Preset, RunName
from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.errors import UsageError
from receipt_cli.receipts.production import capture_header, rfc3339_now


def header(
    output: Annotated[Path | None, Output("Write to this file instead of stdout.", dash="stdout")] = None,
    repository: Annotated[Path, Option("-C", "--repository", metavar="FOLDER", help="Folder with the .git of the run.")] = Path(
        "."
    ),
    python: Annotated[
        Path | None, Option(help="The job's Python; by default that of VIRTUAL_ENV, of CONDA_PREFIX, or the first on PATH.")
    ] = None,
    pid: Annotated[int | None, Option(least=1, help="The job's process: its Python and its environment are recorded.")] = None,
    name: RunName = None,
    lane: Lane = None,
    preset: Preset = None,
) -> None:
    """Record git, GPUs, torch, RAM and the host at job start, for `receipt parse --header`.

    Run it on the machine that trains. The Python that it describes is the job's, never its own.
    RECEIPT_GIT_COMMIT, _BRANCH, _DIRTY, _MESSAGE and the JSON blob RECEIPT_BUILD_PROVENANCE override what is detected.

    Example: receipt header -o header.json
    """
    now = rfc3339_now()
    run = {"name": name, "lane": lane, "preset": preset, "started_at": now}
    if pid is not None and python is not None:
        raise UsageError("--pid and --python exclude each other")
    interpreter = None if python is None else str(python)
    document, notes = capture_header(run, repository, dict(os.environ), now, python=interpreter, pid=pid)
    note(notes)
    write_output(output, canonical_bytes(document))
