"""A text on a terminal that is drawn again in its place, and taken away in the end."""

from __future__ import annotations

import contextlib
import os
import re
from types import TracebackType
from typing import TextIO

from receipt_cli.render.terminal.text import cells

_PAINT = re.compile(r"\x1b\[[0-9;]*m")


class Screen:
    """The lines of one text on ``stream``, a terminal: a context manager, which leaves the terminal as it was.

    A terminal that has gone away is no error.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lines: list[str] = []

    def __enter__(self) -> Screen:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.clear()

    def draw(self, text: str) -> None:
        """Show ``text`` instead of what was shown; what does not fit the height of the terminal is left out."""
        columns, rows = self._size()
        lines = text.splitlines()[: max(1, rows - 1)]
        body = "".join(f"{line}\x1b[K\n" for line in lines)
        self._write(f"{self._up(columns)}{body}\x1b[J")
        self._lines = lines

    def clear(self) -> None:
        """Take away what is shown."""
        if self._lines:
            self._write(f"{self._up(self._size()[0])}\x1b[J")
        self._lines = []

    def leave(self, message: str) -> None:
        """Leave what is shown and say ``message``, if any, on a line below: nothing that others write is taken away."""
        if self._lines:
            self._write(f"\n{message}\n" if message else "\n")
        self._lines = []

    def _up(self, columns: int) -> str:
        """Return what moves to the first line of what is shown; a terminal that became narrower has broken lines."""
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
