"""Which run a receipt is of, and when it ran."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class RunTime(NamedTuple):
    """When a run started, or the best that is known of it, RFC 3339; and which field that is from.

    ``source`` is ``started_at``, ``finished_at``, ``evidence`` (the start of the job that a scheduler records, in UTC),
    ``collected_at``, ``log`` (the first stamp of the run's lines, in UTC), ``log_local`` (the same, in a time zone that the
    log does not name), ``log_ends`` or ``log_ends_local`` (the first stamp at the ends of the whole log).
    """

    time: str
    source: str


def run_id(document: Mapping[str, Any]) -> str:
    """Return the identity of a receipt's run: its log's digest, and ``.run2`` behind it for the second of several runs.

    The last run of a log has the digest alone, whatever their number.
    """
    derivation = document["derivation"]
    log: str = derivation["log"]["sha256"]
    launches = derivation.get("launches")
    return log if launches is None or launches["used"] == launches["count"] else f"{log}.run{launches['used']}"


def run_time(document: Mapping[str, Any]) -> RunTime | None:
    """Return when a run started, else when it finished, else when its job or its header began, else the log's first stamp."""
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
