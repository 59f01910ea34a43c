"""Draw progress bars, and text that is redrawn in place, on a terminal only."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

from receipt_cli.render.scale import byte_size, count
from receipt_cli.render.style import Style, is_terminal
from receipt_cli.render.text import clean

if TYPE_CHECKING:
    from rich.progress import Progress, ProgressColumn, TaskID

MIN_BYTES = 32 * 1024 * 1024
"""Least bytes of a file with a bar; a smaller file is read at once."""
LINE_S = 10.0
"""Seconds between two lines about a batch if stderr is no terminal."""
MIN_LOGS = 50
"""Least logs of a batch with such lines."""
_NAME_WIDTH = 32


def shows_progress(stream: TextIO | None, environ: Mapping[str, str] | None = None) -> bool:
    """Return whether ``stream`` is a terminal on which a line can be drawn again."""
    env = os.environ if environ is None else environ
    return is_terminal(stream) and env.get("TERM") != "dumb"


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
    """A bar for reading the file ``name``; none for a file below ``least`` bytes."""

    def __init__(self, name: str, stream: TextIO, least: int = MIN_BYTES) -> None:
        super().__init__(stream)
        shown = clean(name, unicode=self._style.unicode)
        self._name = shown if len(shown) <= _NAME_WIDTH else f"{shown[: _NAME_WIDTH // 2]}…{shown[1 - _NAME_WIDTH // 2 :]}"
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


class Screen:
    """A text that is redrawn in place on the terminal ``stream``; a context manager, which removes it at the end.

    Writing to a closed terminal is not an error.
    """

    def __init__(self, stream: TextIO) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(file=stream)
        self._live = Live(
            console=self._console, auto_refresh=False, transient=True, vertical_overflow="crop", redirect_stdout=False,
            redirect_stderr=False,
        )  # fmt: skip
        self._shown = ("", 0, 0)

    def __enter__(self) -> Screen:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.clear()

    def draw(self, text: str) -> None:
        """Replace the text on the terminal with ``text``; lines beyond the height of the terminal are left out.

        The same text on a terminal of the same size is not drawn again.
        """
        from rich.text import Text

        shown = (text, *self._console.size)
        if shown != self._shown:
            self._shown = shown
            with contextlib.suppress(OSError, ValueError):
                self._live.start()
                self._live.update(Text.from_ansi(text, no_wrap=True, overflow="crop"), refresh=True)

    @property
    def rows(self) -> int:
        """Most lines of a text that fit the terminal."""
        return max(1, int(self._console.size.height) - 5)

    def clear(self) -> None:
        """Remove the text from the terminal."""
        self._shown = ("", 0, 0)
        with contextlib.suppress(OSError, ValueError):
            self._live.stop()

    def leave(self, message: str) -> None:
        """Keep the text on the terminal and print ``message``, if any, below it."""
        if self._live.is_started:
            self._live.transient = False
            with contextlib.suppress(OSError, ValueError):
                self._live.stop()
                self._console.print(message, markup=False, highlight=False)
