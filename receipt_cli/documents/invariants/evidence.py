"""Find contradictions between a scheduler's evidence and the log or another captured part of a receipt."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from receipt_cli.documents.invariants.rule import Broken, Document, Rule
from receipt_cli.patterns import compile_later
from receipt_cli.problems import pointer

FAILING = ("failed", "out_of_memory", "timeout", "preempted", "node_failure", "cancelled")
SLACK_S = 300.0
"""Largest gap in seconds between a job and its log: clocks differ, and a job begins before its log."""
ZONES_S = 15 * 3600.0
"""``SLACK_S`` if a time zone is unknown: local time is at most 14 hours from UTC."""
_SILENT = ("no_grammar_match", "unknown")
"""Reasons that only mean that the log could not be read."""
_JOB = compile_later(r"\*\*\* (?:JOB|STEP) (\d{1,18})(?:\.\w{1,20})? ON ")
"""Line that ``slurmstepd`` prints into the log of a job that it ends."""


def contradictions(document: Document) -> Iterator[tuple[str, str]]:
    """Yield (pointer, reason) for each contradiction between ``evidence`` and the rest of the receipt."""
    ids: dict[str, str] = {}
    for number, entry in enumerate(document.get("evidence", ())):
        at, job = pointer("evidence", number), f"{entry['source']} {entry['job_id'] or 'without an id'}"
        yield from _ends(document, entry, at, job)
        yield from _times(document, entry, at, job)
        family = entry["source"].partition("_")[0]
        seen = ids.setdefault(family, entry["job_id"] or "")
        if entry["job_id"] is not None and seen not in ("", entry["job_id"]):
            yield f"{at}/job_id", f"{job} is another job than {seen}, which has evidence too"
        printed = _printed_job(document) if family == "slurm" else None
        if printed is not None and entry["job_id"] not in (None, printed):
            yield f"{at}/job_id", f"{job} is not the job {printed} that the log names"


def _ends(document: Document, entry: dict[str, Any], at: str, job: str) -> Broken:
    checks, failure, code = document["checks"], document["failure"], entry["exit_code"]
    words = [entry["ended"], *([] if code is None else [f"exit code {code}"])]
    with_code = f"{entry['state'] or entry['ended']} ({', '.join(words)})"
    reason = None if failure is None else failure["reason"]
    if checks["completed"] is True and entry["ended"] in FAILING:
        yield f"{at}/ended", f"{job} ended as {with_code}, though the log shows that the run completed"
    elif entry["ended"] == "completed" and reason is not None and reason not in _SILENT:
        yield f"{at}/ended", f"{job} ended as {with_code}, though the run failed with {reason}"
    elif entry["ended"] == "out_of_memory" and checks["no_oom"] is True:
        yield f"{at}/ended", f"{job} ended as {with_code}, though the log shows another cause: {reason}"
    captured = document["run"]["exit_code"]
    if None not in (captured, code) and entry["ended"] in ("completed", "failed") and _shell(captured) != _shell(code):
        yield f"{at}/exit_code", f"{job} ended with exit code {code}, the command with {captured}"


def _shell(code: int) -> int:
    """Return an exit code as a shell reports it: 137 for a process that signal 9 killed."""
    return 128 - code if code < 0 else code


def _times(document: Document, entry: dict[str, Any], at: str, job: str) -> Broken:
    """Check that a job overlaps in time with its log's timestamps and with its wrapper's measured run."""
    began, ended = entry["started_at"], entry["finished_at"]
    stamps = (document["summary"] or {}).get("time") or document["derivation"]["log"].get("time")
    run = document["run"]
    spans = [] if stamps is None else [("but the log's timestamps are", stamps["first"], stamps["last"], stamps["zone"])]
    if run["started_at"] is not None and run["finished_at"] is not None:
        spans.append(("but the command ran", run["started_at"], run["finished_at"], "utc"))
    for what, first, last, zone in spans:
        slack = SLACK_S if zone == entry["zone"] == "utc" else ZONES_S
        early = began is not None and _is_before(last, began, slack)
        if early or (ended is not None and _is_before(ended, first, slack)):
            until = f" to {ended}" if ended is not None else " on"
            yield f"{at}/started_at", f"{job} ran from {began or 'an unknown time'}{until}, {what} from {first} to {last}"


def _is_before(a: str, b: str, slack: float) -> bool:
    try:
        one, other = (datetime.fromisoformat(text.removesuffix("Z").partition(".")[0]) for text in (a, b))
    except ValueError:  # a leap second, the 31st of February
        return False
    return (other - one).total_seconds() > slack


def _printed_job(document: Document) -> str | None:
    """Return the only Slurm job whose end the log's markers report, or None."""
    markers = [*document["derivation"]["observed"], *(document["failure"] or {"markers": ()})["markers"]]
    found = {match[1] for marker in markers if (match := _JOB.search(marker["message"] or ""))}
    return found.pop() if len(found) == 1 else None


def _job_agrees(document: Document) -> Broken:
    """Check that the job end that the derivation used is an entry of the evidence."""
    job, evidence = document["derivation"]["options"].get("job"), document.get("evidence", ())
    if job is not None and evidence and not any(all(entry[key] == value for key, value in job.items()) for entry in evidence):
        yield "/derivation/options/job", "is not the end of any job in /evidence"


EVIDENCE_RULES: tuple[Rule, ...] = (
    Rule("job_agrees", ("evidence", "derivation"), _job_agrees),
    Rule(
        "evidence_agrees",
        ("evidence", "run", "summary", "phases", "checks", "failure", "derivation"),
        contradictions,
        "note",
    ),
)
