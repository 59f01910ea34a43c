"""Paths of the logs of a store, and the name, lane and preset of the run at each path.

One file per log and path, beside the receipts: a receipt describes bytes, wherever they are. The content depends only on the
archive and the options of the batch. Values captured in a receipt take precedence over its places.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from typing import Any

from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.errors import UsageError
from receipt_cli.io.atomic import NameTaken, make_folder, write_atomically, write_new
from receipt_cli.io.file_kinds import read_regular

FIELDS = ("name", "lane", "preset")
"""Fields of ``run`` that a place may give."""


@dataclass(frozen=True, slots=True)
class Place:
    """A path of a log, relative to the archive's root with ``/`` (or a URL), and name, lane and preset of its run.

    Each ``…_source`` is the origin of the field: ``stem`` (of the file name), ``template`` or ``mapping``; None without the
    field.
    """

    path: str
    name: str | None = None
    lane: str | None = None
    preset: str | None = None
    name_source: str | None = None
    lane_source: str | None = None
    preset_source: str | None = None

    @property
    def key(self) -> str:
        """The path's key in file names: 16 hexadecimal digits."""
        return hashlib.sha256(self.path.encode("utf-8")).hexdigest()[:16]


@lru_cache(maxsize=64)
def place_bytes(log_sha256: str, place: Place) -> bytes:
    """Return the content of a place's file; cached, because a worker writes it ahead and then needs it again."""
    return canonical_bytes({"log_sha256": log_sha256, **asdict(place)})


def write_place(root: Path, scratch: Path, log_sha256: str, place: Place) -> None:
    """Store a ``place`` of a log, replacing an older one of the same path. Raises ``OutputError``."""
    path = root / "places" / log_sha256[:2] / f"{log_sha256}.{place.key}.json"
    data = place_bytes(log_sha256, place)
    with contextlib.suppress(OSError):
        if read_regular(path) == data:
            return
    make_folder(path.parent)
    make_folder(scratch)
    write_atomically(path, data, scratch)


def read_places(files: Sequence[Path]) -> list[Place]:
    """Return the places in ``files``, ordered by path; skip a damaged file."""
    places: list[Place] = []
    for path in files:
        with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
            values = json.loads(read_regular(path))
            log = values.pop("log_sha256")
            place = Place(**values)
            if path.name.startswith(log) and all(isinstance(v, str | None) for v in values.values()):
                places.append(place)
    return sorted(places, key=lambda place: place.path)


def describe(document: Mapping[str, Any], places: Sequence[Place]) -> tuple[dict[str, Any], dict[str, str | None]]:
    """Return a receipt's ``run`` with missing name, lane and preset taken from the first place that has them, and their sources.

    The source of a value in the receipt itself is ``receipt``. An earlier run of the log gets ``.run2`` or the like after its
    name.
    """
    run, sources = dict(document["run"]), dict.fromkeys(FIELDS)
    launches = document["derivation"].get("launches")
    earlier = launches is not None and launches["used"] != launches["count"]
    for field in FIELDS:
        if run[field] is not None:
            sources[field] = "receipt"
            continue
        place = next((each for each in places if getattr(each, field) is not None), None)
        if place is not None:
            run[field], sources[field] = getattr(place, field), getattr(place, f"{field}_source")
    if earlier and sources["name"] not in (None, "receipt"):
        run["name"] = f"{run['name']}.run{launches['used']}"
    return run, sources


def placed(document: Mapping[str, Any], places: Sequence[Place]) -> dict[str, Any]:
    """Return a receipt with the ``run`` of ``describe`` and its ``log_paths``: for readers, not for storing."""
    return {**document, "run": {**describe(document, places)[0], "log_paths": [place.path for place in places]}}


def place_files(root: Path, log_sha256: str = "") -> Iterator[Path]:
    """Yield the place files of all logs, ordered by log, or of one log."""
    yield from _files(root / "places", log_sha256)


def places_by_log(root: Path) -> Mapping[str, list[Path]]:
    """Return the digest of each log in a store → the files that say at which paths this log lay."""
    return {log: list(files) for log, files in groupby(place_files(root), lambda path: path.name[:64])}


def _files(root: Path, start: str) -> Iterator[Path]:
    """Yield the files below the folders of ``root`` whose names begin with ``start``, in order."""
    for folder in [root / start[:2]] if start else _entries(root):
        yield from (path for path in _entries(folder) if path.name.startswith(start))


def _entries(folder: Path) -> list[Path]:
    with contextlib.suppress(OSError):
        return [folder / name for name in sorted(os.listdir(folder))]
    return []


_NAME = re.compile(r"(?P<run>[0-9a-f]{64}(?:\.run[1-9]\d{0,8})?)\.(?P<number>[1-9]\d{0,8})\.json")
_TAG = re.compile(r"[^\s,]{1,64}\Z")
MAX_NOTE = 4000


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks of one run; history and statistics ignore an ``excluded`` run."""

    tags: tuple[str, ...] = ()
    note: str | None = None
    excluded: bool = False
    lane: str | None = None
    """Lane of a run whose receipt and path have none."""


NONE = Marks()


def marks_files(root: Path, run: str = "") -> Mapping[str, Path]:
    """Return run identity → file of its newest marks, for all runs or those whose identity begins with ``run``."""
    newest: dict[str, tuple[int, Path]] = {}
    for path in _files(root / "marks", run):
        name = _NAME.fullmatch(path.name)
        if name is not None and newest.get(name["run"], (0, path))[0] < int(name["number"]):
            newest[name["run"]] = int(name["number"]), path
    return {run: path for run, (_, path) in newest.items()}


def read_marks(path: Path | None) -> Marks:
    """Return the marks in a file; none for a missing or damaged file."""
    if path is not None:
        with contextlib.suppress(OSError, ValueError, TypeError, LookupError):
            values = json.loads(read_regular(path))
            note = values["note"]
            return Marks(
                tuple(map(str, values["tags"])),
                None if note is None else str(note),
                values["excluded"] is True,
                values.get("lane"),
            )
    return NONE


def mark(
    root: Path,
    scratch: Path,
    run: str,
    *,
    add: tuple[str, ...] = (),
    remove: tuple[str, ...] = (),
    note: str | None = None,
    excluded: bool | None = None,
    lane: str | None = None,
) -> Marks:
    """Change the marks of a run and return them; an empty ``note`` deletes the note, None keeps it.

    Older marks stay as files. Raises ``UsageError`` for an invalid tag or a long note, and ``OutputError``.
    """
    for tag in add:
        if _TAG.match(tag) is None:
            raise UsageError(f"{tag!r} is not a tag", why="a tag has 1 to 64 characters, without spaces and commas")
    if note is not None and len(note) > MAX_NOTE:
        raise UsageError("the note is too long", why=f"it has {len(note)} characters; {MAX_NOTE} are allowed")
    folder = root / "marks" / run[:2]
    while True:
        path = marks_files(root, run).get(run)
        old = read_marks(path)
        tags = tuple(sorted((set(old.tags) | set(add)) - set(remove)))
        new = replace(old, tags=tags, note=old.note if note is None else note or None)
        new = new if excluded is None else replace(new, excluded=excluded)
        new = new if lane is None else replace(new, lane=lane)
        if new == old:
            return old
        name = _NAME.fullmatch(path.name) if path is not None else None
        make_folder(folder)
        make_folder(scratch)
        with contextlib.suppress(NameTaken):  # another process was faster: change its marks
            write_new(folder / f"{run}.{int(name['number']) + 1 if name else 1}.json", canonical_bytes(asdict(new)), scratch)
            return new
