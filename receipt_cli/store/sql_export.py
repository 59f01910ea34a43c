"""The views of a store → Parquet files, which any program for tables reads. The same store gives the same bytes."""

from __future__ import annotations

import json
from pathlib import Path

from receipt_cli import __version__
from receipt_cli.errors import UsageError
from receipt_cli.io.atomic import make_folder
from receipt_cli.io.duckdb import Database
from receipt_cli.store.views import VIEWS, View

SUFFIX = ".parquet"


def export(database: Database, output: Path, view: str | None = None) -> list[tuple[Path, int]]:
    """Write the view ``view`` to a file, or every view to the folder ``output``, a file each; return paths and row counts.

    ``output`` is a file where it ends in ``.parquet``; without a name of a view that is ``runs``. Each file replaces an older
    one as a whole. Text is dictionary-encoded, pages are compressed with zstd, and the footer holds what each column says.
    Raises ``UsageError`` for an unknown view and ``OutputError``.
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
