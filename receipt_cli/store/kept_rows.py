"""Keep the row of a receipt when it is written, so that the first query need not validate and mask it again.

The process that writes a receipt has just validated it. It appends the row to its own file below ``.cache/rows``, with the
version of the rows and the stamp of the underlying files. The stamp contains the time of the system's last change of the file,
so a row applies only to this file on this machine, and rows in a copied store are not trusted. Rows that are missing, damaged
or outdated are made from the receipts: a lost row costs time and never changes an answer.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from receipt_cli import __version__
from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.documents.schemas import list_schemas
from receipt_cli.errors import InputError, OutputError
from receipt_cli.io.atomic import make_folder
from receipt_cli.io.file_kinds import read_regular
from receipt_cli.store.files import Store
from receipt_cli.store.flatten import list_files, make_row
from receipt_cli.store.views import structure

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
    for file in _files(root):
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
    for path in _files(root):
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


def _files(root: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return sorted(path for path in (root / ".cache" / "rows").iterdir() if path.suffix == ".rows" and path.is_file())
    return []
