"""Find the logs of an archive in files, folders, patterns and URLs, ordered by name; name their runs by their paths."""

from __future__ import annotations

import contextlib
import csv
import glob
import os
import re
import stat
import string
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import lru_cache
from pathlib import Path, PurePath, PurePosixPath
from typing import Generic, TypeVar, overload

from receipt_cli.batch.model import LeftOut, Log, Reason
from receipt_cli.batch.remote import SETTLED_S, find_remote, is_url
from receipt_cli.errors import InputError, UsageError, system_errors
from receipt_cli.io.compression import unpacked
from receipt_cli.io.discovery import HEAD_BYTES, document_kind, has_log_name
from receipt_cli.redaction.mask import mask_secrets
from receipt_cli.store.places import FIELDS, Place

T = TypeVar("T", covariant=True)
_TEXT = ("utf-8", "surrogatepass")
_YES = b"1"
_NUMBER = re.compile("[0-9]+")


def kind_of(name: str) -> int:
    """Return a number that is equal for logs whose names differ only in digits, and so probably come from one program."""
    return zlib.crc32(_NUMBER.sub("", unpacked(name)).encode(*_TEXT))


class Drawn(Sequence[T], Generic[T]):
    """A sequence of ``count`` items, each made by ``make(position)`` on every access."""

    def __init__(self, count: int, make: Callable[[int], T]) -> None:
        self._count, self._make = count, make

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, at: int) -> T: ...

    @overload
    def __getitem__(self, at: slice) -> list[T]: ...

    def __getitem__(self, at: int | slice) -> T | list[T]:
        if isinstance(at, slice):
            return [self._make(number) for number in range(self._count)[at]]
        return self._make(range(self._count)[at])


class Listing(Drawn[Log]):
    """Logs by name, each path once; of duplicates, the one named by the caller stays.

    ``base`` is the folder that names are relative to; paths below it are not stored.
    """

    def __init__(self, base: str, logs: list[bytes]) -> None:
        self._base = _folder(base)
        logs.sort()
        kept = 0
        for row in logs:  # in place: a copy of a million rows would dominate memory
            if kept and _where(logs[kept - 1]) == _where(row):
                if row.endswith(_YES):
                    logs[kept - 1] = row
            else:
                logs[kept] = row
                kept += 1
        del logs[kept:]
        self._rows = logs
        super().__init__(kept, self._log)

    @staticmethod
    def row(log: Log, base: str) -> bytes:
        """Return a log as packed text: name, path, size, stamp, settled, named."""
        path = "" if log.path == _folder(base) + log.name else log.path
        parts = (log.name.replace("\0", "\ufffd"), path.replace("\0", "\ufffd"), log.size_bytes, log.stamp.replace("\0", " "))
        return "\0".join((*map(str, parts), str(int(log.settled)), str(int(log.named)))).encode(*_TEXT)

    def _log(self, at: int) -> Log:
        name, path, size, stamp, settled, named = self._rows[at].decode(*_TEXT).split("\0")
        return Log(name, path or self._base + name, named == "1", int(size), stamp, settled == "1")


def _folder(base: str) -> str:
    return os.path.join(base, "") if base else ""


def _where(row: bytes) -> bytes:
    return row[: row.index(b"\0", row.index(b"\0") + 1)]


_FOOTER = 1 << 16
"""Bytes at the end of a Parquet file that contain its footer's texts."""
_AGE = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>[mhdw])")
_SECONDS = {"m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


@dataclass(frozen=True, slots=True)
class Archive:
    """The logs found, the files and folders left out (ordered by name), and the folders that could not be listed."""

    logs: Listing
    left_out: tuple[LeftOut, ...]
    unlisted: tuple[str, ...]
    base: str | None = None
    """Folder that names are relative to; "" if all logs are URLs."""


def walk(
    paths: Sequence[str],
    root: str | None = None,
    clock: Callable[[], float] = time.time,
    *,
    since: float | None = None,
    store: str | None = None,
) -> Archive:
    """Return the logs in ``paths``: files, folders (searched through), patterns (``runs/**/*.log``) and URLs.

    Links to folders are not followed; hidden files and folders and the folder ``store`` are skipped. Whether a file in a folder
    is a log is decided by its content, when it is read. Names are relative to ``root``, by default the common folder of all
    paths. Local files unchanged since ``since`` (seconds since 1970) are left out. Raises ``InputError`` for a path without a
    match, ``UsageError`` for a path outside ``root``.
    """
    roots = [root for path in paths for root in ([path] if is_url(path) else _matches(path))]
    local = [os.path.abspath(root) for root in roots if not is_url(root)]
    base = _base(local, root)
    rows: list[bytes] = []
    unlisted: list[str] = []
    left_out: dict[str, LeftOut] = {}
    for place in roots:
        found: Iterable[tuple[str, Log | LeftOut]]
        if is_url(place):
            found = find_remote(place, clock())
        else:
            found = _local_files(os.path.abspath(place), base, clock(), since, store and os.path.abspath(store), unlisted)
        for path, each in found:
            if isinstance(each, LeftOut):
                left_out[path] = each
            else:
                rows.append(Listing.row(each, base))
    logs = Listing(base, rows)
    for log in logs if len(roots) > 1 else ():  # one path leaves it out, but another names it
        left_out.pop(log.path, None)
    others = sorted(left_out.values(), key=lambda each: each.name)
    if not logs and not unlisted:
        counts = Counter(each.reason for each in others)
        why = ", ".join(f"{number} {reason}" for reason, number in sorted(counts.items())) or "the folder is empty"
        raise InputError("no log was found", where=", ".join(paths)[:200], why=f"left out: {why}" if counts else why)
    return Archive(logs, tuple(others), tuple(unlisted), base)


def moment(text: str, now: float) -> float:
    """Convert a date, an RFC 3339 time, or an age such as ``36h`` or ``7d`` to seconds since 1970.

    A time without a zone is UTC. Raises ``UsageError``.
    """
    age = _AGE.fullmatch(text)
    if age is not None:
        return now - float(age["number"]) * _SECONDS[age["unit"]]
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        why = "neither a date (2026-01-31), nor a time (RFC 3339), nor an age (36h, 7d)"
        raise UsageError(f"--since cannot be {text!r}", why=why) from None
    return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).timestamp()


def local_stamp(status: os.stat_result) -> str:
    """Return a text that identifies the state of a file."""
    return f"{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns} {status.st_ino}"


def read_list(path: str) -> list[str]:
    """Return the paths in the lines of a file, or of stdin for ``-``. Raises ``InputError``."""
    with system_errors(InputError, "cannot read the list of paths", path):
        lines = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
    return [os.fsdecode(line) for line in lines.splitlines() if line]


def _base(local: Sequence[str], root: str | None) -> str:
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
    """Return ``path`` itself if it exists, else the files and folders that match it as a pattern."""
    if path == "-":
        raise UsageError("an archive needs file names; - (stdin) has none", try_="receipt parse -")
    if os.path.lexists(path):
        return [path]
    matches = sorted(glob.glob(path, recursive=True)) if glob.has_magic(path) else []
    if not matches:
        raise InputError("no such file or folder", where=path)
    return matches


def _local_files(
    root: str, base: str, now: float, since: float | None, store: str | None, unlisted: list[str]
) -> Iterator[tuple[str, Log | LeftOut]]:
    """Yield every path at or below ``root`` as a log, or with the reason why it is none; a skipped folder only once."""
    if not os.path.isdir(root):
        yield from _local(root, base, True, now, since)
        return

    def missed(error: OSError) -> None:
        unlisted.append(f"{error.filename}: {error.strerror or error}")

    for parent, folders, files in os.walk(root, onerror=missed):
        kept: list[str] = []
        for name in sorted(folders):
            path = os.path.join(parent, name)
            reason = _skipped(name, path, store)
            if reason is None:
                kept.append(name)
            else:
                yield path, LeftOut(f"{_name(path, base)}/", reason)
        folders[:] = kept
        for name in files:
            path = os.path.join(parent, name)
            if name.startswith("."):
                yield path, LeftOut(_name(path, base), "hidden")
            elif not has_log_name(name):
                yield path, LeftOut(_name(path, base), _kind(path))
            else:
                yield from _local(path, base, False, now, since)


def _skipped(name: str, path: str, store: str | None) -> Reason | None:
    """Return the reason for not searching a folder, or None."""
    if name.startswith((".", "__")):
        return "hidden"
    if os.path.islink(path):
        return "link"
    return "store" if path == store else None


def _kind(path: str) -> Reason:
    """Return the reason for leaving out a local file without a log's name."""
    if path.endswith(".json"):
        with contextlib.suppress(OSError), open(path, "rb") as file:
            return reason_of(file.read(HEAD_BYTES)) or "name"
    if path.endswith(".parquet"):
        with contextlib.suppress(OSError), open(path, "rb") as file:
            file.seek(max(0, os.path.getsize(path) - _FOOTER))
            return "series" if b"receipt_series" in file.read() else "name"
    return "name"


def reason_of(head: bytes) -> Reason | None:
    """Return the kind of document of this program that begins with ``head``, or None."""
    kind = document_kind(head)
    return None if kind is None else "receipt" if kind == "receipt" else "header" if kind == "header" else "document"


def _local(path: str, base: str, named: bool, now: float, since: float | None) -> Iterator[tuple[str, Log | LeftOut]]:
    """Yield the log at ``path``, or the reason why it is none."""
    name = _name(path, base)
    try:
        status = os.stat(path)
    except OSError:  # a broken link, or deleted: reading a named file raises the error
        yield path, Log(name, path, named, 0, "", False) if named else LeftOut(name, "link")
        return
    if not stat.S_ISREG(status.st_mode):
        if named:
            raise InputError("not a file", where=path, why="an archive is made of files and folders")
        yield path, LeftOut(name, "special")
        return
    if since is not None and status.st_mtime <= since:
        yield path, LeftOut(name, "older")
        return
    age = now - max(status.st_mtime, status.st_ctime)
    yield path, Log(name, path, named, status.st_size, local_stamp(status), age > SETTLED_S)


def _name(path: str, base: str) -> str:
    """Return the path below ``base``, with ``/``, as text that is valid in every document."""
    name = PurePath(os.path.relpath(path, base)).as_posix() if base else Path(path).as_posix()
    return os.fsencode(name).decode("utf-8", "backslashreplace")


PARTS = ("path", "dir", "parent", "file", "stem")
_STEM = {"name": "{stem}"}
_MAX_TEXT = 500


@dataclass(frozen=True, slots=True)
class Rule:
    """A line of a mapping file: values for logs whose path matches ``pattern``."""

    pattern: str
    values: Mapping[str, str]


@dataclass(frozen=True)
class Labels:
    """Templates by field, and the rules of a mapping file, which take precedence.

    A template may contain ``{path}`` (below the archive's root), ``{dir}`` (its folder), ``{parent}`` (that folder's name),
    ``{file}`` and ``{stem}`` (the file name without suffixes). Raises ``UsageError`` for any other part.
    """

    templates: Mapping[str, str]
    rules: Sequence[Rule] = ()

    def __post_init__(self) -> None:
        for field, template in self.templates.items():
            try:
                parts = [part for _, part, spec, _ in string.Formatter().parse(template) if part is not None or spec]
            except ValueError as error:
                raise UsageError(f"--{field} is not a valid template", where=template, why=str(error)) from error
            wrong = next((part for part in parts if part not in PARTS), None)
            if wrong is not None:
                known = ", ".join(f"{{{part}}}" for part in PARTS)
                raise UsageError(f"--{field} has no part {{{wrong}}}", where=template, why=f"the parts are {known}")

    def place(self, name: str) -> Place:
        """Return the place of the log ``name``, its path below the archive's root, or its URL."""
        parts = _name_parts(name)
        values: dict[str, str] = {}
        for field in FIELDS:
            rule = next((r for r in self.rules if field in r.values and fnmatchcase(name, r.pattern)), None)
            template = self.templates.get(field) or _STEM.get(field)
            if rule is not None:
                values |= {field: rule.values[field], f"{field}_source": "mapping"}
            elif template is not None and (text := template.format(**parts).strip(" /")):
                source = "template" if field in self.templates else "stem"
                values |= {field: mask_secrets(text)[:_MAX_TEXT], f"{field}_source": source}
        return Place(name, **values)


BY_STEM = Labels({})
"""Names are the stems of file names; there are no lanes and presets."""


def read_mapping(path: str) -> list[Rule]:
    """Return the rules of a CSV file with a column ``path`` (may be a pattern) and any of name, lane and preset.

    For each field the first matching line counts. Raises ``InputError``.
    """
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            rows = csv.DictReader(file, strict=True)
            columns = rows.fieldnames or ()
            if "path" not in columns or not set(columns) & set(FIELDS):
                why = f"the first line has {', '.join(map(str, columns)) or 'nothing'}"
                raise InputError("a mapping needs the columns path and one of name, lane and preset", where=path, why=why)
            return [_rule(row) for row in rows if row["path"]]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        why = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise InputError("cannot read the mapping", where=path, why=why) from error


def _rule(row: Mapping[str, str | None]) -> Rule:
    values = {field: mask_secrets(text)[:_MAX_TEXT] for field in FIELDS if (text := (row.get(field) or "").strip())}
    return Rule(str(row["path"]), values)


@lru_cache(maxsize=1024)
def _name_parts(name: str) -> dict[str, str]:
    path = PurePosixPath(name)
    parent = path.parent
    folder = str(parent)
    return {
        "path": name,
        "dir": "" if folder == "." else folder,
        "parent": parent.name,
        "file": path.name,
        "stem": PurePosixPath(unpacked(path.name)).stem or path.name,
    }
