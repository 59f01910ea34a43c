"""What a learned draft reads of its log: records, steps, the first and last value of each field, and what it leaves."""

from __future__ import annotations

import math
from collections.abc import Mapping

from receipt_cli.render.fields import items, real, text, whole
from receipt_cli.render.scale import count, number
from receipt_cli.render.terminal.page import Page, Span
from receipt_cli.render.terminal.style import Style
from receipt_cli.render.terminal.table import Column, align

_MAX_LINES = 5
_NOTHING = "–"


def render_learned(reading: Mapping[str, object], style: Style) -> str:
    """Return the table of ``reading``: ``grammar``, ``matched`` of ``records``, ``steps``, ``first_step``, ``last_step``,
    ``fields`` (``{name, records, first, last}``), ``unmatched_count`` and ``unmatched`` (``{line_number, text}``).
    """
    page = Page(style)
    page.line(
        Span(page.say(text(reading, "grammar") or "?"), "strong"),
        f" reads {_count(reading, 'matched')} of {_count(reading, 'records')} records: "
        f"{_count(reading, 'steps')} steps, {_count(reading, 'first_step')} to {_count(reading, 'last_step')}",
    )
    rows = [
        [
            Span(page.say(text(field, "name") or "?"), "strong"),
            Span(_count(field, "records")),
            Span(_value(field, "first")),
            Span(_value(field, "last")),
        ]
        for field in items(reading, "fields")
    ]
    if rows:
        columns = [
            Column("field", least=12),
            Column("records", right=True),
            Column("first", right=True),
            Column("last", right=True),
        ]
        page.rows(align(columns, rows, page.style.width), indent=0)
    unmatched = items(reading, "unmatched")[:_MAX_LINES]
    if unmatched:
        page.line(f"{_count(reading, 'unmatched_count')} lines look like metrics and are not read:")
    for line in unmatched:
        page.line(Span(f"{_count(line, 'line_number'):>8}  ", "dim"), page.say(text(line, "text") or ""))
    return page.text()


def _count(data: object, key: str) -> str:
    value = whole(data, key)
    return _NOTHING if value is None else count(value)


def _value(data: object, key: str) -> str:
    value = real(data, key)
    return _NOTHING if value is None or not math.isfinite(value) else number(value)
