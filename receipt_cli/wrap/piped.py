"""Copy our stdin to stdout and into a log, as ``tee`` does, and keep when each piece came."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from receipt_cli.errors import OutputError
from receipt_cli.io.pipe import widen
from receipt_cli.io.times_file import TimesWriter
from receipt_cli.wrap.forwarder import LONG_PAUSE_S, Copying
from receipt_cli.wrap.orphan import lock
from receipt_cli.wrap.tee import ROOM, Loss, Outlet

_ASK_FOR_END = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def copy_input(log: int, times: Path | None, *, append: bool, stamps: bool) -> tuple[Loss | None, list[str]]:
    """Copy stdin until it ends; return what the log lacks, and notes.

    Signals that ask for the end are ignored: the program before us in the pipe gets them too, and its last output is wanted.
    Raises ``OutputError`` if the times cannot be written.
    """
    lock(log)
    for number in _ASK_FOR_END:
        signal.signal(number, signal.SIG_IGN)
    widen(0)
    os.set_blocking(0, False)
    writer = None
    if times is not None:
        now, wall = time.monotonic(), time.time()
        writer = TimesWriter(str(times), log, append=append, pause_s=LONG_PAUSE_S, now=now, wall=wall)
    copying = Copying([Outlet(0, 1, False, ROOM)], log, None, None, writer, stamps)
    copying.run()
    if writer is not None and writer.problem:
        raise OutputError("cannot write the times", where=str(times), why=writer.problem)
    return copying.log.loss, copying.tee.problems
