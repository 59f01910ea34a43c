"""Find the folders with a site's own definitions for a log, by a few ``stat`` calls, without opening any."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import NamedTuple

from receipt_cli.errors import DataError

LOCAL = ".receipt"
"""Name of the folder that is searched for beside a log and in the folders above it."""
VARIABLE, LOCAL_VARIABLE = "RECEIPT_PATH", "RECEIPT_LOCAL"
GROUP = "receipt_cli.definitions"
"""Group of the entry points ``name = package:folder`` of packages with ``receipt`` in their name; none of their code runs."""
MAX_PARENTS = 64
_WORLD_WRITABLE = 0o002


class Folder(NamedTuple):
    """A folder of definitions: its path, and the reason to search it."""

    path: str
    origin: str


class Found(NamedTuple):
    """The folders in order of precedence, and notes on the folders that are not used."""

    folders: tuple[Folder, ...]
    notes: tuple[str, ...] = ()


def find_folders(beside: str | None = None, environ: Mapping[str, str] | None = None) -> Found:
    """Return the folders of definitions for the log or folder ``beside``; ``-`` and None mean the current folder.

    Order: ``RECEIPT_PATH``, ``.receipt`` beside the log or above it, the user's configuration, installed packages. Raises
    ``DataError`` for a folder of ``RECEIPT_PATH`` that does not exist.
    """
    environ = os.environ if environ is None else environ
    found: list[Folder] = []
    notes: list[str] = []
    for path in filter(None, environ.get(VARIABLE, "").split(os.pathsep)):
        if not os.path.isdir(path):
            raise DataError(f"a folder of {VARIABLE} does not exist", where=path)
        found.append(Folder(os.path.abspath(path), VARIABLE))
    if environ.get(LOCAL_VARIABLE) != "0":
        for path in (os.path.join(folder, LOCAL) for folder in upwards(beside)):
            if not os.path.isdir(path):
                continue
            why = distrusted(path)
            if why:
                named = "" if os.path.islink(path) else f"; {VARIABLE} names it"
                notes.append(f"the definitions in {path} are not used: {why}{named}")
            else:
                found.append(Folder(path, LOCAL))
    own = _configuration(environ)
    if own is not None and os.path.isdir(own):
        found.append(Folder(own, "user"))
    found += _packaged()
    return Found(tuple({folder.path: folder for folder in reversed(found)}.values())[::-1], tuple(notes))


def upwards(beside: str | None) -> Iterator[str]:
    """Yield the folder of ``beside`` (None: the current folder) and its parents, nearest first, up to the home folder."""
    start = os.path.abspath(beside) if beside not in (None, "-") else os.getcwd()
    place = start if os.path.isdir(start) else os.path.dirname(start)
    home = os.path.expanduser("~")
    for _ in range(MAX_PARENTS):
        yield place
        above = os.path.dirname(place)
        if above == place or place == home:
            return
        place = above


def distrusted(path: str) -> str:
    """Return why a found file or folder is not trusted; "" if only this user may change it."""
    try:
        state = os.lstat(path)
    except OSError as error:
        return error.strerror or str(error)
    if os.path.islink(path):
        return "it is a link"
    if sys.platform == "win32":
        return ""
    if state.st_uid != os.getuid():
        return "it belongs to another user"
    return "everybody may write to it" if state.st_mode & _WORLD_WRITABLE else ""


def _configuration(environ: Mapping[str, str]) -> str | None:
    """Return the user's configuration folder, which may be missing; None for a relative base, which XDG forbids."""
    if sys.platform == "win32":
        base = environ.get("APPDATA", "")
    else:
        apple = "~/Library/Application Support" if sys.platform == "darwin" else "~/.config"
        base = environ.get("XDG_CONFIG_HOME") or os.path.expanduser(apple)
    return os.path.join(base, "receipt") if os.path.isabs(base) else None


def _packaged() -> Iterator[Folder]:
    """Yield the folders that installed packages declare; only their metadata is read."""
    for place in sys.path:
        if os.path.basename(place) not in ("site-packages", "dist-packages"):
            continue
        try:
            names = sorted(os.listdir(place))
        except OSError:
            continue
        for name in names:
            if "receipt" in name.lower() and name.endswith((".dist-info", ".egg-info")):
                yield from _entries(place, name)


def _entries(place: str, name: str) -> Iterator[Folder]:
    try:
        with open(os.path.join(place, name, "entry_points.txt"), encoding="utf-8") as file:
            lines = file.read(1 << 16).splitlines()
    except (OSError, UnicodeDecodeError):
        return
    section = ""
    for line in map(str.strip, lines):
        if line.startswith("["):
            section = line.strip("[] ")
        elif section == GROUP and "=" in line:
            package, _, inner = line.split("=", 1)[1].strip().partition(":")
            root = _package(place, package)
            folder = os.path.normpath(os.path.join(root, inner)) if root is not None and ".." not in inner else None
            if folder is not None and os.path.isdir(folder):
                yield Folder(folder, name.rpartition(".")[0].replace("-", " ", 1))


def _package(place: str, package: str) -> str | None:
    """Return the folder of a top-level package without importing it; it may be an editable installation."""
    if not package.isidentifier():
        return None
    folder = os.path.join(place, package)
    if os.path.isdir(folder):
        return folder

    try:
        spec = find_spec(package)
    except (ImportError, ValueError):
        return None
    return next(iter(spec.submodule_search_locations or ()), None) if spec is not None else None
