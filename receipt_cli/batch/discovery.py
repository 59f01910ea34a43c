"""Find the logs of an archive in files, folders, patterns and URLs, ordered by name."""

from __future__ import annotations

import glob
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

from receipt_cli.batch.model import Log
from receipt_cli.batch.remote import find_remote, is_url
from receipt_cli.errors import InputError, UsageError
from receipt_cli.io.discovery import has_log_name

SETTLED_S = 2.0
"""A file that changed less than this before it was looked at may change again under the same time stamp."""


@dataclass(frozen=True, slots=True)
class Archive:
    """The logs that were found, how many files of folders were left out by their names, and what could not be listed."""

    logs: tuple[Log, ...]
    left_out: int
    unlisted: tuple[str, ...]
    base: str | None = None
    """The folder that names are relative to; None where all logs are behind URLs."""


def walk(paths: Sequence[str], root: str | None = None, clock: Callable[[], float] = time.time) -> Archive:
    """Return the logs that ``paths`` name: files, folders (searched through), patterns (``runs/**/*.log``) and URLs.

    Links to folders are not followed, hidden files and folders are skipped. Whether a file of a folder is a log
    is decided by its content, when it is read. Names are relative to ``root``, by default the folder that all paths have in
    common. Raises ``InputError`` where nothing is found for a path, ``UsageError`` for a path outside of ``root``.
    """
    roots = [root for path in paths for root in ([path] if is_url(path) else _matches(path))]
    local = [os.path.abspath(root) for root in roots if not is_url(root)]
    base = _base(local, root)
    logs_by_path: dict[str, Log] = {}
    unlisted: list[str] = []
    left_out = 0
    for place in roots:
        if is_url(place):
            logs, others = find_remote(place, clock())
            left_out += others
        else:
            logs = []
            for path, named in _files(os.path.abspath(place), unlisted):
                if not named and not has_log_name(os.path.basename(path)):
                    left_out += 1
                elif (log := _local(path, base, named, clock())) is not None:
                    logs.append(log)
        for log in logs:
            if log.named or log.path not in logs_by_path:
                logs_by_path[log.path] = log
    if not logs_by_path and not unlisted:
        raise InputError("no log was found", where=", ".join(paths)[:200], why=f"{left_out} files do not look like logs")
    return Archive(tuple(sorted(logs_by_path.values(), key=lambda log: (log.name, log.path))), left_out, tuple(unlisted), base)


def local_stamp(status: os.stat_result) -> str:
    """Return a text that identifies the state of a file."""
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"


def read_list(path: str) -> list[str]:
    """Return the paths in the lines of a file, or of stdin for ``-``. Raises ``InputError``."""
    try:
        lines = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    except OSError as error:
        raise InputError("cannot read the list of paths", where=path, why=error.strerror or str(error)) from error
    return [os.fsdecode(line) for line in lines.splitlines() if line]


def _base(local: Sequence[str], root: str | None) -> str:
    """Return the folder that names are relative to."""
    if not local:
        return ""
    common = os.path.commonpath([path if os.path.isdir(path) else os.path.dirname(path) for path in local])
    if root is None:
        return common
    base = os.path.abspath(root)
    if os.path.commonpath([base, common]) != base:
        raise UsageError(f"not all paths are below {root}", why=f"they are below {common}")
    return base


def _matches(path: str) -> list[str]:
    """Return the files and folders that a path means: itself, or what it matches as a pattern."""
    if path == "-":
        raise UsageError("an archive needs names: - has none", try_="receipt parse -")
    if os.path.lexists(path):
        return [path]
    matches = sorted(glob.glob(path, recursive=True)) if glob.has_magic(path) else []
    if not matches:
        raise InputError("no such file or folder", where=path)
    return matches


def _files(root: str, unlisted: list[str]) -> Iterator[tuple[str, bool]]:
    """Yield the files at or below ``root``, and whether it is one that was named."""
    if not os.path.isdir(root):
        yield root, True
        return

    def missed(error: OSError) -> None:
        unlisted.append(f"{error.filename}: {error.strerror or error}")

    for parent, folders, files in os.walk(root, onerror=missed):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__")))
        for name in files:
            if not name.startswith("."):
                yield os.path.join(parent, name), False


def _local(path: str, base: str, named: bool, now: float) -> Log | None:
    """Return the log at ``path``; None for a missing file and for anything but a file."""
    try:
        status = os.stat(path)
    except OSError:  # a broken link, or gone: reading a named one raises the error
        return Log(_name(path, base), path, named, 0, "", False) if named else None
    if not stat.S_ISREG(status.st_mode):
        if named:
            raise InputError("not a file", where=path, why="an archive is made of files and folders")
        return None
    age = now - max(status.st_mtime, status.st_ctime)
    return Log(_name(path, base), path, named, status.st_size, local_stamp(status), age > SETTLED_S)


def _name(path: str, base: str) -> str:
    """Return the path below ``base``, with ``/``, as a text that is valid in every document."""
    name = PurePath(os.path.relpath(path, base)).as_posix() if base else Path(path).as_posix()
    return os.fsencode(name).decode("utf-8", "backslashreplace")
