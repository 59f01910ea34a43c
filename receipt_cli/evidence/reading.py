"""Read evidence of a job from a file: recognise its form, and choose one of several jobs."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from receipt_cli.errors import InputError, ReceiptError, UsageError, system_errors
from receipt_cli.evidence import platforms, slurm
from receipt_cli.evidence.model import Job, at, items

MAX_BYTES = 16 * 2**20
"""Largest evidence file in bytes: one job takes some kilobytes, a long list of jobs a few megabytes."""
MAX_JOBS = 100_000
MAX_FILES = 16
"""Most entries of ``evidence`` in a receipt."""
_FORMS = (
    "sacct --json, scontrol show job (text or --json), condor_history -json or -long, kubectl get pod -o json, "
    "aws sagemaker describe-training-job, sky jobs queue -o json"
)
_ADS = re.compile(r"(?m)^ClusterId = \d")
_JOBS = re.compile(r"(?m)^\s*JobId=\d")


def read_evidence(files: Sequence[Path], job: str | None = None) -> list[dict[str, Any]]:
    """Return the ``evidence`` entry of each file for a receipt; ``job`` chooses one of several jobs in a file.

    Raises ``InputError`` for a file that cannot be read or has no known form, ``UsageError`` if it is unclear which job is
    meant.
    """
    found: list[dict[str, Any]] = []
    for file in files:
        with system_errors(InputError, "cannot read the evidence", file), file.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            why = f"it is larger than {MAX_BYTES // 2**20} MiB"
            raise InputError("cannot read the evidence", where=str(file), why=why, try_="ask the scheduler for one job")
        found.append(read_entry(data, str(file), job))
    return found


def read_entry(data: bytes, where: str, wanted: str | None = None) -> dict[str, Any]:
    """Return the entry of a job from the bytes ``data`` of a document. Raises as ``read_evidence``."""
    jobs = _read(data.decode("utf-8-sig", "replace"), where)
    if wanted is not None:
        jobs = [job for job in jobs if wanted in (job.job_id, *job.aliases)]
    if not jobs:
        why = "it has no job" if wanted is None else f"it has no job {wanted[:100]!r}"
        raise UsageError("no evidence", where=where, why=why)
    ids = list(dict.fromkeys(job.job_id or "?" for job in jobs))
    if len(ids) > 1:
        shown = ", ".join(ids[:8]) + (", ..." if len(ids) > 8 else "")
        raise UsageError("the evidence has several jobs", where=where, why=f"{len(ids)}: {shown}", try_="--job ID")
    last = max(jobs, key=lambda job: job.started_at or "")  # a requeued job has one record per start
    return last.document(hashlib.sha256(data).hexdigest(), len(data))


def _read(text: str, where: str) -> list[Job]:
    if text.lstrip()[:1] in ("{", "["):
        try:
            found = _of_json(json.loads(text))
        except (ValueError, RecursionError) as error:
            why = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            raise InputError("the evidence is not JSON", where=where, why=why) from None
    elif _JOBS.search(text):
        found = list(slurm.read_text(text))
    elif _ADS.search(text):
        found = list(platforms.read_condor_text(text))
    else:
        found = None
    if found is None:
        raise InputError("unknown form of evidence", where=where, why=f"known: {_FORMS}")
    return found[:MAX_JOBS]


def _of_json(value: Any) -> list[Job] | None:
    """Return the jobs of a JSON value, whose form is recognised by its own keys; None for another form."""
    first = at(value, 0) if isinstance(value, list) else at(items(value, "jobs"), 0)
    if at(value, "TrainingJobName") is not None:
        return list(platforms.read_training_job(value))
    if at(value, "kind") in ("Pod", "PodList", "List"):
        return list(platforms.read_pods(value))
    if at(value, "ClusterId") is not None or at(first, "ClusterId") is not None:
        return list(platforms.read_condor_json(value))
    if at(first, "job_state") is not None or isinstance(at(first, "state"), dict):
        return list(slurm.read_json(value))
    if at(first, "job_id") is not None and isinstance(at(first, "status"), str):
        return list(platforms.read_sky_jobs(value))
    return [] if isinstance(at(value, "jobs"), list) and first is None else None


WAIT_S = 10
"""Seconds to wait for ``scontrol``: a busy controller may not answer for minutes, and the job's end must not wait."""


def slurm_evidence(environ: Mapping[str, str]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the entry of the Slurm job in ``environ``, and notes; both empty outside a job or without ``scontrol``.

    ``scontrol`` gets the job's environment, an argument vector without a shell, and ``WAIT_S`` seconds.
    """
    job, program = environ.get("SLURM_JOB_ID", ""), shutil.which("scontrol", path=environ.get("PATH"))
    if program is None or not re.fullmatch(r"\d{1,18}", job):
        return [], []
    try:
        words = [program, "show", "job", job]
        ran = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=WAIT_S, env=environ, check=False)
        return [read_entry(ran.stdout[:MAX_BYTES], "scontrol show job", job)], []
    except subprocess.TimeoutExpired:
        return [], [f"scontrol show job {job} did not answer within {WAIT_S} s: no evidence of the Slurm job"]
    except OSError as error:
        return [], [f"scontrol cannot be run: {error.strerror}: no evidence of the Slurm job"]
    except ReceiptError as error:
        return [], [f"scontrol show job {job}: {error.message}: no evidence of the Slurm job"]
