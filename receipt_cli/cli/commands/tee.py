"""``receipt tee``: keep the output of a job that comes through a pipe, and when each line came."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from receipt_cli.cli.output import note
from receipt_cli.cli.parameters import Argument, Option
from receipt_cli.errors import OutputError, UsageError
from receipt_cli.io.compression import times_name
from receipt_cli.wrap.forwarder import copy_input
from receipt_cli.wrap.paths import Existing, Files, check_files, is_device, open_log
from receipt_cli.wrap.tee import hold_standard_streams


def tee(
    log: Annotated[Path, Argument("LOG", "The log to write.")],
    *,
    append: Annotated[bool, Option("-a", "--append", help="Append to a log that exists, as another launch.")] = False,
    overwrite: Annotated[bool, Option("--overwrite", help="Replace a log that exists.")] = False,
    stamp: Annotated[bool, Option("--stamp", help="Put a time stamp before each line instead of times beside the log.")] = False,
) -> None:
    """Copy stdin to stdout and to a log, and write beside it when each line came.

    For example: python train.py 2>&1 | receipt tee job.log. Bytes pass through unchanged and at once. The times are in
    LOG.times, where `receipt parse` and the other commands find them. Ctrl-C ends the job, not the copying. Exits 6 if the log
    cannot be written whole.

    Example: receipt tee --append job.log
    """
    if append and overwrite:
        raise UsageError("--append and --overwrite exclude each other")
    existing: Existing = "append" if append else "overwrite" if overwrite else "refuse"
    hold_standard_streams()
    check_files(Files(log, log, log), existing)
    times = None if stamp or is_device(log) else log.with_name(times_name(log.name))
    loss, notes = copy_input(open_log(log, existing), times, append=append, stamps=stamp)
    note(notes)
    if loss is not None:
        raise OutputError("the log is not complete", where=str(log), why=loss.reason)
