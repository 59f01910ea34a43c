"""Lay out lines, paragraphs and tables with rich, safe for a terminal and no wider than it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from io import StringIO
from typing import Literal, NamedTuple

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len, set_cell_size
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from receipt_cli.patterns import compile_later
from receipt_cli.render.scale import count
from receipt_cli.render.style import Role, Style
from receipt_cli.render.text import clean, disarm

_ASCII = str.maketrans("✓✗■▶▸–—−─…→×≠·│µ\u00a0▁▂▃▄▅▆▇█÷", "+x#>>----~>x!||u .:-=+*#@/")
"""Our own glyphs in ASCII, one cell for one cell, so that tables stay aligned."""
_STYLES: Mapping[Role, str] = {
    "plain": "", "heading": "bold", "strong": "bold", "dim": "dim", "good": "green", "warn": "yellow", "bad": "bold red",
    "accent": "cyan", "blue": "blue", "magenta": "magenta",
}  # fmt: skip
_ENDS = compile_later(r"(?m)(?: |\x1b\[[0-9;]*m)+$")
_GAP = 2
_LEAST = 8  # least cells of a shortened column of text


def say(text: str, style: Style) -> str:
    """Return ``text`` made safe to print, our own glyphs in ASCII if the style needs it; ``–`` if nothing is left of it."""
    return clean(text if style.unicode else text.translate(_ASCII), unicode=style.unicode) or "–"


def printed(*parts: RenderableType, style: Style) -> str:
    """Return ``parts`` as rich prints them, each line ended by a newline and none a command to a CI system."""
    console = Console(
        file=StringIO(), width=style.width, height=style.height, force_terminal=style.color, force_jupyter=False,
        color_system="standard" if style.color else None, no_color=not style.color, legacy_windows=False, highlight=False,
        markup=False, emoji=False,
    )  # fmt: skip
    with console.capture() as capture:
        for part in parts:
            console.print(part)
    text = _ENDS.sub(lambda end: end[0].replace(" ", ""), capture.get())
    return disarm(text if style.unicode else text.translate(_ASCII))


def elide(text: str, width: int) -> str:
    """Return ``text`` if it fits ``width`` cells, else its start and ``…``."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, width - 1).rstrip() + "…" if width > 0 else ""


def elide_start(text: str, width: int) -> str:
    """Return ``text`` if it fits ``width`` cells, else ``…`` and its end."""
    if cell_len(text) <= width:
        return text
    while text and (cell_len(text) > width - 1 or not cell_len(text[0])):  # a mark whose letter is gone has no cell
        text = text[1:]
    return f"…{text}" if width > 0 else ""


def elide_middle(text: str, width: int) -> str:
    """Return ``text`` if it fits ``width`` cells, else its start, ``…`` and its end."""
    if cell_len(text) <= width:
        return text
    start = elide(text, max(1, width // 2))
    return start + elide_start(text, width - cell_len(start) + 1)[1:]


class Span(str):
    """A text with a role, which decides its colour; a text without one is plain."""

    __slots__ = ("role",)
    role: Role

    def __new__(cls, text: str, role: Role = "plain") -> Span:
        """Return ``text`` with ``role``."""
        span = super().__new__(cls, text)
        span.role = role
        return span


class Column(NamedTuple):
    """One column of a table.

    ``least``: fewest cells that it may be shortened to (0: never shortened). ``drop``: columns with the highest
    number are dropped first, all of them together (0: never dropped).
    """

    title: str
    right: bool = False
    least: int = 0
    drop: int = 0


class Page:
    """Collects lines, paragraphs and tables for one ``Style``.

    For any input, ``text`` returns no control characters except newlines and the page's own colour codes, and
    no line wider than ``style.width``: every text is made safe as it is added.
    """

    def __init__(self, style: Style) -> None:
        self.style = style
        self._parts: list[RenderableType] = []
        self._gap = False

    def say(self, text: str) -> str:
        """Return ``text`` as it will be shown, to measure or shorten it; nothing for nothing."""
        return say(text, self.style) if text else ""

    def paste(self, text: str) -> None:
        """Add lines that were rendered for the same style."""
        self.add(Text.from_ansi(text.strip("\n")))

    def add(self, part: RenderableType, indent: int = 0) -> None:
        """Add a part that rich can print."""
        if self._gap and self._parts:
            self._parts.append("")
        self._parts.append(Padding(part, (0, 0, 0, indent), expand=False) if indent else part)
        self._gap = False

    def line(self, *spans: str, indent: int = 0) -> None:
        """Add one line, cut on its right if it is too wide."""
        self.add(self.joined([" " * indent, *spans]))

    def joined(self, spans: Iterable[str]) -> Text:
        """Return the spans as one line, which is never wrapped."""
        parts = ((self.say(span), _STYLES[span.role] if isinstance(span, Span) else "") for span in spans)
        return Text.assemble(*parts, no_wrap=True, overflow="ellipsis")

    def gap(self) -> None:
        """Separate what follows by a blank line from what is there."""
        self._gap = True

    def heading(self, title: str, *notes: str) -> None:
        """Add a blank line and a section title with notes after it."""
        self.gap()
        self.line(Span(title, "heading"), *(part for note in notes for part in ("  ", note)))

    def prose(self, text: str, role: Role = "plain", *, indent: int = 0, bullet: str = "", mark: Role | None = None) -> None:
        """Add ``text`` broken at blanks; later lines hang after the bullet, whose role is ``mark`` or else that of the text."""
        bullet = self.say(bullet)
        self._hang(Text(bullet, _STYLES[mark or role]), Text(self.say(text), _STYLES[role]), cell_len(bullet), indent)

    def flow(self, label: str, items: Iterable[Sequence[str]], *, indent: int = 2, label_width: int = 0) -> None:
        """Add ``label``, if any, and the items, texts or several spans each, with ``·`` between them; nothing without items."""
        shown = Text.assemble((" · ", "dim")).join(self.joined([item] if isinstance(item, str) else item) for item in items)
        if shown:
            self._hang(Text(label, "dim"), shown, max(label_width, cell_len(label)) + 2 if label else 0, indent)

    def _hang(self, head: Text, body: Text, width: int, indent: int) -> None:
        body.no_wrap, body.overflow = False, "fold"
        grid = Table.grid()
        grid.add_column(width=width)
        grid.add_column()
        grid.add_row(head, body)
        self.add(grid if width else body, indent)

    def left_out(self, number: int, what: str = "", *, indent: int = 2) -> None:
        """Add a line with the number of items that are not shown, if any."""
        if number > 0:
            self.line(Span(f"… {count(number)} more {what}".rstrip(), "dim"), indent=indent)

    def text(self) -> str:
        """Return the page: its lines, each ended by a newline."""
        return printed(*self._parts, style=self.style)


def figure_columns(title: str, *figures: str, least: int = 12) -> list[Column]:
    """Return a column of texts, and columns of figures, which stand on the right."""
    return [Column(title, least=least), *(Column(name, right=True) for name in figures)]


def write_table(
    page: Page, columns: Sequence[Column], rows: Sequence[Sequence[str]], *, indent: int = 2, hidden: int = 0, what: str = ""
) -> None:
    """Add a table to ``page``, unless it has no rows, and, below it, that ``hidden`` more rows (``what``) are not shown.

    Each row has one cell for every column. Columns that may be shortened are, the widest first; if that is not enough,
    whole columns are dropped.
    """
    if not rows:
        return
    cells = [[page.joined([cell]) for cell in row] for row in rows]
    widths = [max([cell_len(page.say(c.title)), *(row[i].cell_len for row in cells)]) for i, c in enumerate(columns)]
    least = [min(width, column.least or width) for width, column in zip(widths, columns, strict=True)]
    kept, room = list(range(len(columns))), page.style.width - indent
    while sum(least[i] + _GAP for i in kept) - _GAP > room and (worst := max(columns[i].drop for i in kept)):
        kept = [i for i in kept if columns[i].drop != worst]
    while sum(widths[i] + _GAP for i in kept) - _GAP > room and (able := [i for i in kept if widths[i] > least[i]]):
        widths[max(able, key=lambda i: widths[i])] -= 1
    titled = any(column.title for column in columns)
    table = Table(
        box=SIMPLE_HEAD if titled else None, show_header=titled, show_edge=False, pad_edge=False, header_style="dim",
        border_style="dim", padding=(0, 1 if titled else _GAP, 0, 0),
    )  # fmt: skip
    for i in kept:
        side: Literal["left", "right"] = "right" if columns[i].right else "left"
        table.add_column(Text(page.say(columns[i].title)), justify=side, width=widths[i], no_wrap=True)
    for row in cells:
        table.add_row(*(row[i] for i in kept))
    page.add(table, indent)
    page.left_out(hidden, what)


def write_texts(
    page: Page, columns: Sequence[Column], rows: Iterable[Sequence[str]], hidden: int = 0, *, indent: int = 2
) -> None:
    """Add a table of texts, its first column emphasised, and how many rows are ``hidden``."""
    write_table(page, columns, [[Span(first, "strong"), *rest] for first, *rest in rows], indent=indent, hidden=hidden)


def render_table(
    rows: Sequence[Mapping[str, str]], columns: Sequence[str], style: Style, *, numbers: Collection[str] | None = None
) -> str:
    """Return ``rows`` as a table of ``columns`` (keys of the rows and titles); a missing value is ``–``.

    Columns of numbers are right-aligned: ``numbers``, or if that is None, those whose texts look like it. Empty without
    rows.
    """
    page = Page(style)
    if not rows or not columns:
        return ""
    body = [[row.get(name) or "–" for name in columns] for row in rows]
    plan: list[Column] = []
    for index, name in enumerate(columns):
        numeric = name in numbers if numbers is not None else all(_numeric(row[index]) for row in body)
        plan.append(Column(name, right=numeric, least=0 if numeric else _LEAST))
    write_texts(page, plan, body, indent=0)
    return page.text()


def _numeric(text: str) -> bool:
    return text == "–" or (text[:1].isdigit() and not text.strip("0123456789.,% "))
