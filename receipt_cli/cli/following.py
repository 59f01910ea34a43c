"""What ``receipt parse --follow`` does until the job is over; loads no typer."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from receipt_cli.cli.output import ColorChoice, style
from receipt_cli.errors import OutputError, UsageError

if TYPE_CHECKING:
    from receipt_cli.derive import Reading
    from receipt_cli.follow.loop import Until
    from receipt_cli.follow.snapshot import Snapshot
    from receipt_cli.follow.watch import Watch
    from receipt_cli.receipts.production import Product, Request


def follow_log(
    request: Request, *, every: bool, idle: int | None, pid: int | None, output: Path | None, color: ColorChoice
) -> list[Product]:
    """Return what ``receipt parse`` makes of the log once its job is over, with a live view on a terminal.

    ``idle`` (seconds) and ``pid`` as ``Until`` has them; ``output`` is where the receipt shall go. Raises ``ReceiptError``.
    """
    from receipt_cli.derive import Options, plan_reading
    from receipt_cli.follow.loop import Until, follow
    from receipt_cli.receipts.production import produce_from

    if request.more:
        raise UsageError("--follow takes one log", try_="receipt parse LOG --follow")
    if output is not None and not every:
        _check_folder(output)
    gc.enable()  # this may take days
    until = Until(idle, pid)

    def read(notes: list[str]) -> list[Reading]:
        plan = plan_reading(Options(request.grammar, request.exit_code, request.wall))
        with _watch(request.path, until, color) as watch:
            return [follow(request.path, plan, until, notes, watch=watch, workers=request.workers)]

    return list(produce_from(request, read, every=every))


def _check_folder(output: Path) -> None:
    """Refuse now what could not be written at the end: a pipe gives its log but once."""
    folder = output.absolute().parent
    if not folder.is_dir():
        raise OutputError("cannot write", where=str(output), why=f"there is no folder {folder}")
    if not output.exists() and not os.access(folder, os.W_OK):
        raise OutputError("cannot write", where=str(output), why="the folder cannot be written to")


@contextmanager
def _watch(path: str, until: Until, color: ColorChoice) -> Iterator[Watch | None]:
    """Give what shows the job on the terminal of stderr, or None where nobody would see it."""
    from receipt_cli.render.terminal.progress import shows_progress

    if sys.stderr is None or not shows_progress(sys.stderr):
        yield None
        return
    from receipt_cli.follow.watch import Watch
    from receipt_cli.render.live import render_live
    from receipt_cli.render.terminal.live_screen import Screen

    name = "stdin" if path == "-" else Path(path).name

    class Terminal:
        def show(self, state: Snapshot) -> None:
            screen.draw(render_live(state, style(color, sys.stderr)))

        def leave(self, message: str) -> None:
            screen.leave(message)

    with Screen(sys.stderr) as screen:
        yield Watch(name, Terminal(), until.describe(path))
