"""The file ``<log>.gpu`` beside a log: what its GPUs and the memory did. Format ``receipt-gpu/1`` (``docs/times.md``).

Lines of JSON: a head for each launch, then its samples. Lines are only appended, so that all but the last are whole.
"""

from __future__ import annotations

import json
from typing import Any

VERSION = "receipt-gpu/1"
MAGIC = b'{"version": "receipt-gpu/'
QUIET = 0.05
"""Share of a sampled period below which a device does nothing."""


def head_line(started_ms: int) -> str:
    """Return the line that begins a launch, at milliseconds since 1970."""
    return json.dumps({"version": VERSION, "started_ms": started_ms}) + "\n"


def sample_line(ms: int, host_bytes: int | None, gpus: object) -> str:
    """Return the line of a sample, ``ms`` after its launch: memory in use, and for each GPU utilisation, bytes and watts."""
    return json.dumps({"ms": ms, "host_bytes": host_bytes, "gpus": gpus}, separators=(",", ":")) + "\n"


def read_samples(data: bytes) -> tuple[dict[str, Any], int | None]:
    """Return the launches in a file of samples as ``schemas/samples`` describes them, and the number of the first line that is
    neither a head nor a sample; None if there is no such line.

    What follows that line is left out. A last line without its end was cut off: ``cut_bytes`` are its bytes.
    """
    launches: list[dict[str, Any]] = []
    whole, _, cut = data.rpartition(b"\n")
    for number, line in enumerate(whole.split(b"\n") if whole else (), 1):
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict) and found.get("version") == VERSION:
            del found["version"]
            launches.append({**found, "samples": []})
        elif isinstance(found, dict) and launches:
            launches[-1]["samples"].append(found)
        else:
            return {"format": VERSION, "launches": launches, "cut_bytes": 0}, number
    return {"format": VERSION, "launches": launches, "cut_bytes": len(cut)}, None
