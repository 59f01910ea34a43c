"""Flatten a receipt file into its row of the index, as one line of JSON; a skipped file has a row with the reason."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from receipt_cli.analysis.checks import healthy, proven
from receipt_cli.definitions.metrics import Metric, load_registry
from receipt_cli.store.reading import Refused, read_receipt
from receipt_cli.store.views import FAILURE, MEMORY, METRIC, RUN, STEPS, TIME, WHOLE, WIDE, Column

Row = dict[str, Any]
_LARGEST = 2**63 - 1
_UNKNOWN = "–"


def read_row(path: Path, name: str, log_sha256: str, generation: int, stamp: str) -> str:
    """Return the row of a receipt file as JSON; ``name`` is its path below the store. Never fails because of the file's content.

    Raises ``ReceiptError`` where the system does not let it be read: a row is kept as long as the file is the same.
    """
    row: Row = {"path": name, "log_sha256": log_sha256, "generation": generation, "stamp": stamp, "refusal": None}
    try:
        document = read_receipt(path, log_sha256)
    except Refused as error:
        row["refusal"] = f"{error.message}: {error.why}" if error.why else error.message
    else:
        row |= _row(document)
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))


def _row(document: Mapping[str, Any]) -> Row:
    checks, failure, summary = document["checks"], document["failure"], document["summary"]
    phases = document["phases"]
    primary = _primary(phases)
    row = {column.name: _found(document, column) for column in RUN if column.source}
    row |= _time(row)
    row |= _accelerators(document["header"]["hardware"]["accelerators"] or ())
    row |= {column.name: _found(summary, column) for column in STEPS}
    row |= _figures(summary or {})
    declared = (summary or {}).get("parameter_count")
    row["parameter_count"] = _whole(declared if declared is not None else document["header"]["model"]["parameter_count"])
    row |= {"phase_count": len(phases), "healthy": healthy(checks, failure), "proven": proven(checks)}
    row["checks"] = [{"check_name": name, "passed": passed} for name, passed in checks.items()]
    row["failure"] = None if failure is None else _failure(failure)
    row["phases"] = [_phase(number, phase["summary"], number == primary) for number, phase in enumerate(phases)]
    return row


def _failure(failure: Mapping[str, Any]) -> Row:
    return {**{column.name: _found(failure, column) for column in FAILURE}, "log_tail": failure["log_tail"]}


def _found(document: object, column: Column) -> object:
    """Return the value at a column's source; None where it is missing or does not fit the column."""
    value = document
    for key in column.source.split("."):
        if isinstance(value, list):
            value = value[int(key)] if int(key) < len(value) else None
        else:
            value = value.get(key) if isinstance(value, Mapping) else None
    if column.type == WHOLE:
        return _whole(value)
    if column.type == TIME:
        return _timestamp(value)
    return value


def _whole(value: object) -> int | None:
    """Return a whole number of at most 64 bits, else None; JSON may write one as 3.0."""
    whole = int(value) if isinstance(value, int | float) and value == value // 1 else None
    return whole if whole is not None and abs(whole) <= _LARGEST else None


def _timestamp(value: object) -> str | None:
    """Return an RFC 3339 time in UTC as DuckDB reads it, to the microsecond; None for a day that no calendar has."""
    if not isinstance(value, str):
        return None
    whole, _, fraction = value.removesuffix("Z").partition(".")
    leap = whole.endswith(":60")
    try:
        moment = datetime.fromisoformat(f"{whole[:-2]}59" if leap else whole)
        moment += timedelta(seconds=int(leap), microseconds=0 if leap else int(fraction[:6].ljust(6, "0")))
    except (ValueError, OverflowError):
        return None
    return moment.isoformat(sep=" ")


def _time(row: Row) -> Row:
    for name in ("started_at", "finished_at", "collected_at"):
        if row[name] is not None:
            return {"run_at": row[name], "run_at_source": name}
    return {"run_at": None, "run_at_source": None}


def _accelerators(entries: Sequence[Mapping[str, Any]]) -> Row:
    names = list(dict.fromkeys(entry["name"] or _UNKNOWN for entry in entries))
    counts = [entry["count"] for entry in entries]
    return {
        "accelerator_name": " + ".join(names) if names and names != [_UNKNOWN] else None,
        "accelerator_count": _whole(sum(counts)) if counts and None not in counts else None,
        "accelerator_memory_bytes": _whole(entries[0]["memory_bytes"]) if len(entries) == 1 else None,
    }


def _primary(phases: Sequence[Mapping[str, Any]]) -> int:
    """Return the number of the phase with most step records, the first on a tie."""
    return max(range(len(phases)), key=lambda n: (phases[n]["summary"]["steps"]["record_count"], -n), default=-1)


def _figures(summary: Mapping[str, Any]) -> Row:
    statistics = {(w.block, w.metric_id): s for w in WIDE for s in _named(summary, w.block) if s["id"] == w.metric_id}
    row: Row = {w.name: statistics.get((w.block, w.metric_id), {}).get(w.figure) for w in WIDE}
    known = next((wide for wide in MEMORY if row[wide.name] is not None), None)
    row["memory_bytes"] = row[known.name] if known is not None else None
    row["memory_metric"] = _metric(known.metric_id).name if known is not None else None
    peaks = [r["peak_memory_bytes"] for r in summary.get("ranks", {}).values() if r["peak_memory_bytes"] is not None]
    row["rank_peak_memory_bytes"] = max(peaks, default=None)
    return row


def _named(summary: Mapping[str, Any], block: str) -> Iterable[Mapping[str, Any]]:
    statistics: Iterable[Mapping[str, Any]] = summary.get(block, {}).values()
    return statistics


def _metric(number: int) -> Metric:
    return next(metric for metric in load_registry().metrics if metric.id == number)


def _phase(number: int, summary: Mapping[str, Any], primary: bool) -> Row:
    metrics: list[Row] = []
    for block, source in (("metrics", "reported"), ("derived", "derived"), ("other_metrics", "other")):
        metrics += [_statistic(name, statistic, source) for name, statistic in summary[block].items()]
    steps = {column.name: _found(summary, column) for column in STEPS}
    return {"phase_index": number, "is_primary": primary, **steps, "metrics": metrics}


def _statistic(name: str, statistic: Mapping[str, Any], source: str) -> Row:
    known = {metric.id: metric for metric in load_registry().metrics}.get(statistic.get("id", 0))
    row: Row = {"metric": known.name if known else name, "id": statistic.get("id"), "unit": known.unit if known else None}
    return {**row, "source": source, **{column.name: _found(statistic, column) for column in METRIC if column.source}}
