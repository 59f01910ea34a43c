"""HTCondor (job ads), Kubernetes (pods), SageMaker (training jobs) and SkyPilot (its queue)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from receipt_cli.evidence.model import Job, at, count, first_of, items, memory, second, signalled, stamp, whole, words

_LINE = re.compile(r"([A-Za-z_]\w{0,100}) = (.{0,4000})\Z")
STATES = {1: "Idle", 2: "Running", 3: "Removed", 4: "Completed", 5: "Held", 6: "Transferring Output", 7: "Suspended"}
HELD = {"34": "out_of_memory", "46": "timeout", "47": "timeout"}
"""Hold codes: memory above the request, duration above the limit."""


def read_condor_json(text: object) -> Iterator[Job]:
    """Yield the jobs of one ad, or of a list of ads."""
    for ad in text if isinstance(text, list) else [text]:
        if isinstance(ad, dict):
            yield _of_ad(ad)


def read_condor_text(text: str) -> Iterator[Job]:
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


_TERMINATED = {
    "OOMKilled": "out_of_memory",
    "DeadlineExceeded": "timeout",
    "Evicted": "preempted",
    "Preempting": "preempted",
    "NodeLost": "node_failure",
    "NodeShutdown": "node_failure",
    "Shutdown": "node_failure",
    "UnexpectedAdmissionError": "failed",
}
"""Reasons of a pod or container that are more specific than its exit code."""
_DISRUPTED = {
    "PreemptionByScheduler": "preempted",
    "EvictionByEvictionAPI": "preempted",
    "TerminationByKubelet": "preempted",
    "DeletionByTaintManager": "node_failure",
    "DeletionByPodGC": "node_failure",
}
"""Reasons of the condition ``DisruptionTarget``."""
_SAGEMAKER = {"Completed": "completed", "Failed": "failed", "Stopped": "cancelled"}
_SECONDARY = {"MaxRuntimeExceeded": "timeout", "MaxWaitTimeExceeded": "timeout", "Interrupted": "preempted"}
_EXIT_CODE = re.compile(r"\bexit ?code:? {0,2}(\d{1,3})\b", re.IGNORECASE)
_SKYPILOT = {
    "SUCCEEDED": "completed",
    "CANCELLED": "cancelled",
    **dict.fromkeys(
        ("FAILED", "FAILED_SETUP", "FAILED_PRECHECKS", "FAILED_NO_RESOURCE", "FAILED_CONTROLLER", "FAILED_DRIVER"), "failed"
    ),
    **dict.fromkeys(
        ("INIT", "PENDING", "SUBMITTED", "STARTING", "SETTING_UP", "RUNNING", "RECOVERING", "WINDING_DOWN", "CANCELLING"),
        "not_ended",
    ),
}  # fmt: skip


def read_pods(text: object) -> Iterator[Job]:
    """Yield the job of a pod, or the jobs of a list of pods."""
    for pod in items(text, "items") if at(text, "kind") in ("List", "PodList") else [text]:
        if isinstance(pod, dict) and pod.get("kind") in ("Pod", None) and isinstance(pod.get("status"), dict):
            yield _of_pod(pod)


def _of_pod(pod: dict[str, Any]) -> Job:
    phase, why = words(at(pod, "status", "phase")), words(at(pod, "status", "reason"))
    container, died = _container(pod)
    said = words(at(died, "reason"))
    code = signalled(whole(at(died, "exitCode")), whole(at(died, "signal")))
    holding = [c for c in items(pod, "status", "conditions") if at(c, "status") == "True"]
    disrupted = next((words(at(c, "reason")) for c in holding if at(c, "type") == "DisruptionTarget"), None)
    ended = first_of(_TERMINATED, why, said) or first_of(_DISRUPTED, disrupted)
    if died is None and phase in ("Pending", "Running"):
        ended = "not_ended"
    elif ended is None:
        ended = "unknown" if code is None else "completed" if code == 0 else "failed"
    name, namespace = words(at(pod, "metadata", "name")), words(at(pod, "metadata", "namespace"))
    limits = [memory(at(c, "resources", "limits", "memory"), kilo=1000) for c in items(pod, "spec", "containers")]
    known = [limit for limit in limits if limit is not None]
    node = words(at(pod, "spec", "nodeName"))
    return Job(
        "kubernetes_pod",
        job_id=name if namespace is None else f"{namespace}/{name}",
        name=words(at(pod, "metadata", "labels", "job-name")) or name,
        state=phase,
        ended=ended,
        reason=why or disrupted or said,
        exit_code=code,
        submitted_at=stamp(at(pod, "metadata", "creationTimestamp")),
        started_at=stamp(at(died, "startedAt")) or stamp(at(container, "state", "running", "startedAt")),
        finished_at=stamp(at(died, "finishedAt")),
        nodes=() if node is None else (node,),
        memory_limit_bytes=sum(known) if known and len(known) == len(limits) else None,
        restart_count=count(at(container, "restartCount")),
        aliases=tuple(text for text in (name, words(at(pod, "metadata", "uid"))) if text is not None),
    )


def _container(pod: dict[str, Any]) -> tuple[Any, Any]:
    """Return the status of the container that counts, and its termination, or None while it runs.

    The first failed container counts, else the first of the pod. For a container that waits for a restart, its last state is
    its termination.
    """
    order = [at(c, "name") for c in items(pod, "spec", "containers")]
    statuses = [c for c in items(pod, "status", "containerStatuses") if isinstance(c, dict)]
    statuses.sort(key=lambda c: order.index(c.get("name")) if c.get("name") in order else len(order))
    ends = [(c, at(c, "lastState" if at(c, "state", "waiting") is not None else "state", "terminated")) for c in statuses]
    failed = [pair for pair in ends if pair[1] and whole(at(pair[1], "exitCode")) != 0]
    return next(iter([*failed, *ends]), (None, None))


def read_training_job(text: object) -> Iterator[Job]:
    """Yield the job of SageMaker's DescribeTrainingJob; hyperparameters and environment are not read."""
    state, secondary = words(at(text, "TrainingJobStatus")), words(at(text, "SecondaryStatus"))
    why = words(at(text, "FailureReason"))
    code = _EXIT_CODE.search(why) if why is not None else None
    ended = first_of(_SECONDARY, secondary) or first_of(_SAGEMAKER, state) or ("not_ended" if state else "unknown")
    yield Job(
        "sagemaker",
        job_id=words(at(text, "TrainingJobName")),
        name=words(at(text, "TrainingJobName")),
        state=state if secondary in (None, state) else f"{state} ({secondary})",
        ended=ended if state not in ("InProgress", "Stopping") else "not_ended",
        reason=why,
        exit_code=0 if ended == "completed" else int(code[1]) if code is not None and ended == "failed" else None,
        submitted_at=stamp(at(text, "CreationTime")),
        started_at=stamp(at(text, "TrainingStartTime")),
        finished_at=stamp(at(text, "TrainingEndTime")),
        node_count=count(at(text, "ResourceConfig", "InstanceCount")),
        aliases=tuple(text for text in (words(at(text, "TrainingJobArn")),) if text is not None),
    )


def read_sky_jobs(text: object) -> Iterator[Job]:
    """Yield SkyPilot's managed jobs, or the jobs of a cluster; times are seconds since 1970."""
    for job in text if isinstance(text, list) else items(text, "jobs"):
        if not isinstance(job, dict):
            continue
        state = (words(job.get("status")) or "").rpartition(".")[2]
        ended = _SKYPILOT.get(state, "unknown")
        codes = [whole(code) for code in items(job, "exit_codes")]
        task, own = whole(job.get("task_id")), words(job.get("job_id"))
        yield Job(
            "skypilot",
            job_id=own,
            name=words(job.get("job_name")),
            state=state or None,
            ended=ended,
            reason=words(job.get("failure_reason")),
            exit_code=next((code for code in codes if code), 0 if codes and None not in codes else None),
            submitted_at=stamp(job.get("submitted_at")),
            started_at=stamp(job.get("start_at")),
            finished_at=stamp(job.get("end_at")),
            restart_count=count(job.get("recovery_count")),
            aliases=(f"{own}.{task}",) if task is not None else (),
        )
