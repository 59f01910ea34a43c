"""Phases and ending → three-valued checks: true, false, or None where the log cannot prove it. No speed thresholds."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from receipt_cli.lazy_pattern import compile_later

if TYPE_CHECKING:  # who renders a receipt imports the names below, and not the whole analysis
    from receipt_cli.analysis.failure import Ending
    from receipt_cli.analysis.summary import Summary
    from receipt_cli.events.phases import Phase
    from receipt_cli.numeric.statistics import Statistic

CORE = ("finite_losses", "zero_exit_code", "has_steps", "no_oom")
"""The checks that decide whether a run is healthy."""
TRUNCATED = "truncated"
"""The reason of a failure where the log stops before its run ends."""
LOSSES = ("loss", "val_loss")
_OOM = ("cuda_oom", "host_oom")
_BLIND = ("killed", "nccl_timeout", "nccl_error", "child_failed")
"""Deaths that leave open whether memory ran out: of the host, on the rank that the others waited for, or untold."""
_ALLOCATION = compile_later(r"\bout of memory\b|\bbad_?alloc\b|\balloc(?:at(?:e|ing|ions?))?\b", re.IGNORECASE)
"""Errors that name an allocation, of whatever memory."""

Checks = dict[str, bool | None]


def evaluate(
    phases: Sequence[Phase], summaries: Sequence[Summary], ending: Ending, *,
    unread_steps: bool = False, unread_losses: bool = False,
) -> Checks:  # fmt: skip
    """Return every check, the four core ones first.

    With ``unread_steps``, an unread record may be a step; with ``unread_losses``, a loss may be what no figure shows.
    """
    losses = [s.metrics[name] for s in summaries for name in LOSSES if name in s.metrics]
    planned = [s for s in summaries if s.record_count]
    mfu = [top for s in summaries if (top := s.series.largest("mfu_ratio")) is not None]  # as printed: steady/1 drops some
    compared = [c.consistent for s in summaries for c in s.consistency if c.metric != "mfu_ratio"]  # that is no throughput
    return {
        "finite_losses": _finite(losses, unread_losses),
        "zero_exit_code": _zero_exit_code(ending),
        "has_steps": any(phase.steps for phase in phases) or (None if unread_steps else False),
        "no_oom": _no_oom(ending),
        "steps_monotonic": not any(s.restart_count for s in planned) if planned else None,
        "completed": ending.completed,
        "mfu_plausible": max(mfu) <= 1 if mfu else None,
        "throughput_consistent": all(compared) if compared else None,
    }


def deciding_lines(
    checks: Checks, summaries: Sequence[Summary], phases: Sequence[Phase], ending: Ending
) -> dict[str, int | None]:
    """Return the line that decided each check that is not None; None where no single line does."""
    losses = [s.places[name] for s in summaries for name in LOSSES if name in s.places]
    bad = [line for p in losses for line in (p.nan_line, p.inf_line) if line is not None]
    mfu = [p for s in summaries if (p := s.places.get("mfu_ratio")) is not None]
    first = [s.lines[0] for s in summaries if s.lines[0] is not None]
    last = [s.lines[1] for s in summaries if s.lines[1] is not None]
    again = [attempt[0].line for phase in phases for attempt in phase.attempts[1:] if attempt]
    end = [event.line for phase in phases for event in phase.standalone_events if event.rule.event == "end"]
    ended = ending.line_number or max([*end, *last], default=None)
    lines: dict[str, int | None] = {
        "finite_losses": min(bad, default=max((p.last_line or 0 for p in losses), default=0)) or None,
        "zero_exit_code": ended if ending.died or ending.line_number else max(end, default=None),
        "has_steps": min(first, default=None),
        "no_oom": ended,
        "steps_monotonic": min(again, default=max(last, default=None)),
        "completed": ended,
        "mfu_plausible": next((p.max_line or p.first_line for p in mfu), None),
    }
    return {name: lines.get(name) for name, value in checks.items() if value is not None}


def _finite(losses: Sequence[Statistic], unread: bool) -> bool | None:
    """False for a loss that is not finite; None without a loss, or if one was not read."""
    if any(loss.nonfinite_count for loss in losses):
        return False
    return True if losses and not unread else None


def _zero_exit_code(ending: Ending) -> bool | None:
    """As stated or printed; without that, an error that ended the run proves that it was not zero."""
    if ending.exit_code is not None:
        return ending.exit_code == 0
    return False if ending.died else None


def _no_oom(ending: Ending) -> bool | None:
    if ending.reason in _OOM or any(s.open and s.marker.reason in _OOM for s in ending.sightings):
        return False
    if ending.completed or ending.exit_code == 0:
        return True
    if not ending.died or ending.reason in _BLIND or ending.unnamed:
        return None
    errors = (ending.message or "", *(s.message for s in ending.sightings if s.open))
    return None if any(_ALLOCATION.search(error) for error in errors) else True


def healthy(checks: Checks, failure: Mapping[str, Any] | None = None, *, allow_truncated: bool = False) -> bool:
    """True when no core check is false, steps were found, and the receipt's ``failure`` is null.

    A log that stops before the end of its run is a failure, too, unless ``allow_truncated``.
    """
    if failure is not None and not (allow_truncated and failure["reason"] == TRUNCATED):
        return False
    return all(checks.get(name) is not False for name in CORE) and checks.get("has_steps") is True


def proven(checks: Checks) -> bool:
    """True when all four core checks are true."""
    return all(checks.get(name) is True for name in CORE)


def verdict(checks: Checks, failure: Mapping[str, Any] | None) -> str:
    """Return the state of a run in words: healthy (and proven, or not), truncated, or not healthy."""
    if healthy(checks, failure):
        return "healthy and proven" if proven(checks) else "healthy, not proven"
    return TRUNCATED if healthy(checks, failure, allow_truncated=True) else "not healthy"
