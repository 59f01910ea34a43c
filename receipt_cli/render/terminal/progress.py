"""How far the reading of a large file has come, on a terminal; nothing anywhere else."""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from receipt_cli.render.terminal.style import Style
from receipt_cli.render.terminal.text import clean, elide_middle

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

MIN_BYTES = 32 * 1024 * 1024
"""A smaller file is read before a bar would be seen."""
_NAME_WIDTH = 32


def shows_progress(stream: TextIO | None, environ: Mapping[str, str] | None = None) -> bool:
    """Return whether ``stream`` is a terminal on which a line can be drawn again."""
    env = os.environ if environ is None else environ
    try:
        return stream is not None and stream.isatty() and env.get("TERM") != "dumb"
    except ValueError:  # closed
        return False


class ReadingBar:
    """A bar on ``stream`` for one file, gone when the reading ends: a context manager, called with bytes done and in all.

    Nothing is loaded or drawn for a file below ``least`` bytes.
    """

    def __init__(self, name: str, stream: TextIO, least: int = MIN_BYTES) -> None:
        self._name = name
        self._stream = stream
        self._least = least
        self._bar: Progress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> ReadingBar:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, done: int, total: int) -> None:
        """Show that ``done`` of ``total`` bytes were read."""
        if total < self._least:
            return
        if self._bar is None:
            self._bar, self._task = self._start(total)
        if self._task is not None:
            self._bar.update(self._task, completed=done)

    def _start(self, total: int) -> tuple[Progress, TaskID]:
        from rich.console import Console
        from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

        style = Style.detect(self._stream)
        console = Console(file=self._stream, width=style.width, no_color=not style.color)
        name = elide_middle(clean(self._name, unicode=style.unicode), _NAME_WIDTH)
        columns = (
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            DownloadColumn(binary_units=True),
            TimeRemainingColumn(),
        )
        bar = Progress(*columns, console=console, transient=True, refresh_per_second=4)
        task = bar.add_task(name, total=total)
        bar.start()
        return bar, task
