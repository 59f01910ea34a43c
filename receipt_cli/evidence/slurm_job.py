"""Evidence of the Slurm job that this process runs in, from ``scontrol``."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from typing import Any

from receipt_cli.errors import ReceiptError
from receipt_cli.evidence.reading import MAX_BYTES, read_entry

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
