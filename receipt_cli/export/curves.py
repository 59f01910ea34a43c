"""Extract one curve per metric and phase from a log: distinct ascending steps, thinned to a format's limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from receipt_cli.definitions.metrics import Metric
from receipt_cli.events.table import curve_of
from receipt_cli.numeric.array_types import Floats
from receipt_cli.numeric.arrays import last_of_each
from receipt_cli.receipts.production import Product
from receipt_cli.redaction.mask import mask_secrets

MAX_CURVES = 400
"""Most metrics exported step by step."""
_EXACT = 2.0**53


class Phase(NamedTuple):
    """A phase of the receipt: index in ``/phases``, name, and prefix of its keys ("" for the primary phase)."""

    number: int
    name: str | None
    prefix: str


@dataclass(frozen=True, slots=True)
class Curve:
    """The values of one metric (base units; NaN and infinities too) at strictly ascending ``steps``.

    ``key`` is the phase's prefix followed by the registry's name, or by ``other/`` and the printed name.
    """

    key: str
    phase: Phase
    metric: Metric | None
    steps: Sequence[int]
    values: Sequence[float]


def read_curves(product: Product, phases: Sequence[Phase], most: int) -> tuple[list[Curve], list[str]]:
    """Return the curves of all phases in registry order, each of at most ``most`` values, and notes on omissions."""
    curves: list[Curve] = []
    lost, thinned, beyond, placeless = 0, 0, 0, 0
    for phase, key, metric, (places, values) in _printed(product, phases):
        exact = abs(places) < _EXACT
        steps, kept = last_of_each(places[exact], values[exact])
        lost += len(places) - len(steps)
        if not len(steps):
            placeless += 1
            continue
        if len(curves) == MAX_CURVES:
            beyond += 1
            continue
        chosen = _thin(kept, most)
        thinned += len(chosen) < len(steps)
        taken = [int(step) for step in steps[chosen].tolist()]
        curves.append(Curve(f"{phase.prefix}{key}", phase, metric, taken, kept[chosen].tolist()))
    notes = [
        (thinned, f"{thinned} of {len(curves)} curves have more than {most} steps and are sampled evenly"),
        (beyond, f"{beyond} metrics beyond the first {MAX_CURVES} are left out"),
        (placeless, f"{placeless} metrics are printed without a step and have no curves"),
        (lost, f"{lost} earlier values of repeated steps are left out"),
    ]
    return curves, [text for count, text in notes if count]


def _printed(product: Product, phases: Sequence[Phase]) -> Iterator[tuple[Phase, str, Metric | None, tuple[Floats, Floats]]]:
    by_name = product.derivation.registry.by_name
    for phase in phases:
        summary = product.derivation.summaries[phase.number]
        for name in sorted(summary.metrics, key=lambda name: by_name[name].id):
            yield phase, name, by_name[name], summary.series.curve(name)
        for name in sorted(summary.other_metrics):
            yield phase, f"other/{mask_secrets(name)}", None, curve_of(summary.series.table, summary.series.table.other(name))


def _thin(values: Floats, most: int) -> Sequence[int]:
    """Return the indices to keep: evenly spread, with both ends and the first non-finite value."""
    count = len(values)
    if count <= most:
        return range(count)
    spread = {place * (count - 1) // (most - 1) for place in range(most)}
    return sorted(spread.union(np.flatnonzero(~np.isfinite(values))[:1].tolist()))
