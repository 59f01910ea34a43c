"""Canonical JSON: equal documents give equal bytes. Also the identity and date of a run, and the digest of captured parts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, NamedTuple


def canonical_bytes(document: Mapping[str, Any]) -> bytes:
    """Return the document as UTF-8 JSON: keys in their order, shortest round-trip floats, one newline at the end."""
    return (json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2) + "\n").encode()


def canonical_line(document: Mapping[str, Any]) -> bytes:
    """Return the document as one line of JSON Lines."""
    return (json.dumps(document, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n").encode("utf-8")


CAPTURED = ("run", "header", "attachments")


def captured_digest(document: Mapping[str, Any]) -> str:
    """Return the hexadecimal SHA-256 of a receipt's captured parts, as one line of JSON.

    ``evidence`` and stated facts are included if the receipt has any.
    """
    parts = {part: document[part] for part in (*CAPTURED, "evidence") if part in document or part in CAPTURED}
    derivation = document.get("derivation")
    options = derivation.get("options") if isinstance(derivation, Mapping) else None
    facts = options.get("facts") if isinstance(options, Mapping) else None
    return sha256(canonical_line(parts if facts is None else {**parts, "facts": facts})).hexdigest()


def is_touched(document: Mapping[str, Any]) -> bool | None:
    """Return whether the captured parts changed after the receipt was written; None if the receipt has no digest of them."""
    stated = document.get("captured_sha256")
    return None if stated is None else stated != captured_digest(document)


class RunTime(NamedTuple):
    """The start of a run, or its best substitute (RFC 3339), and the field that it is from.

    ``source`` is ``started_at``, ``finished_at``, ``evidence`` (the job's start in a scheduler's record, in UTC),
    ``collected_at``, ``log`` (the first timestamp in the run's lines, in UTC), ``log_local`` (the same timestamp in an
    unnamed time zone), ``log_ends`` or ``log_ends_local`` (the first timestamp at the ends of the whole log).
    """

    time: str
    source: str


def run_id(document: Mapping[str, Any]) -> str:
    """Return the identity of a receipt's run: the digest of its log, followed by ``.run2`` for the second of several runs.

    The last run of a log has no suffix.
    """
    derivation = document["derivation"]
    log: str = derivation["log"]["sha256"]
    launches = derivation.get("launches")
    return log if launches is None or launches["used"] == launches["count"] else f"{log}.run{launches['used']}"


def run_time(document: Mapping[str, Any]) -> RunTime | None:
    """Return the start of a run, else its end, else the start of its job or header, else the log's first timestamp."""
    run = document["run"]
    stamps = (document["summary"] or {}).get("time") or document["derivation"]["log"].get("time")
    for source, time in (
        ("started_at", run["started_at"]),
        ("finished_at", run["finished_at"]),
        ("evidence", next((e["started_at"] for e in document.get("evidence", ()) if e["zone"] == "utc"), None)),
        ("collected_at", document["header"]["collected_at"]),
    ):
        if time is not None:
            return RunTime(time, source)
    if stamps is None:
        return None
    source = "log_ends" if stamps["source"] == "log_ends" else "log"
    return RunTime(stamps["first"], source if stamps["zone"] == "utc" else f"{source}_local")
