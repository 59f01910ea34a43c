"""Receipts and logs → the two sides of the question whether one run reproduces another."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, TypeAlias

from receipt_cli.comparison.comparable import Document
from receipt_cli.comparison.rerun import METRICS, Points, Side
from receipt_cli.io.source import Progress
from receipt_cli.receipts.open import read_given

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from receipt_cli.events.series import Series
    from receipt_cli.store.series_files import SeriesFiles

    Floats: TypeAlias = NDArray[np.float64]


def load_side(
    file: str,
    steps: int,
    progress: Callable[[str], AbstractContextManager[Progress | None]],
    stored: SeriesFiles | None = None,
) -> tuple[Side, list[str]]:
    """Return the run of ``file`` (a receipt or a log) with its first ``steps`` records, and notes for the person who asked.

    The records of a receipt are those of its log in ``stored``. Raises ``ReceiptError``.
    """
    document, product = read_given(file, environ=dict(os.environ), progress=progress)
    if product is None:
        return Side(file, document, None if stored is None else stored_points(stored, document, steps)), []
    return Side(file, document, read_points(product.series, steps)), [f"{file}: {text}" for text in product.notes]


def read_points(series: Series, count: int) -> dict[str, Points]:
    """Return the values of the metrics that are compared at their first ``count`` steps.

    Of a step that is printed twice the last counts.
    """
    return {name: _first(*series.curve(name), count) for name in METRICS if name in series}


def stored_points(stored: SeriesFiles, document: Document, count: int) -> dict[str, Points] | None:
    """Return the same of a receipt's log, as far as a Parquet file holds it; None where there is none of that log."""
    import numpy as np

    phase = stored.primary(document)
    if phase is None:
        return None
    known = {name: stored.values(document, phase, name) for name in METRICS if name in document["summary"]["metrics"]}
    return {
        name: _first(np.array(found[0], np.float64), np.array(found[1], np.float64), count)
        for name, found in known.items()
        if found is not None
    }


def _first(steps: Floats, values: Floats, count: int) -> Points:
    import numpy as np

    first, at = np.unique(steps[::-1], return_index=True)  # the first of the reversed is the last
    return list(zip(map(int, first[:count].tolist()), values[::-1][at[:count]].tolist(), strict=True))
