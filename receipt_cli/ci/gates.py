"""Gates of a CI job: required checks, bounds of figures, limits of changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

OnUnknown = Literal["fail", "skip"]
"""What becomes of a question that the receipt cannot answer."""
Interval = Literal["used", "required"]
STATISTICS = ("first", "last", "min", "max", "mean", "median")
COMPOSITE = ("healthy", "proven")
"""Requirements that are made of the four core checks."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A figure of the receipt and the least and the largest value allowed, in base units; None: no limit.

    ``pointer`` is the figure's JSON pointer, ``name`` what the gate is called and ``measure`` the name whose ending
    gives the unit that people read.
    """

    name: str
    pointer: str
    measure: str
    at_least: float | None
    at_most: float | None


@dataclass(frozen=True, slots=True)
class Change:
    """How far a metric may lie from the baseline's, as a ratio of it: in the bad direction only, or in both.

    With ``interval`` required, the figures alone do not decide.
    """

    metric: str
    direction: Literal["worse", "differs"]
    at_most: float
    interval: Interval

    @property
    def name(self) -> str:
        """What the gate is called."""
        return f"{self.metric}.change.{self.direction}_by_at_most"


@dataclass(frozen=True, slots=True)
class Unknown:
    """What becomes of unanswered questions, by their kind."""

    checks: OnUnknown = "fail"
    bounds: OnUnknown = "fail"
    changes: OnUnknown = "skip"


@dataclass(frozen=True, slots=True)
class Gates:
    """All gates of a job; ``require`` contains names of checks, ``healthy`` and ``proven``."""

    require: tuple[str, ...] = ("healthy",)
    bounds: tuple[Bound, ...] = ()
    changes: tuple[Change, ...] = ()
    unknown: Unknown = Unknown()
    allow_truncated: bool = False
    """Whether a log that stops before its run ends may pass."""
    allow_unknown: bool = False
    """Whether a log in which no step was recognised may pass, if nothing says that the run failed."""


DEFAULT = Gates()
"""Without a file a run has to be healthy, and nothing else."""
