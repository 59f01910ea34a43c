"""Seconds by the class that they are lost to, gathered span by span."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from receipt_cli.analysis.goodput.model import Part


@dataclass(slots=True)
class _Class:
    seconds: list[float] = field(default_factory=list)
    overlapped: list[float] = field(default_factory=list)
    count: int = 0
    inferred: bool = False
    shared: bool = False
    dark: bool = False


class Tally:
    """What was found of each class. A class of which one span is not known is unknown as a whole: a part of it would pass
    for all of it."""

    def __init__(self, grain: float = 0.0) -> None:
        """``grain`` is how many seconds the stamps may be off: spans that add up to less than nothing by more prove nothing."""
        self._grain = grain
        self._classes: dict[str, _Class] = {}

    def add(
        self, name: str, *seconds: float, measured: bool, overlapped: float = 0.0, count: int = 1, shared: bool = False
    ) -> None:
        """Add spans; ``overlapped`` are the seconds of them that ran beside other work, ``shared`` if another class may
        have their time: if that leaves a class nothing at all, nothing is known of it."""
        entry = self._classes.setdefault(name, _Class())
        entry.seconds += seconds
        entry.count += count
        entry.inferred |= not measured
        entry.shared |= shared
        if overlapped > 0:
            entry.overlapped.append(overlapped)

    def miss(self, name: str) -> None:
        """Note a span of which nobody knows how long it was."""
        self._classes.setdefault(name, _Class()).dark = True

    def part(self, name: str) -> Part:
        """Return what is known of a class."""
        entry = self._classes.get(name)
        if entry is None or entry.dark or not entry.seconds:
            return Part(None, "unknown")
        total = math.fsum(entry.seconds)
        if total < -self._grain * entry.count or (entry.shared and total <= 0):
            return Part(None, "unknown")
        beside = math.fsum(entry.overlapped) if entry.overlapped else None
        return Part(max(0.0, total), "inferred" if entry.inferred else "measured", entry.count, beside)

    def total(self, names: Iterable[str]) -> float:
        """Return the seconds of some classes together, as far as they are known."""
        return math.fsum(s for name in names if (s := self.part(name).seconds) is not None)
