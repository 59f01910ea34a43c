"""Progress bars, and text that is redrawn in place, on a terminal. Nothing is drawn on any other stream."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from receipt_cli.patterns import compile_later
from receipt_cli.render.scale import byte_size, count
from receipt_cli.render.terminal.style import Style
from receipt_cli.render.terminal.text import cells, clean, elide_middle

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, TaskID

MIN_BYTES = 32 * 1024 * 1024
"""A smaller file is read before a bar would be seen."""
LINE_S = 10.0
"""Seconds between the lines of a batch whose stderr is no terminal."""
MIN_LOGS = 50
"""A smaller batch has no such lines."""
_NAME_WIDTH = 32


def shows_progress(stream: TextIO | None, environ: Mapping[str, str] | None = None) -> bool:
    """Return whether ``stream`` is a terminal on which a line can be drawn again."""
    env = os.environ if environ is None else environ
    try:
        return stream is not None and stream.isatty() and env.get("TERM") != "dumb"
    except ValueError:  # closed
        return False


class _Bar:
    """A bar on ``stream``, removed at the end: a context manager. Nothing is loaded or drawn before the first update."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._style = Style.detect(stream)
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._label = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _update(self, label: str, done: int, total: int, logs: str = "") -> None:
        """Draw that ``done`` of ``total`` bytes are done; another label begins another bar."""
        from rich.console import Console
        from rich.progress import Progress

        if self._bar is None:
            console = Console(file=self._stream, width=self._style.width, no_color=not self._style.color)
            self._bar = Progress(*self._columns(), console=console, transient=True, refresh_per_second=4)
            self._bar.start()
        if self._task is None or label != self._label:
            if self._task is not None:
                self._bar.remove_task(self._task)
            self._task, self._label = self._bar.add_task(label, total=max(total, 1), logs=""), label
        self._bar.update(self._task, completed=done, logs=logs)

    def _columns(self) -> list[ProgressColumn]:
        from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn

        label = TextColumn("{task.description}", markup=False)
        return [label, BarColumn(), DownloadColumn(binary_units=True), TimeRemainingColumn()]


class ReadingBar(_Bar):
    """A bar for the reading of the file ``name``; none for a file below ``least`` bytes."""

    def __init__(self, name: str, stream: TextIO, least: int = MIN_BYTES) -> None:
        super().__init__(stream)
        self._name = elide_middle(clean(name, unicode=self._style.unicode), _NAME_WIDTH)
        self._least = least

    def __call__(self, done: int, total: int) -> None:
        """Draw that ``done`` of ``total`` bytes were read."""
        if total >= self._least:
            self._update(self._name, done, total)


class BatchLines:
    """Lines about a long batch, for a file or another program: one every ``LINE_S`` seconds, through ``write``."""

    def __init__(self, write: Callable[[str], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._write = write
        self._clock = clock
        self._last = clock()

    def __call__(self, what: str, logs: int, all_logs: int, done: int, total: int) -> None:
        """Write that ``logs`` of ``all_logs`` logs are done, which are ``done`` of ``total`` bytes, if it is time for a line."""
        now = self._clock()
        if all_logs >= MIN_LOGS and now - self._last >= LINE_S:
            self._last = now
            self._write(f"receipt: {what}: {count(logs)} of {count(all_logs)} logs, {byte_size(done)} of {byte_size(total)}")


class BatchBar(_Bar):
    """A bar for the logs of a batch."""

    def __call__(self, what: str, logs: int, all_logs: int, done: int, total: int) -> None:
        """Draw that ``logs`` of ``all_logs`` logs are done, which are ``done`` of ``total`` bytes."""
        self._update(what, done, total, f"{count(logs)} of {count(all_logs)}")

    def _columns(self) -> list[ProgressColumn]:
        from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn

        label, logs = (TextColumn(text, markup=False) for text in ("{task.description}", "{task.fields[logs]} logs"))
        return [label, BarColumn(), logs, DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn()]


_PAINT = compile_later(r"\x1b\[[0-9;]*m")


class Screen:
    """The lines of one text on ``stream``, a terminal: a context manager, which leaves the terminal as it was.

    Writing to a closed terminal is not an error.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lines: list[str] = []
        self._drawn_at = (0, 0)

    def __enter__(self) -> Screen:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.clear()

    def draw(self, text: str) -> None:
        """Replace the text on the terminal with ``text``; lines beyond the height of the terminal are left out.

        The same text on a terminal of the same size is not drawn again.
        """
        columns, rows = self._size()
        lines = text.splitlines()[: max(1, rows - 1)]
        if lines == self._lines and (columns, rows) == self._drawn_at:
            return
        self._drawn_at = (columns, rows)
        body = "".join(f"{line}\x1b[K\n" for line in lines)
        self._write(f"{self._up(columns)}{body}\x1b[J")
        self._lines = lines

    @property
    def rows(self) -> int:
        """Lines of a text that the terminal has room for."""
        return max(1, self._size()[1] - 5)

    def clear(self) -> None:
        """Remove the text from the terminal."""
        if self._lines:
            self._write(f"{self._up(self._size()[0])}\x1b[J")
        self._lines = []

    def leave(self, message: str) -> None:
        """Keep the text on the terminal and print ``message``, if any, below it."""
        if self._lines:
            self._write(f"\n{message}\n" if message else "\n")
        self._lines = []

    def _up(self, columns: int) -> str:
        """Return the escape sequence to the first line of the text; a terminal that became narrower has wrapped lines."""
        height = sum(max(1, -(-cells(_PAINT.sub("", line)) // columns)) for line in self._lines)
        return f"\r\x1b[{height}A" if height else ""

    def _size(self) -> tuple[int, int]:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            size = os.get_terminal_size(self._stream.fileno())
            if size.columns and size.lines:
                return size.columns, size.lines
        return 80, 24

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()
