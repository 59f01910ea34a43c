"""Gates of a CI job: required checks, bounds of figures, limits of changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

OnUnknown = Literal["fail", "skip"]
"""The ruling on a question that the receipt cannot answer."""
Interval = Literal["used", "required"]
STATISTICS = ("first", "last", "min", "max", "mean", "median")
COMPOSITE = ("healthy", "proven")
"""Requirements that combine the four core checks."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A figure of the receipt with its least and largest allowed value, in base units; None: no limit.

    ``pointer`` is the figure's JSON pointer; ``name`` is the gate's name; the end of ``measure`` determines the displayed unit.
    """

    name: str
    pointer: str
    measure: str
    at_least: float | None
    at_most: float | None


@dataclass(frozen=True, slots=True)
class Change:
    """Largest ratio by which a metric may differ from the baseline, in the bad direction only or in both.

    With ``interval`` required, the figures alone do not decide.
    """

    metric: str
    direction: Literal["worse", "differs"]
    at_most: float
    interval: Interval

    @property
    def name(self) -> str:
        """The gate's name."""
        return f"{self.metric}.change.{self.direction}_by_at_most"


@dataclass(frozen=True, slots=True)
class Unknown:
    """The rulings on unanswered questions, by their kind."""

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
"""Without a file, a run only has to be healthy."""
