"""Attempts that may be launches of their own: what was read, and what speaks against it."""

from __future__ import annotations

from collections.abc import Sequence

from receipt_cli.events.phases import Phase
from receipt_cli.problems import Problem

FEWEST = 3
"""Records of one step with another loss in a later attempt: fewer may be of a seed or of a machine."""


def doubtful_launches(phases: Sequence[Phase]) -> list[Problem]:
    """Return a problem for each phase whose steps began anew at its first step with other losses: read as one launch."""
    found: list[Problem] = []
    for phase in phases:
        before = {e.step: e.metrics["loss"] for e in phase.superseded if e.step is not None and "loss" in e.metrics}
        begins = [attempt[0] for attempt in phase.attempts if attempt and attempt[0].step is not None]
        if not before or not begins or (first := begins[-1]).step != phase.step_events[0].step:
            continue
        records = [e for e in phase.attempts[-1] if e.step is not None and "loss" in e.metrics]
        again = [(e.metrics["loss"], before.get(e.step or 0)) for e in records]
        other = [known is not None and loss != known for loss, known in again[: len(before)]]
        if len(other) >= FEWEST and all(other):
            detail = f"read as another attempt of one launch: but from step {first.step} on all losses are others"
            found.append(Problem("launch_doubtful", first.line, detail, ""))
    return found
