"""A job as its scheduler records it, and readers for values of unreliable types."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from receipt_cli.redaction.text import safe_text

MAX_NODES = 1024
"""Most node names in an entry; ``node_count`` counts all."""
_LARGEST = 2**63 - 1
_SIGNALS = 64
"""Largest signal number: Slurm writes ``0:125`` for a job that ran out of memory."""
_MEMORY = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?(?:[eE][0-9]{1,2})?)\s*([KMGTPE]?)(i?)B?[cn]?\Z", re.IGNORECASE)
_STAMP = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\Z")


@dataclass(frozen=True, slots=True)
class Job:
    """A job in a scheduler's words (``state``, ``reason``) and in ours (``ended``).

    ``ended``: completed, failed, out_of_memory, timeout, preempted, node_failure, cancelled, not_ended or unknown.
    ``exit_code`` is negative for a signal. Times are RFC 3339, with Z if the source gives the offset from UTC (``zone`` is then
    utc), else local times of the scheduler. Memory is in bytes; ``max_rss_bytes`` is the largest of one process or task.
    """

    source: str
    job_id: str | None = None
    name: str | None = None
    state: str | None = None
    ended: str = "unknown"
    reason: str | None = None
    exit_code: int | None = None
    submitted_at: str | None = None
    started_at: str | None = None
    finished_at: str | None = None
    zone: str | None = "utc"
    nodes: tuple[str, ...] = ()
    node_count: int | None = None
    max_rss_bytes: int | None = None
    memory_limit_bytes: int | None = None
    restart_count: int | None = None
    aliases: tuple[str, ...] = ()
    """Other ids by which a user may name the job."""

    def document(self, sha256: str, size_bytes: int) -> dict[str, Any]:
        """Return the entry of a receipt; ``sha256`` and ``size_bytes`` are of the source text."""
        entry = {"source": self.source, "sha256": sha256, "size_bytes": size_bytes, **asdict(self)}
        del entry["aliases"]
        return entry | {
            "finished_at": self.finished_at if self.ended != "not_ended" else None,
            "zone": self.zone if any((self.submitted_at, self.started_at, self.finished_at)) else None,
            "nodes": list(self.nodes[:MAX_NODES]),
            "node_count": self.node_count if self.node_count is not None else len(self.nodes) or None,
        }


def at(value: object, *path: str | int) -> Any:
    """Return the value at ``path`` (nested object keys and list positions), or None."""
    for step in path:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


def items(value: object, *path: str | int) -> list[Any]:
    """Return the list at ``path``, [] if there is none."""
    found = at(value, *path)
    return found if isinstance(found, list) else []


def words(value: object) -> str | None:
    """Return a string, number or list of strings as masked text of at most 400 characters; None for anything else."""
    if isinstance(value, list):
        value = " ".join(part for part in value if isinstance(part, str))
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return " ".join(safe_text(str(value), 400).split()) or None


def whole(value: object) -> int | None:
    """Return a whole number of at most 64 bits from a number, its text, or Slurm's ``{"set": true, "number": 1}``."""
    if isinstance(value, dict):
        return whole(value.get("number")) if value.get("set") is not False and value.get("infinite") is not True else None
    if isinstance(value, str) and re.fullmatch(r"-?\d{1,18}", value):
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return int(value) if value == int(value) and abs(value) <= _LARGEST else None


def count(value: object) -> int | None:
    """Return ``value`` as a whole number of at least 0, or None."""
    found = whole(value)
    return found if found is not None and found >= 0 else None


def signalled(code: int | None, signal: int | None) -> int | None:
    """Return the exit code, negative for a signal; None for an impossible number."""
    if signal is not None and 0 < signal <= _SIGNALS:
        return -signal
    if code is None or not -(2**31) <= code < 2**32 or (signal is not None and signal > _SIGNALS and not code):
        return None
    return code


def second(value: object) -> str | None:
    """Return seconds since 1970 as an RFC 3339 time in UTC; None for 0, which means no time."""
    if isinstance(value, dict):
        value = whole(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 2**33:
        return None
    moment = datetime.fromtimestamp(value, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S") + (f".{moment.microsecond:06d}".rstrip("0") if moment.microsecond else "") + "Z"


def stamp(value: object) -> str | None:
    """Return a printed time as RFC 3339: in UTC with Z if it has an offset, else unchanged."""
    if not isinstance(value, str) or not _STAMP.match(value):
        return second(value)
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    if moment.tzinfo is None:
        return moment.strftime("%Y-%m-%dT%H:%M:%S")
    try:
        return second(moment.timestamp())
    except (OverflowError, OSError, ValueError):
        return None


def memory(value: object, unit: str = "", kilo: int = 1024) -> int | None:
    """Return the bytes of ``64Gi``, ``510000M`` or a number in ``unit``.
    ``kilo`` is the meaning of K if it is not written Ki: 1024 for Slurm and HTCondor, 1000 for Kubernetes."""
    if isinstance(value, dict):
        value = whole(value)
    found = _MEMORY.match(str(value)) if isinstance(value, int | float | str) else None
    if found is None:
        return None
    size = float(found[1]) * (1024 if found[3] else kilo) ** " KMGTPE".index((found[2] or unit or " ").upper())
    return int(size) if 0 < size <= _LARGEST else None


def first_of(table: Mapping[str, str], *texts: str | None) -> str | None:
    """Return the entry of ``table`` for the first of ``texts`` that it contains, or None."""
    return next((table[text] for text in texts if text is not None and text in table), None)
