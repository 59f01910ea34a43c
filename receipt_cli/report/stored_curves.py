"""A folder of Parquet files that ``receipt parse --series`` wrote → the curves of the runs of a store."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from receipt_cli.errors import InputError
from receipt_cli.report.curves import thin
from receipt_cli.store.database import Damaged, Database

METRICS = ("loss", "grad_norm", "tokens_per_s", "tokens_per_s_per_device", "samples_per_s", "step_time_s")
POINTS = 240
MAX_CURVES = 4
"""Fewer than for a single log: hundreds of runs share one file."""


class SeriesFolder:
    """The Parquet files below ``root``, found by the log that their footer names; ``tell`` is told of those passed over.

    Raises ``InputError`` where there is no such folder, and ``UsageError`` where DuckDB is not installed.
    """

    def __init__(self, root: Path, tell: Callable[[str], None]) -> None:
        if not root.is_dir():
            help_text = "receipt parse LOG --series FILE writes one"
            raise InputError("there is no such folder of series", where=str(root), try_=help_text)
        self._database = Database()
        self._tell = tell
        self._files: dict[str, Path] = {}
        for path in sorted(root.rglob("*.parquet")):
            log = self._log_of(path)
            if log is None:
                tell(f"{path.name} is passed over: not the series of a log")
            else:
                self._files.setdefault(log, path)

    def _log_of(self, path: Path) -> str | None:
        statement = "SELECT value FROM parquet_kv_metadata(?) WHERE key = 'receipt_series'"
        try:
            found = json.loads(bytes(self._database.read_parquet(statement, path)[0][0]))["log_sha256"]
        except (Damaged, LookupError, ValueError, TypeError):
            return None
        return found if isinstance(found, str) else None

    def curves(self, document: Mapping[str, Any]) -> list[list[Any]]:
        """Return the curves of a receipt's primary phase, as ``product_curves`` does; none where no file is of its log."""
        path = self._files.get(document["derivation"]["log"]["sha256"])
        summaries = [phase["summary"] for phase in document["phases"]]
        if path is None or document["summary"] not in summaries:
            return []
        index = summaries.index(document["summary"])
        made: list[list[Any]] = []
        for name in METRICS:
            if name in document["summary"]["metrics"] and len(made) < MAX_CURVES:
                curve = self._curve(path, index, name)
                made += [[index, name, *curve]] if curve is not None else []
        return made

    def _curve(self, path: Path, phase: int, name: str) -> list[Any] | None:
        value = f"CASE WHEN list_contains(nonfinite, '{name}') THEN 'nan'::DOUBLE ELSE {name} END"
        wanted = f"phase_index = {phase} AND step IS NOT NULL"
        statement = f"SELECT step, v FROM (SELECT step, {value} AS v FROM read_parquet(?) WHERE {wanted}) WHERE v IS NOT NULL"
        try:
            rows = self._database.read_parquet(statement, path)
        except Damaged:
            self._tell(f"{path.name} is passed over: {name} cannot be read")
            return None
        return thin([row[0] for row in rows], [row[1] for row in rows], POINTS)
