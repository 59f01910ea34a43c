"""Open the receipts of a store as a database, through an index that may be deleted at any time.

The index is one Parquet file below ``.cache``, one row per receipt file. Its name contains the digest of its bytes, its footer
the version that wrote it, so that damaged and outdated indices are ignored. Rows of new, removed and changed receipt files are
updated, and the index is written under a new name. A defective index costs time and never changes an answer.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

from receipt_cli.errors import OutputError
from receipt_cli.io.duckdb import Damaged, Database
from receipt_cli.store.document_views import DOCUMENTS, document_structure
from receipt_cli.store.documents import Links, RunFacts, document_rows
from receipt_cli.store.files import Store
from receipt_cli.store.flatten import RowFiles, list_files, read_row
from receipt_cli.store.kept_rows import drop_rows, fingerprint, kept_rows
from receipt_cli.store.views import TABLE, VIEWS, structure

_FILES = "stored.files"
_NAME = re.compile(r"index-(?P<sha256>[0-9a-f]{64})\.parquet")
_CHUNK = 256
"""Receipts whose rows are made and added together."""
MANY = 1024
"""Receipts from which several processes are faster than one: starting them takes a quarter of a second."""
Progress = Callable[[int, int], None]


def open_store(root: Path, progress: Progress | None = None, *, documents: bool = True) -> Database:
    """Return a database with the views (see ``store.views``) of the store's current receipts and its other documents.

    Without ``documents`` their views are empty: they are read each time. ``progress`` is called with (bytes of new receipts
    read, bytes in total). Raises ``InputError`` if the store does not exist, ``UsageError`` if DuckDB is missing.
    """
    store = Store(root)
    store.check_exists()
    database = Database()
    with ThreadPoolExecutor(1) as pool:  # DuckDB reads the index in parallel
        loading = pool.submit(_load, database, root / ".cache")
        files = {file.name: file for file in list_files(store)}
        known = loading.result()
    gone = [name for name, stamp in known.items() if name not in files or files[name].stamp != stamp]
    fresh = [file for name, file in files.items() if known.get(name) != file.stamp]
    if gone:
        database.run(f"DELETE FROM {_FILES} WHERE path IN (SELECT unnest(from_json(?, '[\"VARCHAR\"]')))", [json.dumps(gone)])
    kept = _fill_kept(database, root, fresh)
    fresh = [file for file in fresh if file.name not in kept]
    done, total = 0, sum(file.size for file in fresh)
    for chunk, rows in _rows(fresh):
        database.fill(_FILES, structure(), rows)
        done += sum(file.size for file in chunk)
        if progress is not None:
            progress(done, total)
    if (gone or fresh or kept) and _save(database, root / ".cache"):
        drop_rows(root)
    # Earlier runs of a log are current together with its last run.
    current = "generation = max(CASE WHEN run_id = log_sha256 THEN generation END) OVER (PARTITION BY log_sha256)"
    database.run(f"CREATE VIEW {TABLE} AS SELECT *, {current} AS is_current FROM {_FILES}")
    _fill_documents(database, store, empty=not documents)
    for view in VIEWS:
        database.run(f"CREATE VIEW {view.name} AS {view.select}")
    return database


def _fill_documents(database: Database, store: Store, *, empty: bool) -> None:
    """Make the table of documents. They are read each time: there are few, and their links change with the receipts."""
    none = "SELECT r.* FROM (SELECT unnest(from_json('[]', ?)) AS r)"
    database.run(f"CREATE TABLE {DOCUMENTS} AS {none}", [json.dumps([document_structure()])])
    if empty or next(store.documents(), None) is None:
        return
    facts = database.run(f"SELECT {', '.join(RunFacts._fields)} FROM {TABLE} WHERE is_current AND refusal IS NULL")
    rows = document_rows(store, Links(RunFacts(*fact) for fact in facts))
    while chunk := [json.dumps(row, ensure_ascii=False) for row in islice(rows, _CHUNK)]:
        database.fill(DOCUMENTS, document_structure(), chunk)


def _fill_kept(database: Database, root: Path, fresh: Sequence[RowFiles]) -> set[str]:
    """Add rows that were kept when their receipts were written; return their paths."""
    stamps = {file.name: file.stamp for file in fresh}
    filled: set[str] = set()
    found = kept_rows(root, stamps)
    while chunk := list(islice(found, _CHUNK)):
        with contextlib.suppress(Damaged):
            database.fill(_FILES, structure(), [row for _, row in chunk])
            filled |= {path for path, _ in chunk}
    return filled


def _rows(files: Sequence[RowFiles]) -> Iterator[tuple[Sequence[RowFiles], list[str]]]:
    """Yield the files in chunks, in order, with their rows."""
    chunks = [files[start : start + _CHUNK] for start in range(0, len(files), _CHUNK)]
    workers = min(os.cpu_count() or 1, len(chunks))
    if len(files) < MANY or workers < 2:
        yield from zip(chunks, map(_make_rows, chunks), strict=True)
        return
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:  # a fork would inherit locks of DuckDB's threads
        yield from zip(chunks, pool.map(_make_rows, chunks), strict=True)


def _make_rows(chunk: Sequence[RowFiles]) -> list[str]:
    return [read_row(files) for files in chunk]


def _load(database: Database, folder: Path) -> Mapping[str, str]:
    """Fill the table from a sound index in ``folder``, if any; return the stamp of each file in it."""
    database.run("CREATE SCHEMA stored")
    empty = "SELECT r.* FROM (SELECT unnest(from_json('[]', ?)) AS r)"
    for path in _indices(folder):
        try:
            footer = dict(database.read_parquet("SELECT key, value FROM parquet_kv_metadata(?)", path))
            if footer.get(b"receipt_index") != fingerprint().encode():
                continue
            database.read_parquet(f"CREATE TABLE {_FILES} AS SELECT * FROM read_parquet(?, hive_partitioning = false)", path)
        except Damaged:
            continue
        return dict(database.run(f"SELECT path, stamp FROM {_FILES}"))
    database.run(f"CREATE TABLE {_FILES} AS {empty}", [json.dumps([structure()])])
    return {}


def _indices(folder: Path) -> Iterator[Path]:
    """Yield the indices in ``folder`` whose bytes match the digest in their names."""
    with contextlib.suppress(OSError):
        for name in sorted(os.listdir(folder)):
            match = _NAME.fullmatch(name)
            with contextlib.suppress(OSError):
                if match is not None and _sha256(folder / name) == match["sha256"]:
                    yield folder / name


def _save(database: Database, folder: Path) -> bool:
    """Save the table as the index, replacing older ones; return whether that worked."""
    with contextlib.suppress(OSError, OutputError):
        folder.mkdir(exist_ok=True)
        new = folder / f".index-{os.getpid()}.tmp"
        try:
            database.write_parquet(f"FROM {_FILES}", new, {"receipt_index": fingerprint()})
            kept = folder / f"index-{_sha256(new)}.parquet"
            old = [folder / other for other in os.listdir(folder) if _NAME.fullmatch(other)]
            new.replace(kept)
            for path in old:
                if path != kept:
                    path.unlink(missing_ok=True)
            return True
        finally:
            new.unlink(missing_ok=True)
    return False


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
