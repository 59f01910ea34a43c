"""``goodput/1``: where the wall time of a run went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

GOODPUT_RULE = "goodput/1"
CLASSES = ("checkpoint", "eval", "compilation", "data_loading", "initialization", "wasted_progress", "idle")
OF_COMMAND = "receipt_run"
"""Evidence of a wall time that ``receipt run`` measured around its command."""
How = Literal["measured", "inferred", "unknown"]


class Wall(NamedTuple):
    """Wall time that a caller states: seconds, a slug of where it comes from, and the phase that it is of (None: the run)."""

    seconds: float
    evidence: str
    phase: str | None = None


def recorded_wall(options: Mapping[str, Any]) -> Wall | None:
    """Return the wall time among the recorded options of a receipt; None where none was stated."""
    wall = options.get("wall")
    return None if wall is None else Wall(wall["seconds"], wall["evidence"], wall["phase"])


@dataclass(frozen=True, slots=True)
class Part:
    """One class of lost time. ``seconds`` is None where ``how`` is unknown."""

    seconds: float | None
    how: How
    count: int | None = None
    overlapped_s: float | None = None


@dataclass(frozen=True, slots=True)
class Stall:
    """A silence beyond the ordinary steps between two step records: their lines, and its seconds."""

    after_line: int
    line_number: int
    duration_s: float


@dataclass(frozen=True, slots=True)
class Stalls:
    """The stalls of a run. ``doubtful`` where so many gaps are long that slow steps may be among them."""

    count: int
    total_s: float
    doubtful: bool
    longest: Sequence[Stall]


class Range(NamedTuple):
    """Least and greatest goodput that the evidence allows; ``low`` is None where nothing bounds it from below."""

    low: float | None
    high: float


class Goodput(NamedTuple):
    """Where the wall time went, in seconds; ``parts`` by class, in the order of ``CLASSES``.

    ``stalls`` is None where the step records have no stamps.
    """

    goodput_ratio: float
    wall_time_s: float
    step_time_s: float
    evidence: str
    phase: str | None
    step_evidence: str
    parts: Mapping[str, Part]
    range: Range
    stalls: Stalls | None
