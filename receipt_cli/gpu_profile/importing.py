"""Import the folder or files of a recorded session as a valid ``gpu_profile`` document."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from receipt_cli.errors import InputError, UsageError
from receipt_cli.gpu_profile import nsys
from receipt_cli.gpu_profile.document import build_document
from receipt_cli.gpu_profile.files import Listing, list_files, list_session
from receipt_cli.gpu_profile.format import GPUFL_FORMAT, TYPES
from receipt_cli.gpu_profile.session import read_session
from receipt_cli.gpu_profile.stream import StreamProblems, first_lines
from receipt_cli.receipts.production import UNDECLARED, Declared, require_valid

_LOOKED_AT = 3
"""Lines at the start of a file, one of which must be a known record."""


def is_recording(paths: Sequence[str]) -> bool:
    """Return whether ``paths`` are folders, or files that begin with records of a session.

    Never raises and never reads from a pipe: only files and folders can be recordings.
    """
    return all(p.is_dir() or (p.is_file() and any(map(_is_record, _head(p)[:_LOOKED_AT]))) for p in map(Path, paths))


def is_report(paths: Sequence[str]) -> bool:
    """Return whether ``paths`` are files with tables printed by ``nsys stats``."""
    return all(path.is_file() and nsys.is_report(_head(path)) for path in map(Path, paths))


def import_report(paths: Sequence[str], declared: Declared = UNDECLARED) -> dict[str, Any]:
    """Return the document of the tables in the files ``paths``. Raises ``InputError``."""
    windows = list_files([Path(path) for path in paths]).windows
    document = nsys.read_report([(window.name, window.open) for window in windows], declared)
    if not document["derivation"]["records"]["read"]:
        raise InputError("holds no table of kernels or copies that can be read", where=paths[0])
    require_valid(document, "document", paths[0])
    return document


def import_session(paths: Sequence[str], declared: Declared = UNDECLARED, *, session: str | None = None) -> dict[str, Any]:
    """Return the document of one session in ``paths`` (a folder, or files); ``session`` is its id, None for the only one.

    Raises ``InputError`` for input that cannot be read, ``OtherSessions`` if it has several sessions or lacks the given one.
    """
    problems = StreamProblems()
    read = read_session(_listing([Path(path) for path in paths], problems), problems, session)
    if not read.read:
        raise InputError(f"holds no record of {GPUFL_FORMAT} that can be read", where=paths[0])
    document = build_document(read, declared)
    require_valid(document, "document", paths[0])
    return document


def _listing(paths: Sequence[Path], problems: StreamProblems) -> Listing:
    folders = [path for path in paths if path.is_dir()]
    if not folders:
        names = [path.name for path in paths]
        if len(set(names)) < len(names):
            raise UsageError("two of the files have the same name", why="file names of a session are unique")
        return list_files(paths)
    if len(paths) > 1:
        raise UsageError("needs one folder, or files", why="each session has its own folder")
    return list_session(folders[0], problems)


def _head(path: Path) -> list[bytes]:
    """Return the first lines of a file, [] if it cannot be read."""
    try:
        with path.open("rb") as stream:
            return first_lines(stream)
    except OSError:
        return []


def _is_record(line: bytes) -> bool:
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return False
    kind = record.get("type") if isinstance(record, dict) else None
    return isinstance(kind, str) and kind in TYPES
