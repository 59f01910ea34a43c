"""Read MLflow's tracking stores: an SQLite database, or the folders of older releases.

Tables: mlflow/store/tracking/dbmodels/models.py; files: mlflow/store/tracking/file_store.py. A database is read by
``sqlite3``, read-only and without migration: MLflow's own client refuses a database of another release.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from receipt_cli.definitions.strict_yaml import read_yaml
from receipt_cli.errors import DataError, InputError
from receipt_cli.importers.model import DeclaredFailure, ForeignRun
from receipt_cli.importers.text import Document
from receipt_cli.importers.trackers.curves import Curves
from receipt_cli.importers.trackers.database import opened
from receipt_cli.importers.values import rfc3339
from receipt_cli.importers.wandb_summary import read_config

FORMAT = "mlflow"
TABLES = frozenset({"runs", "metrics", "params", "tags", "experiments"})
_STATUS = {1: "RUNNING", 2: "SCHEDULED", 3: "FINISHED", 4: "FAILED", 5: "KILLED"}
_SYSTEM = "system/"
"""Prefix of MLflow's own machine metrics, whose step is the number of the sample."""
_OURS = "receipt.run"
_RENAMED = "receipt.metric."
"""Prefix of the tags of our own exports with a metric's key that MLflow does not allow."""


@dataclass(slots=True)
class StoredRun:
    """One run of a store; ``metrics`` are (name, value as text, milliseconds since 1970, step) in time order."""

    key: str
    name: str
    status: str
    started_ms: int | None
    finished_ms: int | None
    params: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    metrics: list[tuple[str, str, int, int]] = field(default_factory=list)


def keys(path: Path) -> list[tuple[str, str]]:
    """Return (id, name) of each run that is not deleted; in a database by start time. Raises ``InputError``."""
    if path.is_dir():
        return [(folder.name, str(_meta(folder).get("run_name") or "")) for folder in run_folders(path)]
    query = "SELECT run_uuid, coalesce(name, '') FROM runs WHERE lifecycle_stage = 'active' ORDER BY start_time, run_uuid"
    with opened(path, "MLflow's") as database:
        return [(str(key), str(name)) for key, name in database.execute(query)]


def read(foreign: ForeignRun, path: Path, key: str) -> tuple[ForeignRun, Document]:
    """Return a run of the store, and its document, whose digest covers only the run's own rows."""
    stored = _from_files(path, key) if path.is_dir() else _from_database(path, key)
    data = _rows(stored).encode("utf-8")
    document = Document(key, "", hashlib.sha256(data).hexdigest(), len(data))
    own = _OURS in stored.tags
    foreign.producer = "receipt" if own else "MLflow"
    curves = Curves(foreign, own=own)
    counts = Counter(name for name, *_ in stored.metrics)
    stepped = {name for name, _, _, step in stored.metrics if step != 0}
    for name, value, at_ms, step in stored.metrics:
        if name.startswith(_SYSTEM):
            continue
        if not own and counts[name] > 1 and name not in stepped:  # step 0 is the client's default
            curves.add_last(name, value)
        elif step < 0:
            foreign.problems.add("record_without_step", None, f"{name[:64]}: step {step}")
        else:
            curves.add(
                step, _own_name(name, stored.tags) if own else name, value, clock=math.nan if own or at_ms <= 0 else at_ms / 1000
            )
    for name in sorted(name for name, count in counts.items() if not own and count > 1 and name not in stepped):
        foreign.problems.add("values_without_step", None, f"{name[:64]}: {counts[name]} values at step 0: used the last")
    curves.finish()
    foreign.run["name"] = stored.name or None
    foreign.add_fact("/git/commit", stored.tags.get("mlflow.source.git.commit"), "import:/tags/mlflow.source.git.commit")
    if own:
        for key_ in ("name", "lane", "preset"):
            foreign.run[key_] = stored.params.get(f"run.{key_}") or None
    else:
        _add_run(foreign, stored)
    return foreign, document


def _own_name(name: str, tags: Mapping[str, str]) -> str:
    """Return a name of our own export (or ``summary/KEY/STATISTIC``) with the original key, if the export renamed it."""
    if name.startswith("summary/"):
        key, _, statistic = name.removeprefix("summary/").rpartition("/")
        return f"summary/{tags.get(f'{_RENAMED}{key}', key)}/{statistic}"
    return tags.get(f"{_RENAMED}{name}", name)


def _add_run(foreign: ForeignRun, stored: StoredRun) -> None:
    """Add status, times and parameters of a run that MLflow's client recorded."""
    for name, moment in (("started_at", stored.started_ms), ("finished_at", stored.finished_ms)):
        foreign.run[name] = None if moment is None else rfc3339(moment / 1000)
    if stored.status == "FINISHED":
        foreign.completed = True
    elif stored.status in ("FAILED", "KILLED"):
        foreign.failure = DeclaredFailure(f"MLflow's status of the run is {stored.status}")
    read_config(foreign, {name: {"value": _typed(value)} for name, value in stored.params.items()}, "import:/params")


def _typed(text: str) -> str | int | float | bool:
    """Return the Python value of a parameter, which MLflow stores as text."""
    if text in ("True", "False"):
        return text == "True"
    for kind in (int, float):
        try:
            number: int | float = kind(text)
        except ValueError:
            continue
        return number if math.isfinite(number) and "_" not in text else text
    return text


def _rows(stored: StoredRun) -> str:
    """Return the run's rows as text, one on each line, in sorted order."""
    rows = [repr(("run", stored.key, stored.name, stored.status, stored.started_ms, stored.finished_ms))]
    rows += [
        repr((kind, *item)) for kind, items in (("param", stored.params), ("tag", stored.tags)) for item in sorted(items.items())
    ]
    rows += [repr(("metric", *metric)) for metric in sorted(stored.metrics)]
    return "\n".join(rows) + "\n"


def _from_database(path: Path, key: str) -> StoredRun:
    with opened(path, "MLflow's") as database:
        query = "SELECT run_uuid, name, status, start_time, end_time FROM runs WHERE run_uuid = ?"
        found, name, status, start, end = database.execute(query, (key,)).fetchone()
        stored = StoredRun(found, name or "", status or "", start, end)
        for table, into in (("params", stored.params), ("tags", stored.tags)):
            into.update(database.execute(f"SELECT key, value FROM {table} WHERE run_uuid = ?", (key,)))
        query = (
            "SELECT key, CASE WHEN is_nan THEN 'NaN' ELSE value END, timestamp, step FROM metrics WHERE run_uuid = ?"
            " ORDER BY timestamp, step, key"
        )
        stored.metrics = [(n, _value(value), at, step) for n, value, at, step in database.execute(query, (key,))]
    stored.name = stored.tags.get("mlflow.runName") or stored.name
    return stored


def _value(value: float | str) -> str:
    """Return a value of the table as text; MLflow writes the largest double for an infinity."""
    if isinstance(value, str) or abs(value) < 1.7976931348623157e308:
        return value if isinstance(value, str) else repr(value)
    return "Infinity" if value > 0 else "-Infinity"


def run_folders(path: Path) -> list[Path]:
    """Return the folders of runs at ``path`` and up to two levels below, without deleted runs."""
    found = [path, *path.glob("*"), *path.glob("*/*")]
    folders = [f for f in found if f.name != ".trash" and (f / "meta.yaml").is_file() and (f / "metrics").is_dir()]
    return sorted(f for f in folders if _meta(f).get("lifecycle_stage", "active") == "active")


def _meta(folder: Path) -> Mapping[Any, Any]:
    try:
        return read_yaml((folder / "meta.yaml").read_bytes(), str(folder / "meta.yaml"))
    except (OSError, DataError) as error:
        raise InputError("cannot be read as a run of MLflow", where=str(folder), why=str(error)[:200]) from error


def _from_files(path: Path, key: str) -> StoredRun:
    folder = next(folder for folder in run_folders(path) if folder.name == key)
    meta = _meta(folder)
    status, times = meta.get("status"), [meta.get(name) for name in ("start_time", "end_time")]
    start, end = (time if isinstance(time, int) and not isinstance(time, bool) else None for time in times)
    shown = _STATUS.get(status, "") if isinstance(status, int) else str(status or "")
    stored = StoredRun(key, str(meta.get("run_name") or ""), shown, start, end)
    stored.params.update(_texts(folder / "params"))
    stored.tags.update(_texts(folder / "tags"))
    for name, text in _texts(folder / "metrics"):
        for line in text.splitlines():
            words = line.split()
            if len(words) >= 3 and words[0].lstrip("-").isdecimal() and words[2].lstrip("-").isdecimal():
                stored.metrics.append((name, words[1], int(words[0]), int(words[2])))
    stored.metrics.sort(key=lambda metric: (metric[2], metric[3], metric[0]))
    stored.name = stored.tags.get("mlflow.runName") or stored.name
    return stored


def _texts(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield (name, text) of each file below ``folder``; the name is the path with slashes."""
    for file in sorted(folder.glob("**/*")) if folder.is_dir() else ():
        if file.is_file():
            yield file.relative_to(folder).as_posix(), file.read_text("utf-8", "replace")
