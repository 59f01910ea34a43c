"""List the runs of a store, and group those that ended badly."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from receipt_cli.analysis.checks import ENDED_BADLY
from receipt_cli.store.documents import Links, RunFacts, document_rows, stored_documents
from receipt_cli.store.files import Store
from receipt_cli.store.index import current_rows

_COLUMNS = (
    "log_sha256", "generation", "run_id", "path", "name", "lane", "log_path", "run_at", "run_at_source", "grammar_id",
    "grammar_version", "origin", "steps_last", "loss_last", "val_loss_last", "outcome", "healthy", "failure_reason", "tags",
    "excluded", "refusal", "steps_planned", "unsaved_step_count",
    "failure_signature", "exit_code", "finite_losses",
)  # fmt: skip
_OF_FAILURE = ("message", "exception_type", "frame_file", "frame_line")
_WALL = ("job_wall_time_s", "wall_time_s", "log_first_at", "log_last_at")
_READ = (*_COLUMNS, *_WALL, "failure")


def list_runs(root: Path, progress: Callable[[int, int], None] | None = None) -> list[dict[str, Any]]:
    """Return the current receipt of each run, the latest first and those without a time last, as ``store ls --json`` prints them.

    A receipt that cannot be read has a ``refusal``. Raises ``InputError`` if the store does not exist.
    """
    rows = current_rows(root, _READ, progress)
    rows.sort(key=lambda row: row["run_at"] or "", reverse=True)
    return [_shown(row) for row in rows]


def list_documents(root: Path, kind: str | None = None, *, linked: bool = True) -> list[dict[str, Any]]:
    """Return the documents besides receipts, or those of one kind, the latest first and those without a time last.

    A document that cannot be read has a ``refusal``. Without ``linked`` no run is looked for, which saves reading receipts.
    Raises ``InputError`` if the store does not exist.
    """
    store = Store(root)
    store.check_exists()
    facts: Iterable[RunFacts] = ()
    if linked and any(kind in (None, stored.kind) for stored in stored_documents(store)):
        known = (row for row in current_rows(root, (*RunFacts._fields, "refusal")) if row["refusal"] is None)
        facts = [RunFacts(*(row[name] for name in RunFacts._fields)) for row in known]
    rows = [row for row in document_rows(store, Links(facts)) if kind in (None, row["kind"])]
    rows.sort(key=lambda row: (row["kind"], row["sha256"]))
    rows.sort(key=lambda row: row.get("run_at") or "", reverse=True)
    return rows


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with the grammar as ``id@vN`` or the format of an import, the wall time, and the place of the error."""
    grammar = f"{row['grammar_id']}@v{row['grammar_version']}" if row["grammar_id"] else row["origin"]
    failure = row["failure"] or {}
    row |= {name: failure.get(name) for name in _OF_FAILURE}
    left_out = ("grammar_id", "grammar_version", "origin", "steps_last", "failure_reason", "frame_file", "frame_line", *_WALL)
    kept = {key: value for key, value in row.items() if key not in left_out}
    kept |= {"grammar": grammar, "last_step": row["steps_last"], "failure": row["failure_reason"]}
    place = place_of(row["frame_file"], row["frame_line"])
    return {**kept, "wall_time_s": _wall_time(row), "place": place}


def place_of(file: str | None, line: int | None) -> str | None:
    """Return the end of a file's path with the line: ``quantization/mx.py:40``; None without both."""
    return None if not file or line is None else f"{'/'.join(file.replace(chr(92), '/').split('/')[-2:])}:{line}"


def _wall_time(row: Mapping[str, Any]) -> float | None:
    for name in _WALL[:2]:
        if row[name] is not None:
            return float(row[name])
    first, last = (row[name] and datetime.fromisoformat(row[name]) for name in _WALL[2:])
    return (last - first).total_seconds() if first and last and last > first else None


def failure_groups(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the runs of ``list_runs`` that ended badly by signature, the most frequent first, with the latest as example.

    ``place`` is None if they ended in several; ``unsaved_step_count`` is their sum, None if none is known.
    """
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for row in rows:
        if row["outcome"] in ENDED_BADLY and not row["excluded"]:
            groups.setdefault((row["outcome"], row["failure_signature"]), []).append(row)
    found = [_group(outcome, runs) for (outcome, _), runs in groups.items()]
    return sorted(found, key=lambda group: (-group["run_count"], group["signature"] or "", group["outcome"]))


def _group(outcome: str, runs: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    times = sorted(run["run_at"] for run in runs if run["run_at"])
    unsaved = [run["unsaved_step_count"] for run in runs if run["unsaved_step_count"] is not None]
    latest, places = runs[0], {run["place"] for run in runs}
    return {
        "run_count": len(runs),
        "outcome": outcome,
        "failure": latest["failure"],
        "exception_type": latest["exception_type"],
        "exit_code": latest["exit_code"],
        "finite_losses": latest["finite_losses"],
        "place": latest["place"] if len(places) == 1 else None,
        "message": latest["message"],
        "signature": latest["failure_signature"],
        "lane_count": len({run["lane"] for run in runs} - {None}),
        "first_at": times[0] if times else None,
        "last_at": times[-1] if times else None,
        "unsaved_step_count": sum(unsaved) if unsaved else None,
        "example": latest["name"],
        "run_id": latest["run_id"],
    }
