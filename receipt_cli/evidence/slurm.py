"""Slurm: ``sacct --json``, ``scontrol show job`` as text and as JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from receipt_cli.evidence.model import MAX_NODES, Job, at, count, first_of, items, memory, second, signalled, stamp, whole, words

ENDED = {
    "COMPLETED": "completed",
    "FAILED": "failed",
    "LAUNCH_FAILED": "failed",
    "OUT_OF_MEMORY": "out_of_memory",
    "TIMEOUT": "timeout",
    "DEADLINE": "timeout",
    "PREEMPTED": "preempted",
    "NODE_FAIL": "node_failure",
    "BOOT_FAIL": "node_failure",
    "CANCELLED": "cancelled",
    "REVOKED": "cancelled",
    **dict.fromkeys(
        ("PENDING", "RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "RESIZING", "STAGE_OUT",
         "SIGNALING", "STOPPED", "SPECIAL_EXIT"),
        "not_ended",
    ),
}  # fmt: skip
_NOTHING = ("None", "Unknown", "N/A", "(null)", "None assigned", "")
_PAIR = re.compile(r"(?:\A|\s)([A-Z][A-Za-z:/]{1,40})=")
_GROUP = re.compile(r"([\w.-]{0,80})\[([\d,-]{1,2000})\]([\w.-]{0,80})\Z")
_RANGE = re.compile(r"(\d{1,9})-(\d{1,9})\Z")
_MEM = re.compile(r"(?:\A|,)mem=([\d.]{1,15}[KMGTP]?)(?:,|\Z)")


def read_json(text: object) -> Iterator[Job]:
    """Yield the jobs in a JSON document of ``sacct`` or ``scontrol``, for Slurm 21.08 and later."""
    for job in items(text, "jobs"):
        if isinstance(job, dict):
            yield _of_json(job)


def _of_json(job: dict[str, Any]) -> Job:
    """Return a job of ``scontrol``, which has a ``job_state``, or of ``sacct``."""
    states = _states(job["job_state"] if "job_state" in job else at(job, "state", "current"))
    shared = Job(
        "slurm_sacct",
        job_id=words(job.get("job_id")),
        name=words(job.get("name")),
        state=" ".join(states) or None,
        ended=_ended(states),
        nodes=tuple(node_names(job.get("nodes"))),
        restart_count=count(job.get("restart_cnt")),
    )
    code = _code(job.get("exit_code"))
    if "job_state" in job:
        return replace(
            shared,
            source="slurm_scontrol",
            reason=_said(job.get("state_reason")),
            exit_code=code if shared.ended != "not_ended" else None,
            submitted_at=second(job.get("submit_time")),
            started_at=second(job.get("start_time")),
            finished_at=second(job.get("end_time")),
            node_count=count(job.get("node_count")),
            memory_limit_bytes=_granted(job.get("tres_alloc_str")),
            aliases=_aliases(job.get("array_job_id"), job.get("array_task_id")),
        )
    tres = [t for step in items(job, "steps") for t in items(step, "tres", "requested", "max") if at(t, "type") == "mem"]
    granted = [t for t in items(job, "tres", "allocated") if at(t, "type") == "mem"]
    return replace(
        shared,
        reason=_said(at(job, "state", "reason")),
        exit_code=code,
        submitted_at=second(at(job, "time", "submission")),
        started_at=second(at(job, "time", "start")),
        finished_at=second(at(job, "time", "end")),
        node_count=count(job.get("allocation_nodes")),
        max_rss_bytes=max(filter(None, (count(at(t, "count")) for t in tres)), default=None),
        memory_limit_bytes=memory(at(granted, 0, "count"), "M"),
        aliases=_aliases(at(job, "array", "job_id"), at(job, "array", "task_id")),
    )


def read_text(text: str) -> Iterator[Job]:
    """Yield the jobs printed by ``scontrol show job``, on one line each (``-o``) or several."""
    for block in re.split(r"(?:\A|\n)\s*(?=JobId=)", text):
        if block.startswith("JobId="):
            yield _of_block(_pairs(block))


def _of_block(found: dict[str, str]) -> Job:
    states = _states(found.get("JobState"))
    ended = _ended(states)
    code, _, signal = found.get("ExitCode", "").partition(":")
    granted = found.get("AllocTRES") or found.get("TRES") or ""
    array, task = found.get("ArrayJobId"), found.get("ArrayTaskId")
    return Job(
        "slurm_scontrol",
        job_id=words(found.get("JobId")),
        name=words(found.get("JobName")),
        state=" ".join(states) or None,
        ended=ended,
        reason=_said(found.get("Reason")),
        exit_code=signalled(whole(code), whole(signal)) if ended != "not_ended" else None,
        submitted_at=stamp(found.get("SubmitTime")),
        started_at=stamp(found.get("StartTime")),
        finished_at=stamp(found.get("EndTime")),
        zone=None,
        nodes=tuple(node_names(found.get("NodeList"))),
        node_count=count(found.get("NumNodes", "").partition("-")[0]),
        memory_limit_bytes=_granted(granted),
        restart_count=count(found.get("Restarts")),
        aliases=(f"{array}_{task}",) if array and task else (),
    )


def _pairs(block: str) -> dict[str, str]:
    """Return the ``Key=value`` pairs of a job; the first of equal keys counts; values may contain blanks."""
    places = list(_PAIR.finditer(block))
    ends = [place.start() for place in places[1:]] + [len(block)]
    found: dict[str, str] = {}
    for place, end in zip(places, ends, strict=True):
        value = block[place.end() : end].partition("\n")[0].strip()
        found.setdefault(place[1], "" if value in _NOTHING else value)
    return found


def node_names(value: object) -> Iterator[str]:
    """Yield at most ``MAX_NODES`` names from a host list such as ``gpu[01-03,07],login1``."""
    if not isinstance(value, str) or value in _NOTHING:
        return
    left = MAX_NODES
    for part in re.findall(r"[^,\[\]]{0,80}(?:\[[\d,-]{1,2000}\][^,\[\]]{0,80})?", value[:65536]):
        for name in _expanded(part, left) if part else ():
            left -= 1
            yield words(name) or ""
        if left <= 0:
            return


def _expanded(part: str, most: int) -> Iterator[str]:
    group = _GROUP.match(part)
    if group is None:
        yield part
        return
    for numbers in group[2].split(","):
        found = _RANGE.match(numbers)
        if found is None:
            yield f"{group[1]}{numbers}{group[3]}"
            most -= 1
        else:
            last = min(int(found[2]), int(found[1]) + most - 1)
            for number in range(int(found[1]), last + 1):
                yield f"{group[1]}{number:0{len(found[1])}d}{group[3]}"
                most -= 1
        if most <= 0:
            return


def _states(value: object) -> list[str]:
    """Return the state and its flags; older versions write one text, and ``CANCELLED by 1000`` with the user's id."""
    texts = value if isinstance(value, list) else [value]
    return [text for text in map(words, texts) if text is not None][:8]


def _ended(states: list[str]) -> str:
    """Return how a job with these states ended; ``not_ended`` if it runs or is queued again."""
    found = [first_of(ENDED, state.partition(" ")[0].rstrip("+")) for state in states]
    return "not_ended" if "not_ended" in found else next((ended for ended in found if ended is not None), "unknown")


def _said(reason: object) -> str | None:
    text = words(reason)
    return None if text is None or text in _NOTHING else text


def _code(value: object) -> int | None:
    code = whole(value) if isinstance(value, int) else whole(at(value, "return_code"))
    signal = at(value, "signal", "id")
    return signalled(code, whole(signal if signal is not None else at(value, "signal", "signal_id")))


def _aliases(array: object, task: object) -> tuple[str, ...]:
    whole_array, number = whole(array), whole(task)
    return (f"{whole_array}_{number}",) if whole_array not in (None, 0) and number is not None else ()


def _granted(tres: object) -> int | None:
    found = _MEM.search(tres[:4096]) if isinstance(tres, str) else None
    return memory(found[1], "M") if found is not None else None
