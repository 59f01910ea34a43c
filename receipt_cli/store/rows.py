"""The current receipts of a store as rows of plain values: from the index if DuckDB is installed, else from the receipts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from receipt_cli.errors import UsageError
from receipt_cli.io.duckdb import check_installed
from receipt_cli.store.columns import REAL, TIME
from receipt_cli.store.files import Store
from receipt_cli.store.flatten import list_files, read_row
from receipt_cli.store.index import open_store
from receipt_cli.store.kept_rows import kept_rows
from receipt_cli.store.query import plain
from receipt_cli.store.views import structure

Row = dict[str, Any]


def current_rows(root: Path, fields: Sequence[str], progress: Callable[[int, int], None] | None = None) -> list[Row]:
    """Return some ``fields`` of the index (``views.structure``) for the current receipt of each run, in order of ``run_id``.

    Times are RFC 3339 in UTC, unknown values None. ``run_id`` is always among the fields. ``progress`` as ``open_store`` has
    it. Raises ``InputError`` if the store does not exist.
    """
    names = list(dict.fromkeys((*fields, "run_id")))
    try:
        check_installed()
    except UsageError:
        rows = list(_read(root, names))
    else:
        select = f"SELECT {', '.join(names)} FROM stored.receipts WHERE is_current"
        rows = [dict(zip(names, map(plain, row), strict=True)) for row in open_store(root, progress, documents=False).run(select)]
    return sorted(rows, key=lambda row: str(row["run_id"]))


def _read(root: Path, names: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of the current receipts; rows that were kept when these were written need no reading."""
    store = Store(root)
    store.check_exists()
    current = {receipt.path for receipt in store.receipts()}
    files = [each for each in list_files(store) if each.receipt.path in current]
    kept = dict(kept_rows(root, {each.name: each.stamp for each in files}))
    kinds = {name: structure()[name] for name in names}
    for each in files:
        row = json.loads(kept.get(each.name) or read_row(each))
        yield {name: _as_stored(row.get(name), kind) for name, kind in kinds.items()}


def _as_stored(value: Any, kind: object) -> Any:
    """Return a value as the index returns it: numbers of its type, times in RFC 3339."""
    if value is None:
        return None
    if isinstance(kind, dict):
        return {name: _as_stored(value.get(name), inner) for name, inner in kind.items() if name in value}
    if isinstance(kind, list):
        return [_as_stored(each, kind[0]) for each in value]
    if kind == REAL:
        return float(value)
    return f"{value.replace(' ', 'T')}Z" if kind == TIME else value
