"""What every comparison of two documents has: a verdict with reasons, and figures side by side."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from receipt_cli.comparison.comparable import Verdict

Document = Mapping[str, Any]


@dataclass
class Reasons:
    """Why two documents cannot be compared (``blocking``), or only with care (``weak``)."""

    blocking: list[str] = field(default_factory=list)
    weak: list[str] = field(default_factory=list)

    def equal(self, what: str, a: object, b: object, *, blocks: bool = False) -> None:
        """Add a reason if ``a`` and ``b`` differ, or if one is None, which never blocks."""
        if a is None and b is None:
            return
        if a is None or b is None:
            self.weak.append(f"{what} is unknown on one side")
        elif a != b:
            (self.blocking if blocks else self.weak).append(f"{what} differs: {a} and {b}")

    @property
    def verdict(self) -> Verdict:
        """Whether the documents are comparable."""
        return "not_comparable" if self.blocking else "caveats" if self.weak else "comparable"

    def document(self) -> dict[str, Any]:
        """Return verdict and reasons as JSON values."""
        return {"verdict": self.verdict, "reasons": [*self.blocking, *self.weak]}


def beside(name: str, a: float | None, b: float | None) -> dict[str, Any]:
    """Return one figure of both sides, with the difference and the ratio of ``b`` to ``a``; None where they are unknown."""
    known = a is not None and b is not None
    difference = b - a if a is not None and b is not None else None
    return {"name": name, "a": a, "b": b, "difference": difference, "ratio": b / a if known and a and b is not None else None}


def pairs(names: Iterable[str], a: Mapping[str, float | None], b: Mapping[str, float | None]) -> list[dict[str, Any]]:
    """Return the figures that either side has."""
    return [beside(name, a.get(name), b.get(name)) for name in names if a.get(name) is not None or b.get(name) is not None]


@dataclass(slots=True)
class Cells:
    """The cells of two curves that have the same place: how many, how many differ, and where most."""

    count: int = 0
    differing: int = 0
    greatest: dict[str, Any] | None = None

    def add(self, a: float | None, b: float | None, **place: int) -> None:
        """Compare one cell; None is a value that is not known or not finite."""
        self.count += 1
        if a == b:
            return
        self.differing += 1
        distance = math.inf if a is None or b is None else abs(b - a)
        if self.greatest is None or distance > self.greatest["distance"]:
            self.greatest = {**place, "a": a, "b": b, "distance": distance}

    def document(self) -> dict[str, Any]:
        """Return the counts and the place of the greatest difference as JSON values."""
        greatest = self.greatest and {key: value for key, value in self.greatest.items() if key != "distance"}
        return {"cell_count": self.count, "differing_count": self.differing, "greatest": greatest}


def places(steps: Sequence[int]) -> dict[int, int]:
    """Return step → place of a column of steps, the last of a step that is there twice."""
    return {step: place for place, step in enumerate(steps)}
