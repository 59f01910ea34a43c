"""Where the figures of a metric are in the log: the lines of its first, last, least and greatest value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from receipt_cli.events.model import Event
from receipt_cli.events.rows import RowRun
from receipt_cli.events.series import Figure, Selection
from receipt_cli.lazy_dataclass import dataclass
from receipt_cli.numeric.statistics import Statistic

if TYPE_CHECKING:
    from receipt_cli.numeric.array_types import Floats, Mask


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


def find_places(events: Sequence[Event], name: str, figure: Figure, within: Selection | None, statistic: Statistic) -> Places:
    """Return where the figures of ``statistic`` are, which are those of a metric over ``events``."""
    places = Places()
    for event in events:
        value = figure.of_event(event)
        if value is not None:
            line = event.line_of(name)
            places.first_line = places.first_line or line
            places.last_line = line
            if within is None or event.rule.event != "step" or id(event) in within.events:
                _take(places, value, line, statistic)
        found = figure.of_run(event.run) if event.run is not None else None
        if event.run is not None and found is not None:
            _take_run(places, event.run, name, found, None if within is None else within.masks.get(id(event)), statistic)
    return places


def _take(places: Places, value: float, line: int, statistic: Statistic) -> None:
    if math.isnan(value):
        places.nan_count += 1
        places.nan_line = places.nan_line or line
    elif math.isinf(value):
        places.inf_count += 1
        places.inf_line = places.inf_line or line
    if places.min_line is None and value == statistic.min:
        places.min_line = line
    if places.max_line is None and value == statistic.max:
        places.max_line = line


def _take_run(
    places: Places, run: RowRun, name: str, found: tuple[Floats, Mask | None], chosen: Mask | None, statistic: Statistic
) -> None:
    import numpy as np

    values, printed = found
    if not len(values) or (printed is not None and not printed.any()):
        return
    last = len(values) - 1
    places.first_line = places.first_line or run.line_of(name, 0 if printed is None else int(printed.argmax()))
    places.last_line = run.line_of(name, last if printed is None else last - int(printed[::-1].argmax()))
    inside = printed if chosen is None else chosen if printed is None else printed & chosen

    def first(hits: Mask) -> int | None:
        at = int(hits.argmax())
        return run.line_of(name, at) if hits[at] else None

    def among(hits: Mask) -> Mask:
        return hits if inside is None else np.logical_and(hits, inside, out=hits)

    nans, infinite = among(np.isnan(values)), among(np.isinf(values))
    places.nan_count += int(nans.sum())
    places.inf_count += int(infinite.sum())
    places.nan_line = places.nan_line or first(nans)
    places.inf_line = places.inf_line or first(infinite)
    if statistic.min is not None and places.min_line is None:
        places.min_line = first(among(values == statistic.min))
    if statistic.max is not None and places.max_line is None:
        places.max_line = first(among(values == statistic.max))
