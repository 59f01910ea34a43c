"""``bottleneck/1``: what holds a run up, from the medians of its steady state."""

from __future__ import annotations

from typing import Literal, NamedTuple

Verdict = Literal["inference", "training", "data", "compute", "balanced", "unknown"]


class Bottleneck(NamedTuple):
    """The verdict, the figures it rests on (base units; slopes per step), and the comparison that decided."""

    verdict: Verdict
    medians: dict[str, float]
    because: str
