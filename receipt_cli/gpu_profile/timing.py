"""Durations by key: count, sum, minimum and maximum, in whole nanoseconds."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, TypeVar

import numpy as np

from receipt_cli.numeric.array_types import Integers

Key = TypeVar("Key")
NS = 10**9


class Timing:
    """Durations of one thing."""

    __slots__ = ("count", "longest", "shortest", "total")

    def __init__(self) -> None:
        self.count = 0
        self.total = 0
        self.shortest = 0
        self.longest = 0

    def add(self, count: int, total: int, shortest: int, longest: int) -> None:
        """Add ``count`` durations, at least one."""
        self.shortest = shortest if not self.count else min(self.shortest, shortest)
        self.longest = max(self.longest, longest)
        self.count += count
        self.total += total

    def figures(self) -> dict[str, Any]:
        """Return count, total, min, mean and max in seconds."""
        known = self.count > 0
        return {
            "count": self.count,
            "total_s": self.total / NS,
            "min_s": self.shortest / NS if known else None,
            "mean_s": self.total / (self.count * NS) if known else None,
            "max_s": self.longest / NS if known else None,
        }


class Timings(Generic[Key]):
    """Timings of at most ``most`` keys; durations of any further key are summed in ``left_out``."""

    def __init__(self, most: int) -> None:
        self.of: dict[Key, Timing] = {}
        self.left_out = Timing()
        self._most = most

    def at(self, key: Key) -> Timing:
        """Return the timing of ``key``."""
        found = self.of.get(key)
        if found is not None:
            return found
        return self.of.setdefault(key, Timing()) if len(self.of) < self._most else self.left_out

    def add_grouped(self: Timings[int], keys: Integers, durations: Integers) -> None:
        """Add durations (int64 [n], n <= 4,096, from 0 to below 2**50) to ``keys`` (int64 [n])."""
        if not len(keys):
            return
        order = np.argsort(keys, kind="stable")
        keys, durations = keys[order], durations[order]
        starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
        counts = np.diff(np.append(starts, len(keys)))
        groups: Iterable[tuple[int, ...]] = zip(
            keys[starts].tolist(),
            counts.tolist(),
            np.add.reduceat(durations, starts).tolist(),
            np.minimum.reduceat(durations, starts).tolist(),
            np.maximum.reduceat(durations, starts).tolist(),
            strict=True,
        )
        for key, *durations_of in groups:
            self.at(key).add(*durations_of)
