"""Flatten a receipt file into its row of the index, one line of JSON; a skipped file gets a row with the reason."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from operator import itemgetter
from pathlib import Path
from typing import Any, NamedTuple

from receipt_cli.analysis.checks import healthy, outcome, proven
from receipt_cli.definitions.metrics import load_registry
from receipt_cli.documents.canonical import run_time
from receipt_cli.documents.invariants.evidence import contradictions
from receipt_cli.errors import InputError
from receipt_cli.redaction.text import mask_texts
from receipt_cli.store.documents import Refused, read_receipt
from receipt_cli.store.files import RECEIPT, Store, StoredReceipt
from receipt_cli.store.places import FIELDS, Place, describe, marks_files, read_marks, read_places
from receipt_cli.store.views import (
    CAUSE,
    CHECKPOINT,
    EVIDENCE,
    FAILURE,
    MEMORY,
    METRIC,
    RANK,
    RUN,
    STEPS,
    WIDE,
    timestamp,
    values_of,
    whole,
)


class RowFiles(NamedTuple):
    """The files of a row, as paths below ``root``: the receipt, the places of its log and the marks of its run.

    ``stamp`` is size and times of each file, which reveal a change; ``size`` is the receipt's in bytes.
    """

    root: Path
    name: str
    log_sha256: str
    generation: int
    run: int | None
    stamp: str
    size: int
    place_names: tuple[str, ...] = ()
    marks: Path | None = None

    @property
    def receipt(self) -> StoredReceipt:
        """The receipt file."""
        return StoredReceipt(self.root / self.name, self.log_sha256, self.generation, self.run)

    @property
    def places(self) -> tuple[Path, ...]:
        """Paths of the log's place files."""
        return tuple(self.root / name for name in self.place_names)


def list_files(store: Store, log_sha256: str = "") -> Iterator[RowFiles]:
    """Yield all receipt files, or those of one log, by log, generation and run, the last run of a log last.

    Raises ``InputError`` if the system cannot read a folder.
    """
    places: dict[str, list[tuple[str, str]]] = {}
    with contextlib.suppress(OSError):
        for folder in _folders(store.root, "places", log_sha256):
            with contextlib.suppress(OSError):
                for name, status in _files(store.root, folder, log_sha256):
                    places.setdefault(name[:64], []).append((f"{folder}/{name}", f"{name} {_stamp(status)}"))
    marks = marks_files(store.root, log_sha256)
    try:
        for folder in _folders(store.root, "receipts", log_sha256):
            found: list[RowFiles] = []
            for name, status in _files(store.root, folder, log_sha256):
                match = RECEIPT.fullmatch(name)
                if match is None:
                    continue
                log, generation, run = match.groups()
                mine, marked = places.get(log, ()), marks.get(log if run is None else f"{log}.run{run}") if marks else None
                stamp = "; ".join([_stamp(status), *[state for _, state in mine], marked.name if marked else ""])
                paths, number = tuple([path for path, _ in mine]), int(run) if run else None
                path = f"{folder}/{name}"
                found.append(RowFiles(store.root, path, log, int(generation), number, stamp, status.st_size, paths, marked))
            found.sort(key=lambda each: (each.log_sha256, each.generation, each.run is None, each.run or 0))
            yield from found
    except OSError as error:
        where = str(error.filename or store.root)
        raise InputError("cannot read the store", where=where, why=error.strerror or str(error)) from error


def _folders(root: Path, kind: str, log_sha256: str) -> list[str]:
    """Return the folders of one kind of file, below the store, in order; or the folder of one log."""
    if log_sha256:
        return [f"{kind}/{log_sha256[:2]}"]
    try:
        return [f"{kind}/{name}" for name in sorted(os.listdir(root / kind))]
    except (FileNotFoundError, NotADirectoryError):
        return []


def _files(root: Path, folder: str, start: str) -> list[tuple[str, os.stat_result]]:
    """Return name and status of the files in a folder whose names begin with ``start``, in order; [] for a missing folder."""
    found: list[tuple[str, os.stat_result]] = []
    try:
        with os.scandir(root / folder) as entries:
            for entry in entries:
                if entry.name.startswith(start):
                    with contextlib.suppress(FileNotFoundError):  # removed since
                        found.append((entry.name, entry.stat()))
    except (FileNotFoundError, NotADirectoryError):
        return []
    found.sort(key=itemgetter(0))
    return found


def _stamp(status: os.stat_result) -> str:
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"


MAX_SIGNATURE = 200
_VOLATILE = (
    (re.compile(r"\x1b\[[0-9;]*m"), ""),
    (re.compile(r"\b[a-z][a-z0-9+.-]*://[^\s'\"<>]+", re.I), "<url>"),
    (re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", re.I), "<id>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d+)?Z?"), "<time>"),
    (re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b"), "<address>"),
    (re.compile(r"\b0x[0-9a-f]+\b", re.I), "<address>"),
    (re.compile(r"\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{12,}\b", re.I), "<id>"),
    (re.compile(r"\b[a-z][a-z-]*\d{3,}\b"), "<host>"),
    (re.compile(r"(?<![\w<])(?:[A-Za-z]:\\|~?/|\.{1,2}/)[^\s'\",:;()<>]*[^\s'\",:;()<>.]"), "<path>"),
    (re.compile(r"(?<![A-Za-z_\d])[-+]?\d+(?:[.,]\d+)*(?:e[-+]?\d+)?", re.I), "#"),
    (re.compile(r"\s+"), " "),
)
"""(pattern of a part that varies between runs, its replacement), in this order: a URL contains a path, a path numbers."""


def signature(reason: str, exception_type: str | None, message: str | None) -> str:
    """Return the signature of a failure: reason, exception type, and message without varying parts.

    Numbers become ``#``, paths ``<path>``; addresses, identifiers, times and URLs likewise. At most ``MAX_SIGNATURE`` characters.
    """
    text = message or ""
    for pattern, stand_in in _VOLATILE:
        text = pattern.sub(stand_in, text)
    text = text.strip()
    if exception_type and exception_type in text:
        exception_type = None  # the message contains it
    return ": ".join(filter(None, (reason, exception_type, text)))[:MAX_SIGNATURE]


Row = dict[str, Any]
_UNKNOWN = "–"
_BLOCKS = tuple(dict.fromkeys(wide.block for wide in WIDE))
_NO_SETTING = ("sources", "collected_at", "cwd")


def read_row(files: RowFiles) -> str:
    """Return the row of a receipt file as JSON. Never fails because of the file's content.

    Raises ``ReceiptError`` if the system cannot read the file: a row is kept until its files change.
    """
    try:
        return _line(files, read_receipt(files.receipt.path, files.receipt.log_sha256))
    except Refused as error:
        return _line(files, None, str(error))


def make_row(files: RowFiles, document: Mapping[str, Any]) -> str:
    """Return the row of a receipt file as JSON; ``document`` is the valid receipt in that file."""
    phases = document["phases"]
    masked = mask_texts(phases, "phases")
    known = {id(phases): masked} | {id(one["summary"]): its["summary"] for one, its in zip(phases, masked, strict=True)}
    parts = document.items()  # the summary is usually a phase's
    return _line(files, {key: known[id(part)] if id(part) in known else mask_texts(part, key, 1) for key, part in parts})


def _line(files: RowFiles, document: Mapping[str, Any] | None, refusal: str | None = None) -> str:
    """Return the row of a masked receipt, or of a skipped file."""
    stored = files.receipt
    row: Row = {"path": files.name, "log_sha256": stored.log_sha256, "generation": stored.generation}
    row |= {"run_id": stored.run_id, "stamp": files.stamp, "refusal": refusal}
    if document is not None:
        places = read_places(files.places)
        row |= _row(document) | _who(document, mask_texts([asdict(place) for place in places]), places)
        marks = asdict(read_marks(files.marks))
        lane = marks.pop("lane")
        row |= marks | ({"lane": lane, "lane_source": "mark"} if lane and row["lane"] is None else {})
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"))


def _who(document: Mapping[str, Any], shown: Sequence[Row], places: Sequence[Place]) -> Row:
    """Return name, lane, preset and paths of the run, and its number among the log's runs."""
    run, sources = describe(document, [Place(**place) for place in shown])
    launches = document["derivation"].get("launches") or {"used": 1, "count": 1}
    who: Row = {field: run[field] for field in FIELDS} | {f"{field}_source": sources[field] for field in FIELDS}
    who |= {"log_path": shown[0]["path"] if shown else None, "log_path_count": len(places), "places": list(shown)}
    return who | {"run_number": launches["used"], "run_count": launches["count"]}


def _row(document: Mapping[str, Any]) -> Row:
    checks, failure, summary = document["checks"], document["failure"], document["summary"]
    phases = document["phases"]
    counts = [phase["summary"]["steps"]["record_count"] or 0 for phase in phases]
    primary = counts.index(max(counts)) if counts else -1
    when = run_time(document)
    at = timestamp(when.time) if when is not None else None
    row = values_of(RUN, document) | {"run_at": at, "run_at_source": when.source if when is not None and at is not None else None}
    row |= _accelerators(document["header"]["hardware"]["accelerators"] or ())
    row |= values_of(STEPS, summary) | _figures(summary or {})
    declared = (summary or {}).get("parameter_count")
    row["parameter_count"] = whole(declared if declared is not None else document["header"]["model"]["parameter_count"])
    row |= {"phase_count": len(phases), "outcome": outcome(document)}
    row |= {"healthy": healthy(checks, failure), "proven": proven(checks)}
    row["checks"] = [{"check_name": name, "passed": passed} for name, passed in checks.items()]
    row["failure"] = None if failure is None else {**values_of(FAILURE, failure), "log_tail": failure["log_tail"]}
    row["phases"] = [_phase(number, phase["summary"], number == primary) for number, phase in enumerate(phases)]
    row["causes"] = [values_of(CAUSE, marker) for marker in (failure or {}).get("markers", ())]
    row["evidence"] = _evidence(document)
    row["settings"] = list(_settings(document["header"]))
    row["attached"] = [each["sha256"] for each in document["attachments"] if each["sha256"] is not None]
    row["failure_signature"] = failure and signature(
        failure["reason"], (failure.get("exception") or {}).get("type"), failure["message"]
    )
    return row | _sums(row, document)


def _evidence(document: Mapping[str, Any]) -> list[Row]:
    found: dict[str, list[str]] = {}
    for at, reason in contradictions(dict(document)) if "evidence" in document else ():
        found.setdefault(at.split("/")[2], []).append(reason)
    entries = document.get("evidence", ())
    return [{**values_of(EVIDENCE, entry), "contradictions": found.get(str(n), [])} for n, entry in enumerate(entries)]


def _sums(row: Row, document: Mapping[str, Any]) -> Row:
    """Return seed, device hours and cost, computed from other columns; the receipt's own cost takes precedence."""
    wall = row["job_wall_time_s"] if row["job_wall_time_s"] is not None else row["wall_time_s"]
    hours = None if wall is None else wall / 3600
    devices, rate, currency = row["accelerator_count"], row["hourly_rate"], row["currency"]
    device_hours = None if hours is None or devices is None else hours * devices
    cost = None if hours is None or rate is None else hours * rate
    own = document.get("cost") or {}
    if own.get("amount") is not None:
        cost, currency = own["amount"], own["currency"]
    if own.get("device_hours") is not None:
        device_hours = own["device_hours"]
    seeds = {whole(seed) for seed in (document["header"]["seeds"] or {}).values()}
    seed = seeds.pop() if len(seeds) == 1 else None
    return {"seed": seed, "device_hours": device_hours, "cost": cost, "currency": currency}


def _settings(value: object, pointer: str = "") -> Iterator[Row]:
    """Yield the known values below ``value`` with their pointers; place and time of making the header are no settings."""
    if isinstance(value, Mapping):
        for key, inside in value.items():
            if pointer or key not in _NO_SETTING:
                yield from _settings(inside, f"{pointer}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, list):
        for number, inside in enumerate(value):
            yield from _settings(inside, f"{pointer}/{number}")
    elif value is not None:
        yield {"field": pointer, "value": value if isinstance(value, str) else json.dumps(value)}


def _accelerators(entries: Sequence[Mapping[str, Any]]) -> Row:
    names = list(dict.fromkeys(entry["name"] or _UNKNOWN for entry in entries))
    counts = [entry["count"] for entry in entries]
    return {
        "accelerator_name": " + ".join(names) if names and names != [_UNKNOWN] else None,
        "accelerator_count": whole(sum(counts)) if counts and None not in counts else None,
        "accelerator_memory_bytes": whole(entries[0]["memory_bytes"]) if len(entries) == 1 else None,
    }


def _figures(summary: Mapping[str, Any]) -> Row:
    statistics = {(block, s["id"]): s for block in _BLOCKS for s in summary.get(block, {}).values()}
    row: Row = {w.name: statistics.get((w.block, w.metric_id), {}).get(w.figure) for w in WIDE}
    known = next((wide for wide in MEMORY if row[wide.name] is not None), None)
    row["memory_bytes"] = row[known.name] if known is not None else None
    row["memory_metric"] = load_registry().by_id[known.metric_id].name if known is not None else None
    peaks = [r["peak_memory_bytes"] for r in summary.get("ranks", {}).values() if r["peak_memory_bytes"] is not None]
    row["rank_peak_memory_bytes"] = max(peaks, default=None)
    return row


def _phase(number: int, summary: Mapping[str, Any], primary: bool) -> Row:
    metrics: list[Row] = []
    for block, source in (("metrics", "reported"), ("derived", "derived"), ("other_metrics", "other")):
        metrics += [_statistic(name, statistic, source) for name, statistic in summary[block].items()]
    steps = values_of(STEPS, summary)
    ranks = [{"rank": int(rank), **values_of(RANK, found)} for rank, found in summary.get("ranks", {}).items()]
    saved = [values_of(CHECKPOINT, each) for each in (summary.get("checkpoints") or {}).get("latest", ())]
    return {"phase_index": number, "is_primary": primary, **steps, "metrics": metrics, "ranks": ranks, "checkpoints": saved}


def _statistic(name: str, statistic: Mapping[str, Any], source: str) -> Row:
    known = load_registry().by_id.get(statistic.get("id", 0))
    row: Row = {"metric": known.name if known else name, "id": statistic.get("id"), "unit": known.unit if known else None}
    return {**row, "source": source, **values_of(METRIC, statistic)}
