"""Align rows of spans in columns that fit a width; numbers are never cut."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from receipt_cli.render.terminal.page import Page, Span
from receipt_cli.render.terminal.style import Style
from receipt_cli.render.terminal.text import cells, elide, pad

GAP = 2
_LEAST = 8  # cells that a shortened column of text keeps


@dataclass(frozen=True, slots=True)
class Column:
    """One column.

    ``least``: fewest cells that it may be shortened to (0: never shortened). ``drop``: columns with the highest
    number are dropped first, all of them together (0: never dropped).
    """

    title: str
    right: bool = False
    least: int = 0
    drop: int = 0


def natural_width(columns: Sequence[Column], rows: Sequence[Sequence[Span]]) -> int:
    """Return the cells that the table fills when nothing is shortened."""
    return sum(_natural(columns, rows)) + GAP * (len(columns) - 1)


def least_width(columns: Sequence[Column], rows: Sequence[Sequence[Span]]) -> int:
    """Return the cells that the table fills when every column that may be shortened is, and none dropped."""
    return sum(_shortest(columns, _natural(columns, rows))) + GAP * (len(columns) - 1)


def align(columns: Sequence[Column], rows: Sequence[Sequence[Span]], width: int) -> list[list[Span]]:
    """Return the lines of a table, its titles first, in at most ``width`` cells.

    Each row has one span for every column. Columns that may be shortened are (the widest first); if that is
    not enough, whole columns are dropped. Only a table whose undroppable columns do not fit comes out wider.
    """
    kept = list(range(len(columns)))
    natural = _natural(columns, rows)
    shortest = _shortest(columns, natural)
    while sum(shortest[i] for i in kept) + GAP * (len(kept) - 1) > width:
        worst = max(columns[i].drop for i in kept)
        if not worst:
            break
        kept = [i for i in kept if columns[i].drop != worst]
    widths = {i: max(shortest[i], min(natural[i], width)) for i in kept}
    excess = sum(widths.values()) + GAP * (len(kept) - 1) - width
    while excess > 0:
        able = [i for i in kept if widths[i] > shortest[i]]
        if not able:
            break
        widest = max(able, key=lambda i: widths[i])
        widths[widest] -= 1
        excess -= 1
    titles = [Span(column.title, "dim") for column in columns]
    return [[part for i in kept for part in _cell(row[i], widths[i], columns[i].right, i == kept[-1])]
            for row in ([titles, *rows] if any(column.title for column in columns) else rows)]  # fmt: skip


def write_table(
    page: Page, columns: Sequence[Column], rows: Sequence[Sequence[Span]], *, indent: int = 2, hidden: int = 0, what: str = ""
) -> None:
    """Add a table to ``page`` and, below it, that ``hidden`` more rows (``what``) are not shown."""
    page.rows(align(columns, rows, page.style.width - indent), indent=indent)
    page.left_out(hidden, what)


def render_table(
    rows: Sequence[Mapping[str, str]], columns: Sequence[str], style: Style, *, numbers: Collection[str] | None = None
) -> str:
    """Return ``rows`` as a table of ``columns`` (keys of the rows and titles); a missing value is ``–``.

    Columns of numbers are right-aligned: ``numbers``, or where that is None those whose texts look like it.
    Where the width is too small even for shortened texts, each row is
    a block of ``column  value`` lines. Empty when there are no rows.
    """
    page = Page(style)
    body = [[Span(page.say(row.get(name, ""))) for name in columns] for row in rows]
    if not body or not columns:
        return ""
    titles = [page.say(name) for name in columns]
    plan: list[Column] = []
    for index, title in enumerate(titles):
        numeric = columns[index] in numbers if numbers is not None else all(_numeric(row[index].text) for row in body)
        plan.append(Column(title, right=numeric, least=0 if numeric else _LEAST))
    body = [[row[0]._replace(role="strong"), *row[1:]] for row in body]
    if least_width(plan, body) <= style.width:
        write_table(page, plan, body, indent=0)
        return page.text()
    label = min(max(map(cells, titles)), style.width // 3)
    for row in body:
        page.gap()
        for title, span in zip(titles, row, strict=True):
            page.line(Span(pad(elide(title, label), label), "dim"), "  ", span)
    return page.text()


def _numeric(text: str) -> bool:
    return text == "–" or (text[:1].isdigit() and not text.strip("0123456789.,%\u202f "))


def _natural(columns: Sequence[Column], rows: Sequence[Sequence[Span]]) -> list[int]:
    titles = [cells(column.title) for column in columns]
    return [max([title, *(cells(row[i].text) for row in rows)]) for i, title in enumerate(titles)]


def _shortest(columns: Sequence[Column], natural: Sequence[int]) -> list[int]:
    return [min(n, max(c.least, 1)) if c.least else n for c, n in zip(columns, natural, strict=True)]


def _cell(span: Span, width: int, right: bool, last: bool) -> list[Span]:
    text = elide(span.text, width)
    blanks = Span(" " * (width - cells(text)))
    gap = [] if last else [Span(" " * GAP)]
    return [blanks, Span(text, span.role), *gap] if right else [Span(text, span.role), blanks, *gap]
