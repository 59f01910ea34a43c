"""How the scheduler says that a job ended, where the log leaves it open."""

from __future__ import annotations

from dataclasses import replace

from receipt_cli.analysis.failure import CATEGORIES, Ending, reason_of_code
from receipt_cli.analysis.stated.options import JobEnd

_OPEN: tuple[str | None, ...] = (None, "truncated", "no_grammar_match", "unknown")
"""Endings of a log that names no cause."""
_STOPPED = (*_OPEN, "killed", "interrupted", "child_failed")
"""What a log prints of processes that somebody stopped, and of those that the launcher found dead."""
_BLIND = (*_STOPPED, "nccl_timeout", "nccl_error")
"""Deaths that leave open whether the memory of a host ran out: the other ranks waited for one that was killed."""
_CAUSES = {
    "out_of_memory": ("host_oom", "memory", _BLIND),
    "timeout": ("time_limit", "scheduler", _STOPPED),
    "preempted": ("preempted", "scheduler", _STOPPED),
    "node_failure": ("unknown", "hardware", _STOPPED),
    "cancelled": ("killed", "scheduler", _OPEN),
}
"""Reason and category by how the job ended, and the endings of a log that it is the cause of."""


def complete_ending(ending: Ending, job: JobEnd | None) -> Ending:
    """Return ``ending`` with the cause that the scheduler records, and its exit code, where the log does not contradict.

    A log that shows that the run completed, and a cause that the log names, stay as they are. An exit code of zero counts
    for a job that completed and whose log shows no failure: a script may end with 0 behind a command that failed.
    """
    if job is None:
        return ending
    if job.ended == "completed":
        silent = ending.reason is None and ending.exit_code is None and not ending.died
        return _with_code(ending, 0) if silent and job.exit_code == 0 else ending
    if ending.completed is True or (job.ended != "failed" and job.ended not in _CAUSES):
        return ending
    code = ending.exit_code if ending.exit_code is not None else job.exit_code or None
    if job.ended == "failed":
        if code == 0:
            return ending  # whoever ran the command saw it end well
        reason = "unknown" if code is None else reason_of_code(code, "unknown")
        category, of = CATEGORIES[reason], _OPEN
    else:
        reason, category, of = _CAUSES[job.ended]
    if ending.reason not in of or (ending.reason == reason and ending.exit_code is not None):
        return _with_code(ending, code)
    words = f"{job.source}: {job.state or job.ended}"
    message = words if code is None else f"{words}, exit code {code}"
    return Ending(reason, category, None, message, False, code, ending.sightings, ending.died, None, ending.failed_start)


def _with_code(ending: Ending, code: int | None) -> Ending:
    return ending if ending.exit_code == code else replace(ending, exit_code=code)
