"""Read metric values from Parquet files of ``receipt parse --series``, found by the receipt's log."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from receipt_cli.documents.canonical import run_id
from receipt_cli.errors import InputError
from receipt_cli.io.duckdb import Damaged, Database


class SeriesFiles:
    """The Parquet files below ``root``, by the log in their footer; those of a log's earlier runs by file name.

    ``warn`` is called for each skipped file. Raises ``InputError`` if the folder does not exist, ``UsageError`` if DuckDB is not
    installed.
    """

    def __init__(self, root: Path, warn: Callable[[str], None]) -> None:
        if not root.is_dir():
            help_text = "receipt parse LOG --series FILE writes one"
            raise InputError("no such folder", where=str(root), try_=help_text)
        self._database = Database()
        self._warn = warn
        self._files: dict[str, Path] = {}
        for path in sorted(root.rglob("*.parquet")):
            log = self._log_of(path)
            if log is None:
                warn(f"{path.name} is skipped: not the series of a log")
            else:
                self._files.setdefault(path.stem if path.stem.startswith(f"{log}.run") else log, path)

    def _log_of(self, path: Path) -> str | None:
        statement = "SELECT value FROM parquet_kv_metadata(?) WHERE key = 'receipt_series'"
        try:
            log = json.loads(bytes(self._database.read_parquet(statement, path)[0][0]))["log_sha256"]
        except (Damaged, LookupError, ValueError, TypeError):
            return None
        return log if isinstance(log, str) else None

    def primary(self, document: Mapping[str, Any]) -> int | None:
        """Return the index of a receipt's primary phase, from 0; None if no file belongs to its log."""
        summaries = [phase["summary"] for phase in document["phases"]]
        known = run_id(document) in self._files and document["summary"] in summaries
        return summaries.index(document["summary"]) if known else None

    def values(self, document: Mapping[str, Any], phase: int, name: str) -> tuple[list[int], list[float]] | None:
        """Return steps and values of a registry metric in one phase, in log order, NaN for non-finite values.

        None if the file cannot be read.
        """
        path = self._files[run_id(document)]
        value = f"CASE WHEN list_contains(nonfinite, '{name}') THEN 'nan'::DOUBLE ELSE {name} END"
        wanted = f"phase_index = {phase} AND step IS NOT NULL"
        statement = f"SELECT step, v FROM (SELECT step, {value} AS v FROM read_parquet(?) WHERE {wanted}) WHERE v IS NOT NULL"
        try:
            rows = self._database.read_parquet(statement, path)
        except Damaged:
            self._warn(f"{path.name} is skipped: {name} cannot be read")
            return None
        return [row[0] for row in rows], [row[1] for row in rows]
