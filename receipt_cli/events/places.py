"""Where the figures of a metric are in the log: the lines of its first, last, least and greatest value."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from receipt_cli.events.table import Column, EventTable, place_of
from receipt_cli.numeric.statistics import Statistic


@dataclass(slots=True)
class Places:
    """Lines of figures, from 1; None where there is none. ``min`` and ``max`` are those of the window, and so are the counts
    of NaN and of infinities and the lines of the first of each."""

    first_line: int | None = None
    last_line: int | None = None
    min_line: int | None = None
    max_line: int | None = None
    nan_count: int = 0
    nan_line: int | None = None
    inf_count: int = 0
    inf_line: int | None = None
    resolution: float | None = None


def find_places(table: EventTable, printed: Column, windowed: Column, name: str, statistic: Statistic) -> Places:
    """Return where the figures of ``statistic`` are: of all values of a metric that are ``printed``, and those of its window."""

    def line(column: Column, place: int | None) -> int | None:
        return None if place is None else table.line_of(name, column.row(place))

    values = windowed.values
    odd = np.flatnonzero(~np.isfinite(values))
    nans, infinite = (odd[mine].tolist() for mine in (np.isnan(values[odd]), np.isinf(values[odd])))
    least, most = (None if value is None else place_of(values, value) for value in (statistic.min, statistic.max))
    return Places(
        line(printed, 0), line(printed, len(printed.values) - 1), line(windowed, least), line(windowed, most),
        len(nans), line(windowed, next(iter(nans), None)), len(infinite), line(windowed, next(iter(infinite), None)),
    )  # fmt: skip
