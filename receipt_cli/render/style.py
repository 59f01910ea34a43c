"""Style of one output stream: colour, width, height and glyphs, detected once."""

from __future__ import annotations

import codecs
import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TextIO

ColorChoice = Literal["auto", "always", "never"]
Role = Literal["plain", "heading", "strong", "dim", "good", "warn", "bad", "accent", "blue", "magenta"]

PIPE_WIDTH = 80
"""Columns of a stream that is not a terminal."""
MIN_WIDTH = 40
"""A narrower terminal gets lines of this many columns: below it no table can be read."""
MAX_WIDTH = 1000
DEFAULT_HEIGHT = 24

SERIES: tuple[Role, ...] = ("accent", "warn", "magenta", "good", "blue", "bad")
"""Colours of the curves of one plot, in order."""


@dataclass(frozen=True, slots=True)
class Style:
    """Capabilities of a stream.

    ``width`` and ``height`` are in character cells; ``unicode`` is false if the stream's encoding is not
    UTF-8, and then every rendered byte is ASCII.
    """

    color: bool = False
    width: int = PIPE_WIDTH
    height: int = DEFAULT_HEIGHT
    unicode: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", min(max(self.width, MIN_WIDTH), MAX_WIDTH))

    @classmethod
    def detect(cls, stream: TextIO, *, color: ColorChoice = "auto", environ: Mapping[str, str] | None = None) -> Style:
        """Return the style for ``stream``.

        ``auto`` colours a terminal unless ``NO_COLOR`` is not empty or ``TERM`` is ``dumb``; ``always`` and
        ``never`` overrule all three. The width is ``COLUMNS`` if that is a positive number, else the
        terminal's, else ``PIPE_WIDTH``.
        """
        env = os.environ if environ is None else environ
        terminal = is_terminal(stream)
        wanted = terminal and not env.get("NO_COLOR") and env.get("TERM") != "dumb"
        columns, rows = _terminal_size(stream) if terminal else (0, 0)
        return cls(
            color=wanted if color == "auto" else color == "always",
            width=_positive(env.get("COLUMNS")) or columns or PIPE_WIDTH,
            height=_positive(env.get("LINES")) or rows or DEFAULT_HEIGHT,
            unicode=_is_utf8(getattr(stream, "encoding", None)),
        )


def is_terminal(stream: TextIO | None) -> bool:
    """Return whether ``stream`` is an open terminal."""
    try:
        return stream is not None and stream.isatty()
    except (AttributeError, ValueError):  # not a real file, or closed
        return False


def _terminal_size(stream: TextIO) -> tuple[int, int]:
    try:
        size = os.get_terminal_size(stream.fileno())
    except (AttributeError, ValueError, OSError):
        return 0, 0
    return size.columns, size.lines


def _positive(text: str | None) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 6 else 0


def _is_utf8(encoding: object) -> bool:
    try:
        return isinstance(encoding, str) and codecs.lookup(encoding).name in ("utf-8", "utf-8-sig")
    except LookupError:
        return False
