"""A user's tags, note, lane and exclusion of a run: one file per change; the highest number counts."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.errors import UsageError
from receipt_cli.io.atomic import NameTaken, make_folder, write_new
from receipt_cli.io.file_kinds import read_regular

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
    for path in _files(root, run[:2]):
        name = _NAME.fullmatch(path.name)
        if name is not None and name["run"].startswith(run) and newest.get(name["run"], (0, path))[0] < int(name["number"]):
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


def _files(root: Path, start: str) -> Iterator[Path]:
    with contextlib.suppress(OSError):
        for folder in [root / "marks" / start] if start else (root / "marks").iterdir():
            with contextlib.suppress(OSError):
                yield from folder.iterdir()
