"""Text on a terminal, redrawn in place and removed at the end."""

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

    Writing to a closed terminal is not an error.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lines: list[str] = []

    def __enter__(self) -> Screen:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.clear()

    def draw(self, text: str) -> None:
        """Replace the text on the terminal with ``text``; lines beyond the height of the terminal are left out."""
        columns, rows = self._size()
        lines = text.splitlines()[: max(1, rows - 1)]
        body = "".join(f"{line}\x1b[K\n" for line in lines)
        self._write(f"{self._up(columns)}{body}\x1b[J")
        self._lines = lines

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
