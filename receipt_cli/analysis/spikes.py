"""``spikes/1``: sudden rises of loss and gradient norm over their running average.

The running average is exponential, ``e ← (1 - a) e + a v`` with ``a`` = 0.01, from the first value on; a value is compared with
the average before it. Values that are not positive and finite are skipped. A metric is judged from its ``LEAST + 1``-st value
on; a metric with negative values is not, because factors then mean nothing.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple, TypeAlias

import numpy as np

from receipt_cli.events.model import Event
from receipt_cli.events.series import metric, read, steps_at
from receipt_cli.numeric.array_types import Floats, Mask
from receipt_cli.numeric.arrays import is_large
from receipt_cli.numeric.spill import pieces, take

Values: TypeAlias = "Sequence[float] | Floats"

SPIKES_RULE = "spikes/1"
ALPHA = 0.01
"""Weight of a new value in the running average; about a hundred values matter."""
LEAST = 20
"""First values that only build the average."""
FACTORS = {"loss": (2.0, 10.0), "grad_norm": (10.0, 100.0)}
"""Factors of warnings and critical spikes, by metric."""
MAX_FIRST = 20
"""Most spikes of a metric that are listed."""
TEXT = "spike_severity"
"""Text field of a rule for lines in which the trainer itself marks a spike."""

_BLOCK = 512
"""Values averaged together; their weights stay within float64."""
_PIECE = 256 * _BLOCK
"""Values of an array judged at once; they fit in the caches."""
_KEEP = 1 - ALPHA
_DECAY = list(accumulate([1.0] + [_KEEP] * _BLOCK, lambda a, b: a * b))
_GROWTH = [ALPHA / decay for decay in _DECAY[1:]]


class Spike(NamedTuple):
    """One record above the rule's factor of the running ``average`` before it."""

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


def find_spikes(steps: Sequence[Event], singles: Sequence[Event]) -> Spikes | None:
    """Return the spikes in step records, and those that the trainer marked in ``singles``.

    None if nothing is marked and no metric has more than ``LEAST`` values.
    """
    found = {name: spiked for name in FACTORS if (spiked := _of_metric(steps, name)) is not None}
    marked = sum(TEXT in event.texts for event in singles)
    return Spikes(found, marked or None) if found or marked else None


def _of_metric(steps: Sequence[Event], name: str) -> Spiked | None:
    values = read(steps, metric(name))
    found = spikes_of(values, *FACTORS[name])
    if found is None:
        return None
    count, critical, first = found
    numbers = steps_at(steps, metric(name), [index for index, _, _ in first])
    listed = tuple(Spike(step, value, average) for step, (_, value, average) in zip(numbers, first, strict=True))
    return Spiked(count, critical, listed)


def spikes_of(values: Values, warning: float, critical: float) -> tuple[int, int, list[tuple[int, float, float]]] | None:
    """Return the counts of all and of critical spikes, and the first spikes: index, value, average before it.

    None if there are too few values, or any is negative. Lists and arrays give the same bits.
    """
    return (_judge_array if is_large(values) else _judge)(values, warning, critical)


def _judge(values: Values, warning: float, critical: float) -> tuple[int, int, list[tuple[int, float, float]]] | None:
    usable = [(index, value) for index, value in enumerate(values) if 0 < value < math.inf]
    if len(usable) <= LEAST or any(value < 0 for value in values):
        return None
    count = worse = 0
    first: list[tuple[int, float, float]] = []
    start, total = usable[0][1], 0.0
    for place, (index, value) in enumerate(usable[1:]):
        inside = place % _BLOCK
        average = _DECAY[inside] * (start + total)
        if place + 1 >= LEAST and value > warning * average:
            count += 1
            worse += value > critical * average
            if len(first) < MAX_FIRST:
                first.append((index, value, average))
        total = value * _GROWTH[inside] + total
        if inside == _BLOCK - 1:
            start, total = _DECAY[_BLOCK] * (start + total), 0.0
    return count, worse, first


def _judge_array(values: Values, warning: float, critical: float) -> tuple[int, int, list[tuple[int, float, float]]] | None:
    """Array version of ``_judge``: the same sums in the same order, a block per pass."""
    every = np.asarray(values, np.float64)
    with np.errstate(invalid="ignore"):
        negative = any(bool((piece < 0).any()) for piece in pieces(every))
        number = sum(int(np.count_nonzero(_usable(piece))) for piece in pieces(every))
        kept = every if number == len(every) else take(every, _usable, number)
    if len(kept) <= LEAST or negative:
        return None
    count = worse = 0
    first: list[tuple[int, float, float]] = []
    start = float(kept[0])
    for begin in range(1, len(kept), _PIECE):
        later = kept[begin : begin + _PIECE]
        padded = np.zeros((-(-len(later) // _BLOCK), _BLOCK))
        padded.ravel()[: len(later)] = later
        with np.errstate(over="ignore"):
            padded *= np.array(_GROWTH)
            np.add.accumulate(padded, axis=1, out=padded)
            starts = array("d", [start])
            for total in padded[:, -1].tolist():
                starts.append(_DECAY[_BLOCK] * (starts[-1] + total))
            start = starts.pop()
            before = np.zeros(padded.shape)
            before[:, 1:] = padded[:, :-1]
            before += np.asarray(starts)[:, None]
            before *= np.array(_DECAY[:_BLOCK])
            averages = before.ravel()[: len(later)]
            above = later > warning * averages
        if begin == 1:
            above[: LEAST - 1] = False
        found = np.flatnonzero(above)
        count += len(found)
        worse += int(np.count_nonzero(later[found] > critical * averages[found]))
        listed = found[: MAX_FIRST - len(first)].tolist()
        first += [(_place_of(every, begin + index), float(later[index]), float(averages[index])) for index in listed]
    return count, worse, first


def _usable(values: Floats) -> Mask:
    return (values > 0) & (values < math.inf)


def _place_of(every: Floats, number: int) -> int:
    """Return the index of the ``number``-th usable value, from 0."""
    for begin in range(0, len(every), _PIECE):
        part = _usable(every[begin : begin + _PIECE])
        count = int(np.count_nonzero(part))
        if number < count:
            return begin + int(np.flatnonzero(part)[number])
        number -= count
    raise IndexError(number)
