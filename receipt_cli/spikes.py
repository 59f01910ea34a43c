"""``spikes/1``: sudden rises of loss and gradient norm over their running average."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Spike(NamedTuple):
    """One record beyond the rule's factor of the running ``average`` before it."""

    step: int | None
    value: float
    average: float


@dataclass(frozen=True, slots=True)
class Spiked:
    """The spikes of one metric: ``count`` holds the critical ones, too."""

    count: int
    critical_count: int
    first: tuple[Spike, ...]


class Spikes(NamedTuple):
    """Spikes by metric; ``marked_count`` are those that the trainer itself marked (None: it never does)."""

    metrics: dict[str, Spiked]
    marked_count: int | None
