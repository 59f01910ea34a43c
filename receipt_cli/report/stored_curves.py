"""A folder of Parquet files that ``receipt parse --series`` wrote → the curves of the runs of a store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from receipt_cli.report.curves import thin
from receipt_cli.store.series_files import SeriesFiles

METRICS = ("loss", "grad_norm", "tokens_per_s", "tokens_per_s_per_device", "samples_per_s", "step_time_s")
POINTS = 240
MAX_CURVES = 4
"""Fewer than for a single log: hundreds of runs share one file."""


class SeriesFolder:
    """The curves in the Parquet files below ``root``; ``tell`` is told of files passed over. Raises as ``SeriesFiles``."""

    def __init__(self, root: Path, tell: Callable[[str], None]) -> None:
        self._files = SeriesFiles(root, tell)

    def curves(self, document: Mapping[str, Any]) -> list[list[Any]]:
        """Return the curves of a receipt's primary phase, as ``product_curves`` does; none where no file is of its log."""
        index = self._files.primary(document)
        made: list[list[Any]] = []
        for name in METRICS if index is not None else ():
            if index is not None and name in document["summary"]["metrics"] and len(made) < MAX_CURVES:
                found = self._files.values(document, index, name)
                curve = thin(*found, POINTS) if found is not None else None
                made += [[index, name, *curve]] if curve is not None else []
        return made
