"""Find the points at which a figure changes over the runs of a lane: steps to another level, and creeps.

A single outlier is a spike, not a change: a Hampel filter finds it by the median of its neighbours, and it is replaced before
the search. A sequence of runs contains a change if the largest rank statistic over all splits (a step), or the rank
correlation with time (a creep), exceeds that of shuffled values. A step divides its sequence in two, and each half is searched
again. The Bayesian information criterion (BIC, Schwarz) decides between a creep and a series of steps.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Literal

import numpy as np

from receipt_cli.numeric.array_types import Floats

Kind = Literal["step", "creep"]

MIN_SIDE = 4
"""Fewest runs on each side of a step: fewer can always be chance, or a spike."""
MIN_CREEP = 10
"""Fewest runs of a creep."""
ALPHA = 0.001
"""Probability of a false alarm in a sequence without a change."""
SHUFFLES = 4000
SEED = 20_260_101
_WINDOW = 5
_SPIKE = 5.0
"""Robust standard deviations from the median of its neighbours beyond which a run is a spike."""
_NOISE = 1.4826


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a figure: the first run that shows it, the level before, and the level after (of a creep: at its end).

    ``choices`` are the positions at which the change may equally have begun, including ``at``, best fit first.
    """

    kind: Kind
    at: int
    before: float
    after: float
    choices: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Findings:
    """The changes of one figure, in order, and the spikes."""

    changes: tuple[Change, ...]
    spikes: tuple[int, ...]


def find_changes(values: Sequence[float], least: float = 0.02, *, relative: bool = True) -> Findings:
    """Return the changes by ``least`` or more in ``values`` (n,), one finite value per run in order of time.

    ``least`` is relative to the level before, or absolute without ``relative`` (a rate from 0 to 1). Deterministic.
    """
    data = np.asarray(values, np.float64)
    calm, spikes = _without_spikes(data) if relative else (data, [])
    candidates = sorted(_search(calm, 0, len(calm)), key=lambda change: change.at)
    level = np.median if relative else np.mean  # the mean of passes is the pass rate
    edges = [0, *(change.at for change in candidates), len(calm)]
    changes = [
        replace(c, before=float(level(calm[begin : c.at])), after=float(level(calm[c.at : end]))) if c.kind == "step" else c
        for c, begin, end in zip(candidates, edges, edges[2:], strict=False)
    ]
    large = [c for c in changes if abs(c.after - c.before) >= (least * abs(c.before) if relative else least)]
    return Findings(tuple(large), tuple(spikes))


def _without_spikes(data: Floats) -> tuple[Floats, list[int]]:
    """Return the values with single outlying runs replaced by the median around them, and the runs' indices."""
    calm = data.copy()
    spikes: list[int] = []
    if len(data) < _WINDOW:
        return calm, spikes
    noise = _noise(data)
    for i in range(len(data)):
        low, high = max(0, i - _WINDOW), min(len(data), i + _WINDOW + 1)
        left, right = data[low:i], data[i + 1 : high]
        centres = [float(np.median(side)) for side in (left[-3:], right[:3]) if len(side)]
        if noise > 0 and centres and all(abs(data[i] - centre) > _SPIKE * noise for centre in centres):
            calm[i] = float(np.median(np.concatenate([left, right])))
            spikes.append(i)
    return calm, spikes


def _noise(data: Floats) -> float:
    """Return a standard deviation from the differences of neighbours, which levels and single spikes do not affect."""
    steps = np.abs(np.diff(data))
    return _NOISE * float(np.median(steps)) / math.sqrt(2) or 1e-9 * float(np.abs(data).max())


def _search(data: Floats, start: int, stop: int) -> list[Change]:
    """Return the changes within ``data[start:stop]``: steps, or a creep if its BIC is better."""
    part = data[start:stop]
    steps = _steps(part, 0)
    creep = _best_creep(part) if _trends(part) else None
    if creep is not None:
        residual, at, before, after = creep
        edges = [0, *sorted(step.at for step in steps), len(part)]
        stairs = sum(_residual(part[begin:end]) for begin, end in pairwise(edges))
        if _bic(len(part), residual, 1) < _bic(len(part), stairs, len(steps)):
            near = [at + off for off in (0, -1, 1, -2, 2, -3, 3) if 0 < at + off < len(part)]
            change = Change("creep", start + at, before, after, tuple(start + place for place in near))
            return [*_search(data, start, start + at), change]
    return [replace(step, at=start + step.at, choices=tuple(start + c for c in step.choices)) for step in steps]


def _steps(part: Floats, start: int) -> list[Change]:
    """Return the steps within ``part``, which begins at ``start``; their levels are set later."""
    if len(part) < 2 * MIN_SIDE or (part == part[0]).all() or _statistics(part[None])[0][0] <= _bounds(_ties(part))[0]:
        return []
    at, choices = _best_step(part)
    change = Change("step", start + at, math.nan, math.nan, tuple(start + place for place in choices))
    return [*_steps(part[:at], start), change, *_steps(part[at:], start + at)]


def _trends(part: Floats) -> bool:
    """Return whether values rise or fall with time more than shuffled ones do."""
    if len(part) < MIN_CREEP or (part == part[0]).all():
        return False
    return bool(_statistics(part[None])[1][0] > _bounds(_ties(part))[1])


def _residual(part: Floats) -> float:
    return float(((part - part.mean()) ** 2).sum())


def _bic(count: int, residual: float, changes: int) -> float:
    """Return Schwarz's criterion of a fit with ``changes`` changes, each a position and a size."""
    return count * math.log(max(residual, 1e-300)) + 2 * changes * math.log(count)


def _statistics(rows: Floats) -> tuple[Floats, Floats]:
    """Return for each row (k, n) the largest standardised rank sum over its splits, and its rank correlation with time."""
    count = rows.shape[1]
    ranks = np.argsort(np.argsort(rows, axis=1, kind="stable"), axis=1).astype(np.float64)
    for row, rank in zip(rows, ranks, strict=True):  # equal values share their mean rank
        _, which = np.unique(row, return_inverse=True)
        if which.max() + 1 < count:
            rank[:] = (np.bincount(which, rank) / np.bincount(which))[which]
    centred = ranks - ranks.mean(axis=1, keepdims=True)
    spread = np.sqrt((centred**2).sum(axis=1) / (count - 1))
    spread[spread == 0] = 1.0
    sizes = np.arange(MIN_SIDE, count - MIN_SIDE + 1)
    sums = np.cumsum(centred, axis=1)[:, sizes - 1]
    split = np.abs(sums / np.sqrt(sizes * (count - sizes) / count)).max(axis=1) / spread
    time = np.arange(count) - (count - 1) / 2
    trend = np.abs(centred @ time) / np.sqrt((time**2).sum()) / spread
    return split, trend


def _ties(part: Floats) -> tuple[int, ...]:
    """Return how many runs share each value, smallest value first; only this determines the distribution of ranks."""
    return tuple(np.unique(part, return_counts=True)[1].tolist())


@lru_cache(maxsize=512)
def _bounds(ties: tuple[int, ...]) -> tuple[float, float]:
    """Return the 1 - ``ALPHA`` quantiles of the split and trend statistics of shuffled values."""
    values = np.repeat(np.arange(len(ties), dtype=np.float64), ties)
    draw = np.random.default_rng([SEED, len(values)])
    rows = draw.permuted(np.tile(values, (SHUFFLES, 1)), axis=1)
    split, trend = _statistics(rows)
    return float(np.quantile(split, 1 - ALPHA)), float(np.quantile(trend, 1 - ALPHA))


def _best_step(part: Floats) -> tuple[int, tuple[int, ...]]:
    """Return the position of the best-fitting step, and the positions that fit nearly as well."""
    places = np.arange(MIN_SIDE, len(part) - MIN_SIDE + 1)
    total, squares = np.cumsum(part), np.cumsum(part**2)
    left = squares[places - 1] - total[places - 1] ** 2 / places
    rest = len(part) - places
    right = squares[-1] - squares[places - 1] - (total[-1] - total[places - 1]) ** 2 / rest
    residual = np.maximum(left + right, 0.0)
    best = int(residual.argmin())
    variance = max(float(residual[best]) / max(len(part) - 2, 1), 1e-300)
    near = np.flatnonzero((residual - residual[best]) / variance <= 4.0)
    order = near[np.argsort(np.abs(near - best), kind="stable")]
    return int(places[best]), tuple(int(places[i]) for i in order)


def _best_creep(part: Floats) -> tuple[float, int, float, float]:
    """Return (residual, first run, level before, level at the end) of the best line that starts at a constant level."""
    count = len(part)
    best = math.inf, 0, math.nan, math.nan
    for at in range(0, count - MIN_CREEP + 1):
        ramp = np.maximum(0.0, np.arange(count) - max(at - 1, 0)).astype(np.float64)
        design = np.column_stack([np.ones(count), ramp])
        fit, *_ = np.linalg.lstsq(design, part, rcond=None)
        residual = float(((part - design @ fit) ** 2).sum())
        if residual < best[0]:
            best = residual, at, float(fit[0]), float(fit[0] + fit[1] * ramp[-1])
    return best
