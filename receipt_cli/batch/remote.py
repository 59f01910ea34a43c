"""List and fetch logs by URL (``s3://``, ``gs://``, ``https://`` and all other protocols of fsspec).

A fetched log is read from a temporary folder, with its header file and receipt beside it.
"""

from __future__ import annotations

import os
import posixpath
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from receipt_cli.batch.model import LeftOut, Log
from receipt_cli.errors import InputError, UsageError
from receipt_cli.io.discovery import has_log_name
from receipt_cli.redaction.mask import mask_secrets

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_URL = re.compile(r"[a-z][a-z0-9+.-]+://", re.I)
_MAGIC = re.compile(r"[*?\[]")
_MARKS = ("ETag", "etag", "md5Hash", "content_md5", "checksum", "generation", "VersionId")
"""Keys in the metadata of object stores whose value changes with the content."""
_TIMES = ("LastModified", "mtime", "last_modified", "updated", "modified", "created")
SETTLED_S = 2.0
"""Seconds since its last change after which a file's time stamp surely changes with its content."""


def is_url(path: str) -> bool:
    """Return whether a path is a URL; a drive letter is not."""
    return _URL.match(path) is not None


def find_remote(url: str, now: float) -> list[tuple[str, Log | LeftOut]]:
    """Return (path, log or reason for leaving it out) of each file at or below ``url``, which may be a pattern.

    Raises ``UsageError`` if fsspec, or its package for this protocol, is not installed, ``InputError`` if nothing can be
    listed.
    """
    system, root = _open(url)
    try:
        named = False
        if _MAGIC.search(root):
            infos = system.glob(root, detail=True)
        elif system.isfile(root):
            infos, named = {root: system.info(root)}, True
        else:
            infos = system.find(root, detail=True)
    except Exception as error:  # every protocol raises its own errors
        raise _unread(url, error) from error
    files = {path: info for path, info in infos.items() if info.get("type") == "file"}
    if not files:
        raise InputError("no such file or folder", where=mask_secrets(url))
    found: list[tuple[str, Log | LeftOut]] = []
    for path, info in files.items():
        full = system.unstrip_protocol(path)
        hidden = _hidden(path, root)
        if not hidden and (named or has_log_name(posixpath.basename(path))):
            stamp, settled = _stamp(info, now)
            found.append((full, Log(mask_secrets(full), full, named, int(info.get("size") or 0), stamp, settled)))
        else:
            found.append((full, LeftOut(mask_secrets(full), "hidden" if hidden else "name")))
    return found


@contextmanager
def fetched(url: str, siblings: Sequence[str]) -> Iterator[str]:
    """Yield the path of a temporary copy of ``url``, with copies of existing ``siblings`` (names) beside it.

    Raises ``FileNotFoundError`` if it no longer exists, ``InputError`` if it cannot be read.
    """
    system, path = _open(url)
    folder, name = posixpath.split(path)
    with TemporaryDirectory(prefix="receipt-") as copies:
        local = os.path.join(copies, name.replace(os.sep, "_"))
        try:
            system.get_file(path, local)
            for sibling in siblings:
                beside = posixpath.join(folder, sibling)
                if system.isfile(beside):
                    system.get_file(beside, os.path.join(copies, sibling))
        except FileNotFoundError:
            raise
        except Exception as error:  # every protocol raises its own errors
            raise _unread(url, error) from error
        yield local


@contextmanager
def fetched_logs(urls: Sequence[str]) -> Iterator[dict[str, str]]:
    """Yield temporary copies of the logs at or below ``urls``: path of the copy → its URL.

    The copies have the logs' names below the common part of their URLs. Raises as ``find_remote`` does.
    """
    found = {path: each for url in urls for path, each in find_remote(url, time.time()) if isinstance(each, Log)}
    if not found:
        raise InputError("no log was found", where=mask_secrets(urls[0]), why="no file has a log's name")
    common = len(posixpath.commonpath([posixpath.dirname(path) for path in found]))
    with TemporaryDirectory(prefix="receipt-") as folder:
        copies: dict[str, str] = {}
        for url, log in found.items():
            parts = [part.replace(os.sep, "_") for part in url[common:].split("/") if part not in ("", ".", "..")]
            local = os.path.join(folder, *parts)
            os.makedirs(os.path.dirname(local), exist_ok=True)
            system, path = _open(url)
            try:
                system.get_file(path, local)
            except Exception as error:  # every protocol raises its own errors
                raise _unread(url, error) from error
            copies[local] = log.name
        yield copies


def _open(url: str) -> tuple[AbstractFileSystem, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise UsageError(
            "a URL needs fsspec", where=mask_secrets(url), why="it is not installed", try_="pip install 'receipt-cli[remote]'"
        ) from error
    try:
        system, path = url_to_fs(url)
    except (ImportError, ValueError) as error:  # the protocol's package is missing, or the protocol is unknown
        raise UsageError("cannot open the URL", where=mask_secrets(url), why=mask_secrets(str(error))) from error
    return system, str(path)


def _unread(url: str, error: Exception) -> InputError:
    return InputError("cannot read", where=mask_secrets(url), why=mask_secrets(f"{type(error).__name__}: {error}")[:300])


def _hidden(path: str, root: str) -> bool:
    """Return whether a file, or a folder between it and ``root`` (the fixed part of a pattern), is hidden."""
    fixed = _MAGIC.split(root)[0].rpartition("/")[0] if _MAGIC.search(root) else root
    inside = path[len(fixed) :] if path.startswith(fixed) else posixpath.basename(path)
    return any(part.startswith((".", "__")) for part in inside.split("/"))


def _stamp(info: Mapping[str, Any], now: float) -> tuple[str, bool]:
    """Return the stamp of a remote file, and whether it is settled: by its age if it has no digest or version."""
    marks = [f"{key}={info[key]}" for key in _MARKS if info.get(key)]
    times = [info[key] for key in _TIMES if info.get(key)]
    stamp = " ".join([str(info.get("size")), *marks, *map(str, times)])
    return stamp, bool(marks) or (bool(times) and now - max(map(_seconds, times)) > SETTLED_S)


def _seconds(time: object) -> float:
    """Return a time of a file system in seconds; infinity for an unreadable one, which never counts as settled."""
    if isinstance(time, datetime):
        return time.timestamp()
    try:
        return float(str(time)) if not isinstance(time, str) else datetime.fromisoformat(time).timestamp()
    except ValueError:
        return float("inf")
