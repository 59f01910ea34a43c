"""The Slurm job that this process is in, as ``scontrol`` describes it."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from typing import Any

from receipt_cli.errors import ReceiptError
from receipt_cli.evidence.reading import MAX_BYTES, read_entry

WAIT_S = 10
"""A controller under load may not answer for minutes; the end of a job must not wait for it."""


def slurm_evidence(environ: Mapping[str, str]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the entry of the Slurm job of ``environ``, and notes; neither outside of a job or without ``scontrol``.

    The environment of the job reaches ``scontrol`` as it is; its arguments are a vector, and it has ``WAIT_S`` seconds.
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
