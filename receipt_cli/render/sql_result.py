"""The answer to a question of SQL, as an aligned table: numbers as they are, since nobody knows their unit."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from receipt_cli.render.terminal.style import Style
from receipt_cli.render.terminal.table import render_table

_DIGITS = 6


def render_answer(columns: Sequence[str], rows: Sequence[Mapping[str, Any]], style: Style) -> str:
    """Return ``rows`` of JSON values as a table of ``columns``; floats with six significant digits. Empty without rows."""
    numbers = {name for name in columns if all(_is_number(row[name]) for row in rows)}
    return render_table([{name: _text(row[name]) for name in columns} for row in rows], columns, style, numbers=numbers)


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.{_DIGITS}g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
