"""Find the files of runs that are named by digest, name or path in a store."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from receipt_cli.cli.parameters import FromSettings, Option
from receipt_cli.errors import InputError, UsageError
from receipt_cli.store.documents import find_document
from receipt_cli.store.resolve import NamedRun, find_log, find_run

InStore = Annotated[
    Path | None,
    Option(
        "--store",
        metavar="FOLDER",
        help="Store whose runs may be given by digest (first digits), name or path; else $RECEIPT_STORE.",
    ),
    FromSettings("store"),
]


def receipt_file(given: str, store: Path | None) -> str:
    """Return ``given`` if it is a file or ``-``, else the receipt of the run, or the document, that it names in the store.

    Raises ``InputError`` if the store has no such run and no such document, or several.
    """
    try:
        run = _run(given, store)
    except InputError as error:
        document = None if store is None else find_document(store, given)
        if document is None:
            raise error
        return str(document.path)
    return given if run is None else str(run.receipt.path)


def log_file(given: str, store: Path | None, *, any_run: bool = False) -> str:
    """Return ``given`` if it is a file or ``-``, else the log of the run that it names in the store.

    Raises ``InputError`` if there is no such run, or its log is not on this machine, and ``UsageError`` for a run that is not
    the last of its log, unless ``any_run``.
    """
    run = _run(given, store)
    if run is None:
        return given
    if run.receipt.run is not None and not any_run:
        raise UsageError(f"{given!r} is an earlier run of its log", why="a log is read for its last run only")
    log = find_log(store or Path(), run)
    if log is None:
        why = f"no batch on this machine found it at {', '.join(run.paths)[:300] or 'any path'}"
        raise InputError("the log of the run is not on this machine", where=given, why=why, try_="name the log")
    return str(log)


def log_or_receipt(given: str, store: Path | None) -> str:
    """Return ``given`` if it is a file, else the log of the run it names, or its receipt without a log here."""
    run = _run(given, store)
    if run is None:
        return given
    log = find_log(store or Path(), run) if run.receipt.run is None else None
    return str(log or run.receipt.path)


def _run(given: str, store: Path | None) -> NamedRun | None:
    """Return the run of the store that ``given`` names; None if it is a file or there is no store."""
    return None if given == "-" or store is None or os.path.lexists(given) else find_run(store, given)
