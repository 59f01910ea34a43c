"""Where the figures of a metric are in the log: the lines of its first, last, least and greatest value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from receipt_cli.events.series import Numbers, Piece, place_of
from receipt_cli.numeric.array_types import Integers
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


def find_places(printed: Sequence[Piece], windowed: Sequence[Piece], name: str, statistic: Statistic) -> Places:
    """Return where the figures of ``statistic`` are: of all values of a metric that are ``printed``, and those of its window."""
    places = Places(printed[0].line_of(name, 0), printed[-1].line_of(name, len(printed[-1].values) - 1))
    for piece in windowed:
        nans, infinite = _not_finite(piece.values)
        places.nan_count += len(nans)
        places.inf_count += len(infinite)
        if len(nans):
            places.nan_line = places.nan_line or piece.line_of(name, int(nans[0]))
        if len(infinite):
            places.inf_line = places.inf_line or piece.line_of(name, int(infinite[0]))
        if places.min_line is None and statistic.min is not None and (at := place_of(piece.values, statistic.min)) is not None:
            places.min_line = piece.line_of(name, at)
        if places.max_line is None and statistic.max is not None and (at := place_of(piece.values, statistic.max)) is not None:
            places.max_line = piece.line_of(name, at)
    return places


def _not_finite(values: Numbers) -> tuple[Sequence[int] | Integers, Sequence[int] | Integers]:
    """Return the places of NaN and of infinities."""
    if isinstance(values, list):
        odd = [place for place, value in enumerate(values) if value - value != 0]
        return [place for place in odd if math.isnan(values[place])], [place for place in odd if math.isinf(values[place])]
    rows = np.flatnonzero(~np.isfinite(values))
    nans = np.isnan(values[rows])
    return rows[nans], rows[~nans]
