"""Answers and views of a store as JSON, CSV and Parquet. The same store gives the same bytes."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from receipt_cli import __version__
from receipt_cli.errors import UsageError
from receipt_cli.io.atomic import make_folder
from receipt_cli.io.csv import safe_cell
from receipt_cli.io.duckdb import Answer, Database
from receipt_cli.store.views import VIEWS, View

SUFFIX = ".parquet"


def plain(value: Any) -> Any:
    """Return a DuckDB value as a JSON value.

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
    """Return unique column names: a repeated name gets a number."""
    taken: list[str] = []
    for name in answer.columns:
        number, unique = 2, name
        while unique in taken:
            number, unique = number + 1, f"{name}_{number}"
        taken.append(unique)
    return taken


def records(answer: Answer) -> list[dict[str, Any]]:
    """Return the rows as JSON objects."""
    keys = names(answer)
    return [dict(zip(keys, map(plain, row), strict=True)) for row in answer.rows]


def csv_text(answer: Answer) -> str:
    """Return the answer as CSV: a line of names first, null as empty, lists and structures as JSON, lines ended by ``\\n``.

    A text that begins like a formula gets an apostrophe in front; in JSON it is unchanged.
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


def view_columns(name: str | None = None) -> Answer | None:
    """Return every column of every view or of the view ``name``, with its type and meaning; None if there is no such view."""
    views = [view for view in VIEWS if name in (None, view.name)]
    rows = [(view.name, column.name, column.type, column.meaning) for view in views for column in view.columns]
    return Answer(("view", "column", "type", "meaning"), rows) if views else None


def export(database: Database, output: Path, view: str | None = None) -> list[tuple[Path, int]]:
    """Write one view to a file, or all views to the folder ``output``, one file each; return paths and row counts.

    ``output`` is a file if it ends in ``.parquet``; its default view is ``runs``. Each file replaces an older one atomically.
    Text is dictionary-encoded, pages are compressed with zstd, and the footer holds the columns' meanings. Raises
    ``UsageError`` for an unknown view, and ``OutputError``.
    """
    if output.suffix == SUFFIX:
        return [_write(database, _view(view or "runs"), output)]
    chosen = VIEWS if view is None else (_view(view),)
    make_folder(output)
    return [_write(database, each, output / f"{each.name}{SUFFIX}") for each in chosen]


def _view(name: str) -> View:
    found = next((view for view in VIEWS if view.name == name), None)
    if found is None:
        raise UsageError(f"there is no view {name!r}", why=f"the views are {', '.join(view.name for view in VIEWS)}")
    return found


def _write(database: Database, view: View, path: Path) -> tuple[Path, int]:
    meanings = json.dumps({column.name: column.meaning for column in view.columns}, ensure_ascii=False)
    footer = {"receipt_view": view.name, "receipt_columns": meanings, "receipt_version": __version__}
    database.write_parquet(f"SELECT * FROM {view.name} ORDER BY ALL", path, footer)
    [[count]] = database.run(f"SELECT count(*) FROM {view.name}")
    return path, count
