"""Recognise a tracker's file or folder by its first bytes or files, and read its run."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from receipt_cli.errors import InputError
from receipt_cli.importers.model import ForeignRun
from receipt_cli.importers.text import Document
from receipt_cli.importers.trackers import event_files, mlflow_store, neptune_export, trackio_store, wandb_run
from receipt_cli.importers.trackers.database import MAGIC, choose, tables_of

TITLES = {
    event_files.FORMAT: "event files of TensorBoard, or their folder",
    wandb_run.FORMAT: "run file of W&B (run-ID.wandb), or the run's folder",
    mlflow_store.FORMAT: "MLflow's database, or its folder of runs",
    trackio_store.FORMAT: "database of Trackio (PROJECT.db)",
    neptune_export.FORMAT: "Parquet files of neptune-exporter (RUN_part_0.parquet), or their folder",
}
MAX_BYTES = 2 << 30
"""Most bytes of all files of one run."""
_HEAD = 64


def format_of(path: str) -> str | None:
    """Return the format of a tracker's file or folder; None for any other path."""
    given = Path(path)
    if path == "-" or not given.exists():
        return None
    if given.is_dir():
        for name, is_one in _FOLDERS.items():
            if is_one(given):
                return name
        return None
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
    return next((name for name, its_own in _DATABASES.items() if its_own <= tables), None)


_DATABASES = {mlflow_store.FORMAT: mlflow_store.TABLES, trackio_store.FORMAT: trackio_store.TABLES}
_FOLDERS: dict[str, Callable[[Path], bool]] = {
    wandb_run.FORMAT: lambda folder: any(folder.glob(f"**/run-*{wandb_run.SUFFIX}")),
    mlflow_store.FORMAT: lambda folder: bool(mlflow_store.run_folders(folder)),
    neptune_export.FORMAT: lambda folder: bool(neptune_export.parts_in(folder)),
    event_files.FORMAT: lambda folder: any(folder.glob(f"**/*{event_files.IN_NAME}*")),
}


_KEYS = {mlflow_store.FORMAT: mlflow_store.keys, trackio_store.FORMAT: trackio_store.keys}
"""Formats of several runs, with a function that returns (id, name) of each."""
_READERS = {mlflow_store.FORMAT: mlflow_store.read, trackio_store.FORMAT: trackio_store.read}


def runs_in(path: str) -> list[tuple[str, str | None]]:
    """Return (path, ``session``) of each run at ``path``, in a store or in the folders below it.

    Any path that is not a tracker's is one run. Raises ``InputError``.
    """
    found, given = format_of(path), Path(path)
    if found in _KEYS:
        return [(path, key) for key, _ in _KEYS[found](given)]
    if found is None or not given.is_dir():
        return [(path, None)]
    if found == wandb_run.FORMAT:
        files = {file.resolve(): file for file in sorted(given.glob(f"**/run-*{wandb_run.SUFFIX}"))}  # latest-run is a link
        return [(str(file), None) for file in files.values()]
    if found == neptune_export.FORMAT:
        return [(str(file), None) for file in neptune_export.first_parts(given)]
    return [(str(folder), None) for folder in event_files.folders(given)]


def read(path: str, format_name: str, session: str | None) -> tuple[ForeignRun, Document]:
    """Return the run at ``path`` and its first document; the run's ``beside`` has the others. Raises ``InputError``."""
    given = Path(path)
    if format_name in _KEYS:
        key = choose(_KEYS[format_name](given), given, session)
        return _READERS[format_name](ForeignRun(format_name, key), given, key)
    find = event_files.find if format_name == event_files.FORMAT else wandb_run.find
    paths = neptune_export.find(given) if format_name == neptune_export.FORMAT else find(given) if given.is_dir() else [given]
    if not paths:
        raise InputError("has no run", where=path)
    documents = _documents(paths)
    foreign = ForeignRun(format_name, documents[0].name, beside=documents[1:])
    if format_name == wandb_run.FORMAT:
        return wandb_run.read(foreign, paths[0]), documents[0]
    if format_name == neptune_export.FORMAT:
        return neptune_export.read(foreign, paths), documents[0]
    return event_files.read(foreign, documents, paths), documents[0]


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
