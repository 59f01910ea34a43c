"""An answer of the store → what JSON and CSV hold, and what the views are."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

from receipt_cli.io.csv import safe_cell
from receipt_cli.io.duckdb import Answer
from receipt_cli.store.views import VIEWS


def plain(value: Any) -> Any:
    """Return a value of DuckDB's as JSON has it.

    NaN and infinities become null, times RFC 3339 in UTC, intervals seconds, bytes hexadecimal digits.
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, datetime):
        return f"{value.isoformat()}Z"
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, Mapping):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [plain(item) for item in value]
    return str(value)


def names(answer: Answer) -> list[str]:
    """Return the names of the columns, each once: a name that stands again gets a number."""
    taken: list[str] = []
    for name in answer.columns:
        number, unique = 2, name
        while unique in taken:
            number, unique = number + 1, f"{name}_{number}"
        taken.append(unique)
    return taken


def records(answer: Answer) -> list[dict[str, Any]]:
    """Return the rows as objects that JSON holds."""
    keys = names(answer)
    return [dict(zip(keys, map(plain, row), strict=True)) for row in answer.rows]


def csv_text(answer: Answer) -> str:
    """Return the answer as CSV: a line of names first, null as nothing, lists and structures as JSON, lines ended by ``\\n``.

    A text that begins as a formula does has an apostrophe before it; as JSON it stands as it is.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(safe_cell, names(answer)))
    writer.writerows([_cell(plain(value)) for value in row] for row in answer.rows)
    return out.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, bool | dict | list):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return safe_cell(value)


def view_columns() -> Answer:
    """Return every column of every view, with its type and meaning."""
    rows = [(view.name, column.name, column.type, column.meaning) for view in VIEWS for column in view.columns]
    return Answer(("view", "column", "type", "meaning"), rows)
