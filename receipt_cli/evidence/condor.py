"""HTCondor: job ads of ``condor_history`` or ``condor_q``, as JSON (``-json``) or in long form (``-long``)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from receipt_cli.evidence.model import Job, count, first_of, memory, second, signalled, whole, words

_LINE = re.compile(r"([A-Za-z_]\w{0,100}) = (.{0,4000})\Z")
STATES = {1: "Idle", 2: "Running", 3: "Removed", 4: "Completed", 5: "Held", 6: "Transferring Output", 7: "Suspended"}
HELD = {"34": "out_of_memory", "46": "timeout", "47": "timeout"}
"""Hold codes: memory above the request, duration above the limit."""


def read_json(text: object) -> Iterator[Job]:
    """Yield the jobs of one ad, or of a list of ads."""
    for ad in text if isinstance(text, list) else [text]:
        if isinstance(ad, dict):
            yield _of_ad(ad)


def read_text(text: str) -> Iterator[Job]:
    """Yield the jobs of ads in long form: one attribute per line, a blank line between ads."""
    for block in re.split(r"\n[ \t\r]*\n", text):
        ad = {found[1]: _value(found[2].strip()) for line in block.splitlines() if (found := _LINE.match(line.strip()))}
        if "ClusterId" in ad:
            yield _of_ad(ad)


def _value(text: str) -> Any:
    """Return the value of a literal, or the text of an expression."""
    if text.startswith('"') and text.endswith('"') and len(text) > 1:
        return text[1:-1].replace('\\"', '"')
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    number = whole(text)
    if number is not None:
        return number
    return float(text) if re.fullmatch(r"-?\d{1,15}\.\d{1,15}(?:[eE][+-]?\d{1,2})?", text) else text


def _of_ad(ad: dict[str, Any]) -> Job:
    status = whole(ad.get("JobStatus")) or 0
    by_signal = ad.get("ExitBySignal") is True
    code = signalled(whole(ad.get("ExitCode")), whole(ad.get("ExitSignal")) if by_signal else None)
    cluster, process = whole(ad.get("ClusterId")), whole(ad.get("ProcId"))
    host = words(ad.get("LastRemoteHost")) or words(ad.get("RemoteHost"))
    held = words(ad.get("HoldReasonCode")) if status == 5 or ad.get("HoldReasonCode") else words(ad.get("LastHoldReasonCode"))
    ended = first_of(HELD, held) if status in (3, 5) else None
    if ended is None:
        by_code = "unknown" if code is None else "failed" if code else "completed"
        ended = {3: "cancelled", 4: by_code}.get(status, "not_ended")
    starts = count(ad.get("NumJobStarts"))
    rss = memory(ad.get("ResidentSetSize_RAW"), "K") or memory(ad.get("ResidentSetSize"), "K")
    reasons = (ad.get(key) for key in ("RemoveReason", "HoldReason", "LastHoldReason"))
    return Job(
        "htcondor",
        job_id=None if cluster is None else f"{cluster}.{process or 0}",
        name=words(ad.get("JobBatchName")),
        state=STATES.get(status),
        ended=ended if status in STATES else "unknown",
        reason=next((text for reason in reasons if (text := words(reason)) is not None), None),
        exit_code=code if status == 4 else None,
        submitted_at=second(ad.get("QDate")),
        started_at=second(ad.get("JobCurrentStartDate")) or second(ad.get("JobStartDate")),
        finished_at=second(ad.get("CompletionDate")) or second(ad.get("EnteredCurrentStatus")),
        nodes=() if host is None else (host.rpartition("@")[2],),
        max_rss_bytes=rss,
        memory_limit_bytes=memory(ad.get("RequestMemory"), "M"),
        restart_count=None if starts is None else max(0, starts - 1),
        aliases=() if cluster is None else (str(cluster),),
    )
