"""Pages of text for the terminal: lines of painted spans, each safe to print and no wider than the style allows.

All text for people goes through ``Page``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from receipt_cli.render.scale import count
from receipt_cli.render.terminal.style import Role, Style
from receipt_cli.render.terminal.text import cells, clean, disarm, elide, pad, wrap

_ASCII = str.maketrans("✓✗▸–—−…→×·│µ\u202f▁▂▃▄▅▆▇█", "+x>---~>x||u,.:-=+*#@")
"""The page's glyphs in ASCII, one cell for one cell, so that tables stay aligned."""

NO_BREAK = "\u00a0"
"""A blank at which no line breaks; shown as a blank."""


class Span(NamedTuple):
    """A piece of a line and the role that decides its colour."""

    text: str
    role: Role = "plain"


class Page:
    """Collects lines for one ``Style``.

    For any input, ``text`` returns no control characters except newlines and the page's own colour codes, and
    no line wider than ``style.width``.
    """

    def __init__(self, style: Style) -> None:
        self.style = style
        self._lines: list[str] = []

    def say(self, text: str) -> str:
        """Return foreign ``text`` made safe for a span; ``–`` when nothing is left of it."""
        return clean(text, unicode=self.style.unicode) or "–"

    def line(self, *spans: Span | str, indent: int = 0) -> None:
        """Add one line, elided on its right where it is too wide."""
        room = self.style.width - indent
        painted: list[str] = []
        blanks = " " * indent  # held back, so that no line ends in blanks
        for span in spans:
            text = self._own(span.text if isinstance(span, Span) else span)
            role: Role = span.role if isinstance(span, Span) else "plain"
            if room <= 0:
                break
            fitted, width = text, cells(text)
            if width > room:
                fitted = self._own(elide(text.rstrip(" "), room))
            room = 0 if fitted != text else room - width
            body = fitted.rstrip(" ")
            if body:
                head = body.lstrip(" ")
                painted.append(blanks + " " * (len(body) - len(head)) + self.style.paint(head, role))
                blanks = ""
            blanks += " " * (len(fitted) - len(body))
        self._lines.append("".join(painted))

    def gap(self) -> None:
        """Add a blank line, unless the page is empty or ends in one."""
        if self._lines and self._lines[-1]:
            self._lines.append("")

    def heading(self, title: str, *notes: Span | str) -> None:
        """Add a blank line and a section title with notes behind it."""
        self.gap()
        self.line(Span(title, "heading"), *(part for note in notes for part in ("  ", note)))

    def prose(self, text: str, role: Role = "plain", *, indent: int = 0, max_lines: int = 4, bullet: str = "") -> None:
        """Add ``text`` broken at blanks (not at no-break ones); later lines hang behind the bullet."""
        hanging = indent + cells(bullet)
        for index, piece in enumerate(wrap(text, self.style.width - hanging, max_lines)):
            self.line(Span(f"{bullet if not index else ' ' * cells(bullet)}{piece}", role), indent=indent)

    def flow(self, label: str, items: Sequence[Sequence[Span]], *, indent: int = 2, label_width: int = 0) -> None:
        """Add ``label``, if any, and the items with ``·`` between them; lines break only between items."""
        hanging = indent + (max(label_width, cells(label)) + 2 if label else 0)
        head: list[Span] = [Span(pad(label, hanging - indent), "dim")]
        used = 0
        for item in items:
            size = sum(cells(self._own(span.text)) for span in item)
            if used and hanging + used + 3 + size > self.style.width:
                self.line(*head, indent=indent)
                head, used = [Span(" " * (hanging - indent))], 0
            if used:
                head.append(Span(" · ", "dim"))
                used += 3
            head.extend(item)
            used += size
        self.line(*head, indent=indent)

    def rows(self, lines: Iterable[Sequence[Span]], *, indent: int = 2) -> None:
        """Add the lines of a table."""
        for spans in lines:
            self.line(*spans, indent=indent)

    def left_out(self, number: int, what: str = "", *, indent: int = 2) -> None:
        """Add a line with the number of items that are not shown, if any."""
        if number > 0:
            self.line(Span(f"… {count(number)} more {what}".rstrip(), "dim"), indent=indent)

    def _own(self, text: str) -> str:
        if text.isascii() and text.isprintable():
            return text
        if not self.style.unicode:
            text = text.translate(_ASCII)
        return clean(text.replace(NO_BREAK, " "), unicode=self.style.unicode)

    def text(self) -> str:
        """Return the page: its lines, each ended by a newline; none is a command to a CI system."""
        return disarm("".join(f"{line}\n" for line in self._lines))
