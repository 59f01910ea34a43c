"""List the runs of a store: from the index if DuckDB is installed, else from the receipts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from receipt_cli.errors import UsageError
from receipt_cli.io.duckdb import check_installed
from receipt_cli.store.files import Store
from receipt_cli.store.flatten import read_row
from receipt_cli.store.index import open_store
from receipt_cli.store.query import plain
from receipt_cli.store.row_files import list_files

_COLUMNS = (
    "log_sha256", "generation", "run_id", "path", "name", "lane", "log_path", "run_at", "run_at_source", "grammar_id",
    "grammar_version", "origin", "steps_last", "loss_last", "val_loss_last", "outcome", "healthy", "failure_reason", "tags",
    "excluded", "refusal",
)  # fmt: skip


def list_runs(root: Path, progress: Callable[[int, int], None] | None = None) -> list[dict[str, Any]]:
    """Return the current receipt of each run by time, those without a time last, as ``receipt store ls --json`` prints them.

    A receipt that cannot be read has a ``refusal``. Raises ``InputError`` if the store does not exist.
    """
    try:
        check_installed()
    except UsageError:
        rows = _read(root)
    else:
        select = f"SELECT {', '.join(_COLUMNS)} FROM stored.receipts WHERE is_current"
        rows = [dict(zip(_COLUMNS, map(plain, row), strict=True)) for row in open_store(root, progress).run(select)]
    rows.sort(key=lambda row: (row["run_at"] is None, row["run_at"] or "", row["run_id"]))
    return [_shown(row) for row in rows]


def _read(root: Path) -> list[dict[str, Any]]:
    store = Store(root)
    store.check_exists()
    current = {receipt.path for receipt in store.receipts()}
    rows = (json.loads(read_row(files)) for files in list_files(store) if files.receipt.path in current)
    found = [{name: row.get(name) for name in _COLUMNS} for row in rows]
    return [{**row, "run_at": row["run_at"] and f"{row['run_at'].replace(' ', 'T')}Z"} for row in found]


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with the grammar as ``id@vN``, or the format of an import."""
    grammar = f"{row['grammar_id']}@v{row['grammar_version']}" if row["grammar_id"] else row["origin"]
    left_out = ("grammar_id", "grammar_version", "origin", "steps_last", "failure_reason")
    kept = {key: value for key, value in row.items() if key not in left_out}
    return {**kept, "grammar": grammar, "last_step": row["steps_last"], "failure": row["failure_reason"]}
