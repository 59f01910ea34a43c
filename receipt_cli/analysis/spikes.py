"""``spikes/2``: sudden rises of loss and gradient norm over their running median.

A value is compared with the median of the ``WINDOW`` values before it. Values that are not positive and finite are skipped. A
metric is judged from its ``LEAST + 1``-st value on; a metric with negative values is not, because factors then mean nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from receipt_cli.events.table import NO_STEP, EventTable
from receipt_cli.numeric.array_types import Floats, Integers, Mask
from receipt_cli.numeric.spill import pieces, show, take

SPIKES_RULE = "spikes/2"
WINDOW = 100
"""Most values of a running median."""
LEAST = 20
"""Fewest of them."""
FACTORS = {"loss": (2.0, 10.0), "grad_norm": (10.0, 100.0)}
"""Factors of warnings and critical spikes, by metric."""
MAX_FIRST = 20
"""Most spikes of a metric that are listed."""
TEXT = "spike_severity"
"""Text field of a rule for lines in which the trainer itself marks a spike."""

PIECE = 1024 * WINDOW
"""Values judged at once; they fit in the caches."""
TOGETHER = 4096
"""Medians computed at once."""


class Spike(NamedTuple):
    """One record above the rule's factor of the median before it, its ``average``."""

    step: int | None
    value: float
    average: float


@dataclass(frozen=True, slots=True)
class Spiked:
    """The spikes of one metric; ``count`` includes the critical ones."""

    count: int
    critical_count: int
    first: tuple[Spike, ...]


class Spikes(NamedTuple):
    """Spikes by metric; ``marked_count`` counts those marked by the trainer (None: it never does)."""

    metrics: dict[str, Spiked]
    marked_count: int | None


def find_spikes(steps: EventTable, singles: EventTable) -> Spikes | None:
    """Return the spikes in step records, and those that the trainer marked in ``singles``.

    None if nothing is marked and no metric has more than ``LEAST`` values.
    """
    found = {name: spiked for name in FACTORS if (spiked := _of_metric(steps, name)) is not None}
    marked = sum(TEXT in row.texts for row in singles.of_sources(lambda source: bool(source.columns.texts)))
    return Spikes(found, marked or None) if found or marked else None


def _of_metric(steps: EventTable, name: str) -> Spiked | None:
    column = steps.metric(name)
    found = spikes_of(column.values, *FACTORS[name])
    if found is None:
        return None
    count, critical, first = found
    numbers = [int(steps.step[column.row(place)]) for place, _, _ in first]
    each = zip(numbers, first, strict=True)
    listed = tuple(Spike(None if step == NO_STEP else step, value, average) for step, (_, value, average) in each)
    return Spiked(count, critical, listed)


def spikes_of(values: Floats, warning: float, critical: float) -> tuple[int, int, list[tuple[int, float, float]]] | None:
    """Return the counts of all and of critical spikes, and the first spikes: index, value, median before it.

    ``values`` is float64 [n]. None if there are too few values, or any is negative.
    """
    with np.errstate(invalid="ignore"):
        negative = any(bool((piece < 0).any()) for piece in pieces(values))
        number = sum(int(np.count_nonzero(_usable(piece))) for piece in pieces(values))
        kept = values if number == len(values) else take(values, _usable, number)
    if len(kept) <= LEAST or negative:
        return None
    count = worse = 0
    first: list[tuple[int, float, float]] = []
    for begin in range(0, len(kept), PIECE):
        show(8 * PIECE)
        places = candidates(kept, begin, warning)
        for start in range(0, len(places), TOGETHER):
            some = places[start : start + TOGETHER]
            medians, own = medians_of(values_at(kept, places_before(some))), kept[some]
            found = np.flatnonzero(own > warning * medians)
            count += len(found)
            worse += int(np.count_nonzero(own[found] > critical * medians[found]))
            listed = found[: MAX_FIRST - len(first)].tolist()
            first += [(_place_of(values, int(some[at])), float(own[at]), float(medians[at])) for at in listed]
    return count, worse, first


def candidates(kept: Floats, begin: int, warning: float, least: int = LEAST) -> Integers:
    """Return the places, from ``begin`` on, of values that may be above the factor of the median before them.

    The first ``least`` values are none.

    A window lies in two blocks of ``WINDOW`` values, and half of its values are at most its median. So is the value of that
    rank in both blocks together.
    """
    later = kept[begin : begin + PIECE]
    blocks = np.full((-(-len(later) // WINDOW) + 1, WINDOW), math.inf)
    blocks[0] = kept[begin - WINDOW : begin] if begin else 0.0  # no bound for the values of the first block
    blocks[1:].ravel()[: len(later)] = later
    rank = WINDOW // 2 - 1
    bounds = np.partition(np.hstack([blocks[:-1], blocks[1:]]), rank, axis=1)[:, rank]
    places = begin + np.flatnonzero(later > warning * np.repeat(bounds, WINDOW)[: len(later)])
    return places[places >= least]


def places_before(places: Integers) -> Integers:
    """Return the places of the values before each place (int64 [k, WINDOW]), negative where there is none."""
    found: Integers = places[:, None] - np.arange(1, WINDOW + 1)
    return found


def values_at(column: Floats, places: Integers) -> Floats:
    """Return the values of a column at some places; NaN for a negative place."""
    return np.where(places >= 0, column[np.maximum(places, 0)], math.nan)


def medians_of(rows: Floats) -> Floats:
    """Return the median of each row, NaN left out; NaN for a row without a value."""
    counts = np.count_nonzero(~np.isnan(rows), axis=1)
    middle = np.stack([(counts - 1) // 2, counts // 2], axis=1)
    found: Floats = np.take_along_axis(np.sort(rows, axis=1), middle, axis=1).mean(axis=1)
    return found


def _usable(values: Floats) -> Mask:
    return (values > 0) & (values < math.inf)


def _place_of(every: Floats, number: int) -> int:
    """Return the index of the ``number``-th usable value, from 0."""
    for begin in range(0, len(every), PIECE):
        part = _usable(every[begin : begin + PIECE])
        count = int(np.count_nonzero(part))
        if number < count:
            return begin + int(np.flatnonzero(part)[number])
        number -= count
    raise IndexError(number)
