"""Recognise a tracker's file or folder by its first bytes or files, and read its run."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from receipt_cli.errors import InputError
from receipt_cli.importers.model import ForeignRun
from receipt_cli.importers.text import Document
from receipt_cli.importers.trackers import event_files, mlflow_store, neptune_export, trackio_store, wandb_run
from receipt_cli.importers.trackers.database import MAGIC, choose, tables_of

MAX_BYTES = 2 << 30
"""Most bytes of all files of one run."""
_HEAD = 64


class _Files(NamedTuple):
    """A format of files: the runs at and below a folder, the files of a run, and a function that reads them."""

    runs: Callable[[Path], list[Path]]
    files: Callable[[Path], list[Path]]
    read: Callable[[ForeignRun, Sequence[Document], Sequence[Path]], ForeignRun]


class _Store(NamedTuple):
    """A format of several runs: the tables of its database, (id, name) of each run, and a function that reads one."""

    tables: frozenset[str]
    keys: Callable[[Path], list[tuple[str, str]]]
    read: Callable[[ForeignRun, Path, str], tuple[ForeignRun, Document]]


TITLES = {
    event_files.FORMAT: "event files of TensorBoard, or their folder",
    wandb_run.FORMAT: "run file of W&B (run-ID.wandb), or the run's folder",
    mlflow_store.FORMAT: "MLflow's database, or its folder of runs",
    trackio_store.FORMAT: "database of Trackio (PROJECT.db)",
    neptune_export.FORMAT: "Parquet files of neptune-exporter (RUN_part_0.parquet), or their folder",
}
_FILES = {
    wandb_run.FORMAT: _Files(wandb_run.runs, lambda run: [run], wandb_run.read),
    neptune_export.FORMAT: _Files(neptune_export.runs, neptune_export.files, neptune_export.read),
    event_files.FORMAT: _Files(event_files.runs, event_files.files, event_files.read),
}
_STORES = {
    mlflow_store.FORMAT: _Store(mlflow_store.TABLES, mlflow_store.keys, mlflow_store.read),
    trackio_store.FORMAT: _Store(trackio_store.TABLES, trackio_store.keys, trackio_store.read),
}
_FOLDERS: dict[str, Callable[[Path], object]] = {
    wandb_run.FORMAT: wandb_run.runs,
    mlflow_store.FORMAT: mlflow_store.run_folders,
    neptune_export.FORMAT: neptune_export.runs,
    event_files.FORMAT: event_files.runs,
}


def format_of(path: str) -> str | None:
    """Return the format of a tracker's file or folder; None for any other path."""
    given = Path(path)
    if path == "-" or not given.exists():
        return None
    if given.is_dir():
        return next((name for name, runs in _FOLDERS.items() if runs(given)), None)
    try:
        with given.open("rb") as file:
            head = file.read(_HEAD)
    except OSError:
        return None
    if head.startswith(wandb_run.MAGIC):
        return wandb_run.FORMAT
    if event_files.is_event_file(head):
        return event_files.FORMAT
    if head.startswith(neptune_export.MAGIC) and neptune_export.is_part(given):
        return neptune_export.FORMAT
    tables = tables_of(given) if head.startswith(MAGIC) else frozenset()
    return next((name for name, store in _STORES.items() if store.tables <= tables), None)


def runs_in(path: str) -> list[tuple[str, str | None]]:
    """Return (path, ``session``) of each run at ``path``, in a store or in the folders below it.

    Any path that is not a tracker's is one run. Raises ``InputError``.
    """
    found, given = format_of(path), Path(path)
    if found in _STORES:
        return [(path, key) for key, _ in _STORES[found].keys(given)]
    if found is None or not given.is_dir():
        return [(path, None)]
    return [(str(run), None) for run in _FILES[found].runs(given)]


def read(path: str, format_name: str, session: str | None) -> tuple[ForeignRun, Document]:
    """Return the run at ``path`` and its first document; the run's ``beside`` has the others. Raises ``InputError``."""
    given = Path(path)
    if format_name in _STORES:
        store = _STORES[format_name]
        key = choose(store.keys(given), given, session)
        return store.read(ForeignRun(format_name, name=key), given, key)
    its = _FILES[format_name]
    runs = its.runs(given) if given.is_dir() else [given]
    if len(runs) > 1:
        why = f"{len(runs)} runs: {', '.join(str(run.relative_to(given)) for run in runs)}"[:300]
        raise InputError("has several runs", where=path, why=why, try_=f"receipt import {runs[0]}")
    paths = its.files(runs[0]) if runs else []
    if not paths:
        raise InputError("has no run", where=path)
    documents = _documents(paths)
    return its.read(ForeignRun(format_name, name=documents[0].name, beside=documents[1:]), documents, paths), documents[0]


def _documents(paths: list[Path]) -> list[Document]:
    """Return name, digest and size of each file. Raises ``InputError`` if their total size is too large."""
    documents: list[Document] = []
    names = Counter(path.name for path in paths)
    total = 0
    for path in paths:
        with path.open("rb") as file:
            digest, size = hashlib.file_digest(file, "sha256"), file.tell()
        name = path.name if names[path.name] == 1 else f"{path.parent.name}/{path.name}"
        documents.append(Document(name, "", digest.hexdigest(), size))
        total += size
        if total > MAX_BYTES:
            raise InputError("is too large for the record of one run", where=str(path), why=f"over {MAX_BYTES} bytes")
    return documents
