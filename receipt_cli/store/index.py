"""Open the receipts of a store as a database, through an index that may be deleted at any time.

The index is one Parquet file below ``.cache``, one row per receipt file. Its name contains the digest of its bytes, its footer
the version that wrote it, so that damaged and outdated indices are ignored. Rows of new, removed and changed receipt files are
updated, and the index is written under a new name. A defective index costs time and never changes an answer.

The process that writes a receipt has just validated it, and keeps its row: it appends the row to its own file below
``.cache/rows``, with the version of the rows and the stamp of the underlying files. The stamp contains the time of the system's
last change of the file, so a row applies only to this file on this machine, and rows in a copied store are not trusted.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import cache
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from receipt_cli import __version__
from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.documents.schemas import list_schemas
from receipt_cli.errors import InputError, OutputError, UsageError
from receipt_cli.io.atomic import make_folder
from receipt_cli.io.duckdb import Damaged, Database, check_installed
from receipt_cli.io.file_kinds import read_regular
from receipt_cli.store.documents import Links, RunFacts, document_rows
from receipt_cli.store.files import Store
from receipt_cli.store.flatten import RowFiles, list_files, make_row, read_row
from receipt_cli.store.query import plain
from receipt_cli.store.views import DOCUMENTS, REAL, TABLE, TIME, VIEWS, document_structure, structure

ROWS = "rows/3"
"""Version of the rows; with another version every index is rebuilt."""
MAX_ROW = 16 * 1024 * 1024
"""Largest kept row in bytes; a larger one is made from its receipt."""
_LENGTH = 4
_DIGEST = 16


@cache
def fingerprint() -> str:
    """Return the digest of everything besides the receipt that determines a row."""
    schemas = [[entry.kind, entry.version, entry.sha256] for entry in list_schemas()]
    return hashlib.sha256(json.dumps([ROWS, __version__, structure(), schemas]).encode()).hexdigest()


def keep_rows(store: Store, log_sha256: str, documents: Sequence[Mapping[str, Any]], contents: Sequence[bytes] = ()) -> None:
    """Keep the rows of the valid receipts ``documents`` of a log, if the store contains them.

    ``contents`` are their canonical bytes, if known.
    """
    contents = contents or [canonical_bytes(document) for document in documents]
    with contextlib.suppress(OSError, ValueError, InputError, OutputError):  # the receipts are stored; rows only save time
        for files in list_files(store, log_sha256):
            stored = read_regular(files.receipt.path)
            if stored in contents:
                _append(store.root, files.name, files.stamp, make_row(files, documents[contents.index(stored)]))


def kept_rows(root: Path, wanted: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield (path, row) of each kept row whose stamp is the one in ``wanted``, each path once."""
    seen: set[str] = set()
    for file in _kept_files(root):
        for frame in _frames(file):
            head, _, row = frame.partition("\n")
            with contextlib.suppress(ValueError, TypeError):
                version, path, stamp = json.loads(head)
                its_own = row.startswith(f'{{"path":"{path}",')
                if its_own and version == fingerprint() and path not in seen and wanted.get(path) == stamp:
                    seen.add(path)
                    yield path, row


def drop_rows(root: Path) -> None:
    """Delete the kept rows, which the index now contains; a process that still writes starts a new file."""
    for path in _kept_files(root):
        with contextlib.suppress(OSError):
            path.unlink()


@cache
def _own_name(process: int) -> str:
    """Return the file name of this process, unique across machines."""
    return f"{process}-{os.urandom(8).hex()}.rows"


def _append(root: Path, path: str, stamp: str, row: str) -> None:
    data = zlib.compress(f"{json.dumps([fingerprint(), path, stamp])}\n{row}".encode(), 1)
    if len(row) <= MAX_ROW // 4:  # a character has at most four bytes
        folder = root / ".cache" / "rows"
        make_folder(folder)
        with open(os.path.join(folder, _own_name(os.getpid())), "ab", buffering=0) as file:
            file.write(len(data).to_bytes(_LENGTH, "big") + _digest(data) + data)


def _frames(file: Path) -> Iterator[str]:
    """Yield the texts in a file up to the first damaged one: its writer was killed, or the disk was full."""
    with contextlib.suppress(OSError, zlib.error, UnicodeDecodeError), file.open("rb") as stream:
        while head := stream.read(_LENGTH + _DIGEST):
            data = stream.read(min(int.from_bytes(head[:_LENGTH], "big"), MAX_ROW))
            if head[_LENGTH:] != _digest(data):
                return
            yield zlib.decompressobj().decompress(data, MAX_ROW).decode()


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST).digest()


def _kept_files(root: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return sorted(path for path in (root / ".cache" / "rows").iterdir() if path.suffix == ".rows" and path.is_file())
    return []


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


Row = dict[str, Any]


def current_rows(root: Path, fields: Sequence[str], progress: Callable[[int, int], None] | None = None) -> list[Row]:
    """Return some ``fields`` of the index (``views.structure``) for the current receipt of each run, in order of ``run_id``.

    Times are RFC 3339 in UTC, unknown values None. ``run_id`` is always among the fields. ``progress`` as ``open_store`` has
    it. Raises ``InputError`` if the store does not exist.
    """
    names = list(dict.fromkeys((*fields, "run_id")))
    try:
        check_installed()
    except UsageError:
        rows = list(_read(root, names))
    else:
        select = f"SELECT {', '.join(names)} FROM stored.receipts WHERE is_current"
        rows = [dict(zip(names, map(plain, row), strict=True)) for row in open_store(root, progress, documents=False).run(select)]
    return sorted(rows, key=lambda row: str(row["run_id"]))


def _read(root: Path, names: Sequence[str]) -> Iterator[Row]:
    """Yield the rows of the current receipts; rows that were kept when these were written need no reading."""
    store = Store(root)
    store.check_exists()
    current = {receipt.path for receipt in store.receipts()}
    files = [each for each in list_files(store) if each.receipt.path in current]
    kept = dict(kept_rows(root, {each.name: each.stamp for each in files}))
    kinds = {name: structure()[name] for name in names}
    for each in files:
        row = json.loads(kept.get(each.name) or read_row(each))
        yield {name: _as_stored(row.get(name), kind) for name, kind in kinds.items()}


def _as_stored(value: Any, kind: object) -> Any:
    """Return a value as the index returns it: numbers of its type, times in RFC 3339."""
    if value is None:
        return None
    if isinstance(kind, dict):
        return {name: _as_stored(value.get(name), inner) for name, inner in kind.items() if name in value}
    if isinstance(kind, list):
        return [_as_stored(each, kind[0]) for each in value]
    if kind == REAL:
        return float(value)
    return f"{value.replace(' ', 'T')}Z" if kind == TIME else value
