"""Phases and ending → three-valued checks: true, false, or None if the log proves neither. No speed thresholds."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Literal

from receipt_cli.analysis.failure import Ending
from receipt_cli.analysis.summary import Summary
from receipt_cli.events.phases import Phase
from receipt_cli.patterns import compile_later
from receipt_cli.problems import Lack, Problem

CORE = ("finite_losses", "zero_exit_code", "has_steps", "no_oom")
"""The checks that decide whether a run is healthy."""
TRUNCATED = "truncated"
"""The failure reason if the log stops before its run ends."""
_NOTHING_FOUND = {"unknown", "no_grammar_match"}
"""Failure reasons that name no cause: derive/3 gave them for logs it could not read."""
STOPS = ("time_limit", "preempted", "killed", "interrupted")
"""Failure reasons of a run that was stopped from outside."""
STEP_TAKEN = "step_taken"
"""Marker of a line that is printed only after a step."""
FEWEST_RECORDS = 3
"""Fewer step records show no course of a run, and of an unknown trainer they cannot be learned."""
TOO_FEW = "too_few_records"
"""The problem of a log whose records that look like steps are fewer."""
Outcome = Literal["failed", "stopped", "running", "cut off", "finished", "unknown"]
ENDED_BADLY: tuple[Outcome, ...] = ("failed", "stopped", "cut off")
"""Outcomes of runs that did not come to their end."""
LOSSES = ("loss", "val_loss")
_OOM = ("cuda_oom", "host_oom")
_BLIND = ("killed", "nccl_timeout", "nccl_error", "child_failed")
"""Reasons that do not rule out an OOM: of the host, on the rank that others waited for, or unreported."""
_DRAWN = compile_later(rb"(?<![\d./])[1-9]\d{0,17}/(\d{1,18}) \[\d")
_ALLOCATION = compile_later(r"\bout of memory\b|\bbad_?alloc\b|\balloc(?:at(?:e|ing|ions?))?\b", re.IGNORECASE)
"""Errors that mention an allocation, of any memory."""

Checks = dict[str, bool | None]


def evaluate(
    phases: Sequence[Phase],
    summaries: Sequence[Summary],
    ending: Ending,
    *,
    stepless: bool = False,
    unread_losses: bool = False,
    cut: int | None = None,
    shown: Callable[[], Mapping[int, bytes]] = dict,
) -> Checks:
    """Return all checks, the four core ones first.

    ``stepless``: the log proves that no step was taken. ``unread_losses``: a loss was printed but not read. ``cut``: the last
    line, if it has no end. ``shown`` returns the first and last lines of the log.
    """
    losses = [s.metrics[name] for s in summaries for name in LOSSES if name in s.metrics]
    infinite = any(loss.nonfinite_count for loss in losses)
    died = False if ending.died else None  # without a code, a fatal error proves that it was not zero
    planned = [s for s in summaries if s.record_count]
    mfu = [top for s in summaries if (top := s.series.largest("mfu_ratio")) is not None]  # as printed: steady/1 drops some
    compared = [c.consistent for s in summaries for c in s.consistency if c.metric != "mfu_ratio"]  # MFU is no throughput
    return {
        "finite_losses": False if infinite else True if losses and not unread_losses else None,
        "zero_exit_code": died if ending.exit_code is None else ending.exit_code == 0,
        "has_steps": True if any(phase.steps for phase in phases) else False if stepless else None,
        "no_oom": _no_oom(ending, cut, shown),
        "steps_monotonic": not any(s.restart_count for s in planned) if planned else None,
        "completed": ending.completed,
        "mfu_plausible": max(mfu) <= 1 if mfu else None,
        "throughput_consistent": all(compared) if compared else None,
    }


def proves_no_step(phases: Sequence[Phase], ending: Ending, markers: Collection[str]) -> bool:
    """Return whether a log without step records or similar unread lines may prove that no step was taken.

    The log must show how the run failed. It may have one evaluation, if that has no counter. None of its ``markers`` may be one
    that is printed after a step, and no end line may show a figure of a training.
    """
    ended = ending.died or ending.reason not in (None, TRUNCATED, *_NOTHING_FOUND)
    rows = [row for phase in phases for row in phase.evals]
    counted = len(rows) > 1 or any(row.step is not None or row.counters or "epoch" in row.metrics for row in rows)
    counted = counted or any(row.metrics for phase in phases for row in phase.standalone_events if row.rule.event == "end")
    return ended and not counted and STEP_TAKEN not in markers and not any(phase.steps for phase in phases)


def draws_plan(phases: Sequence[Phase], lines: Iterable[bytes]) -> bool:
    """Return whether a bar in ``lines`` has the total of the planned steps, and is beyond its start."""
    plans = {phase.planned for phase in phases} - {None}
    return bool(plans) and any(int(total) in plans for line in lines for total in _DRAWN.findall(line))


def no_step_recognised(checks: Checks, lacks: Sequence[Lack], seen: Sequence[str], phases: int) -> list[Problem]:
    """Return a problem if no step was recognised though the log may have some, with the nearest record.

    ``lacks`` are the nearest kinds of records, ``seen`` lines that look like metrics. The record count of each of the
    ``phases`` is then unknown.
    """
    if checks["has_steps"] is not None:
        return []
    nearest = [lack for lack in lacks if lack.counted] or list(lacks)
    excerpt = nearest[0].line if nearest else seen[0] if seen else ""
    detail = "no step line was recognised; this does not prove that the run took no step"
    if nearest:
        detail += f"; {nearest[0].seen} records like this one: {nearest[0].why}"
    fields = ("/checks/has_steps", *(f"/phases/{number}/summary/steps/record_count" for number in range(phases)))
    found = [Problem("no_step_recognised", None, detail, excerpt, fields=fields)]
    if nearest and nearest[0].counted and all(lack.seen < FEWEST_RECORDS for lack in lacks):
        detail = f"the records that look like steps are fewer than {FEWEST_RECORDS}: too few to learn how they are printed"
        found.append(Problem(TOO_FEW, None, detail, excerpt))
    return found


def deciding_lines(
    checks: Checks, summaries: Sequence[Summary], phases: Sequence[Phase], ending: Ending
) -> dict[str, int | None]:
    """Return the line that decided each check that is not None; None if no single line did."""
    losses = [s.places[name] for s in summaries for name in LOSSES if name in s.places]
    bad = [line for p in losses for line in (p.nan_line, p.inf_line) if line is not None]
    mfu = [p for s in summaries if (p := s.places.get("mfu_ratio")) is not None]
    first = [s.lines[0] for s in summaries if s.lines[0] is not None]
    last = [s.lines[1] for s in summaries if s.lines[1] is not None]
    again = [line for phase in phases for line in phase.begun.line.tolist()]
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


def _no_oom(ending: Ending, cut: int | None, shown: Callable[[], Mapping[int, bytes]]) -> bool | None:
    if ending.reason in _OOM or any(s.open and s.marker.reason in _OOM for s in ending.matches):
        return False
    if ending.completed or ending.exit_code == 0:
        return True
    if not ending.died or ending.reason in _BLIND or ending.unnamed:
        return None
    if cut is not None and ending.line_number == cut - 1:  # the line behind an error may say what it was
        return None
    if ending.category == "unknown" and any(b"out of memory" in line.lower() for line in shown().values()):
        return None
    errors = (ending.message or "", *(s.message for s in ending.matches if s.open))
    return None if any(_ALLOCATION.search(error) for error in errors) else True


def healthy(checks: Checks, failure: Mapping[str, Any] | None = None, *, allow_truncated: bool = False) -> bool | None:
    """Return whether no core check is false, steps were found, and ``failure`` is null; None if no step was recognised.

    A log that stops before the end of its run is a failure, unless ``allow_truncated``.
    """
    if any(checks.get(name) is False for name in CORE):
        return False
    passed = {TRUNCATED} if allow_truncated else set()
    passed |= _NOTHING_FOUND if checks.get("has_steps") is None else set()
    if failure is not None and failure["reason"] not in passed:
        return False
    return True if checks.get("has_steps") else None


def too_short(document: Mapping[str, Any]) -> bool:
    """Return whether the run of a receipt finished after so few records that no step could be read: a smoke test."""
    kinds = _mapping(_mapping(_mapping(document, "derivation"), "problems"), "kinds")
    return TOO_FEW in kinds and _mapping(document, "checks").get("has_steps") is None and outcome(document) == "finished"


def proven(checks: Checks) -> bool:
    """Return whether all four core checks are true."""
    return all(checks.get(name) is True for name in CORE)


def outcome(document: Mapping[str, Any], *, running: bool = False) -> Outcome:
    """Return how the run of a receipt ended, in one word; every place that shows an outcome asks here.

    ``running``: its process still runs, as the caller knows. The document need not be valid.
    """
    checks, failure = _mapping(document, "checks"), _mapping(document, "failure")
    reason = failure.get("reason") if isinstance(failure.get("reason"), str) else None
    died = reason not in _NOTHING_FOUND or checks.get("zero_exit_code") is False
    if (failure and died and reason not in (*STOPS, TRUNCATED)) or _ends_in_nan(document):
        return "failed"
    if reason in STOPS:
        return "stopped"
    jobs = document.get("evidence")
    jobs = jobs if isinstance(jobs, list | tuple) else ()
    if running or any(isinstance(job, Mapping) and job.get("ended") == "not_ended" for job in jobs):
        return "running"
    if reason == TRUNCATED:
        return "cut off"
    if checks.get("completed") is True or (checks.get("zero_exit_code") is True and checks.get("completed") is not False):
        return "finished"
    return "unknown"


def _ends_in_nan(document: Mapping[str, Any]) -> bool:
    """Return whether the last printed loss is not finite and no problem left it open."""
    loss = _mapping(document, "summary", "metrics", "loss")
    if loss.get("last") is not None or not loss.get("nonfinite_count"):
        return False
    problems = _mapping(document, "derivation", "problems").get("first")
    fields = (_mapping(one).get("fields") for one in problems) if isinstance(problems, list | tuple) else ()
    return not any(isinstance(named, list | tuple) and "/summary/metrics/loss/last" in named for named in fields)


def _mapping(document: object, *path: str) -> Mapping[str, Any]:
    for key in path:
        document = document.get(key) if isinstance(document, Mapping) else None
    return document if isinstance(document, Mapping) else {}


def contradicted_metrics(summary: Mapping[str, Any] | None) -> frozenset[str]:
    """Return the metrics whose printed figure the log's steps and times contradict: excluded from headlines and comparisons.

    MFU never counts as contradicted: it may count FLOPs by another convention.
    """
    entries = (summary or {}).get("consistency") or ()
    return frozenset(e["metric"] for e in entries if e["consistent"] is False and e["metric"] != "mfu_ratio")
