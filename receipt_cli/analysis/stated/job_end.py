"""Complete a run's ending with the scheduler's record of the job."""

from __future__ import annotations

from dataclasses import replace

from receipt_cli.analysis.failure import CATEGORIES, Ending, reason_of_code
from receipt_cli.analysis.stated.options import JobEnd

_OPEN: tuple[str | None, ...] = (None, "truncated", "no_grammar_match", "unknown")
"""Failure reasons that name no cause."""
_STOPPED = (*_OPEN, "killed", "interrupted", "child_failed")
"""Failure reasons of processes that were stopped, or that the launcher found dead."""
_BLIND = (*_STOPPED, "nccl_timeout", "nccl_error")
"""Reasons that do not rule out an OOM: other ranks may have waited for a killed one."""
_CAUSES = {
    "out_of_memory": ("host_oom", "memory", _BLIND),
    "timeout": ("time_limit", "scheduler", _STOPPED),
    "preempted": ("preempted", "scheduler", _STOPPED),
    "node_failure": ("unknown", "hardware", _STOPPED),
    "cancelled": ("killed", "scheduler", _OPEN),
}
"""By job end: reason, category, and the reasons of a log that they replace."""


def complete_ending(ending: Ending, job: JobEnd | None) -> Ending:
    """Return ``ending`` with the scheduler's cause and exit code, if the log does not contradict them.

    Proven completion, and a cause named in the log, remain. Exit code zero counts only for a completed job whose log shows no
    failure: a script may end with 0 after a failed command.
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
            return ending  # the caller of the command saw it succeed
        reason = "unknown" if code is None else reason_of_code(code, "unknown")
        category, of = CATEGORIES[reason], _OPEN
    else:
        reason, category, of = _CAUSES[job.ended]
    if ending.reason not in of or (ending.reason == reason and ending.exit_code is not None):
        return _with_code(ending, code)
    words = f"{job.source}: {job.state or job.ended}"
    message = words if code is None else f"{words}, exit code {code}"
    return Ending(reason, category, None, message, False, code, ending.matches, ending.died, None, ending.failed_start)


def _with_code(ending: Ending, code: int | None) -> Ending:
    return ending if ending.exit_code == code else replace(ending, exit_code=code)
