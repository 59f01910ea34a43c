"""List the files of a session: channel and window of each, missing windows, and sidecars."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from receipt_cli.errors import InputError, system_errors
from receipt_cli.gpu_profile.stream import StreamProblems, whole

CHANNELS = ("device", "scope", "system", "sass")
_NAME = re.compile(r"(?s)(?:(?P<prefix>.+)\.)?(?P<channel>device|scope|system|sass)(?:\.(?P<number>\d{1,9}))?\.log(?:\.gz)?")
_SIDECAR = re.compile(r"\.gpufl-window\.(?P<channel>[a-z]+)\.(?P<number>\d{1,9})\.json")
_LOSS = re.compile(r"\.gpufl-transport-loss\.(?P<channel>[\w-]+)\.(?P<number>\d{1,9})\.json")
_SPOOL = ".tmp"
_MAX_FILES = 100_000
_MAX_SIDECAR = 1 << 16


class Window(NamedTuple):
    """One file of a channel; ``number`` is None for the one written last; ``spooled``: not yet published."""

    name: str
    channel: str
    number: int | None
    spooled: bool
    open: Callable[[], BinaryIO]


@dataclass(slots=True)
class Listing:
    """The windows of a session in reading order, and the windows that sidecars announce or declare lost."""

    windows: list[Window] = field(default_factory=list)
    sidecars: dict[str, dict[str, Any]] = field(default_factory=dict)
    """File name → size and checksum from its sidecar."""
    announced: set[tuple[str, int]] = field(default_factory=set)
    given_up: set[tuple[str, int]] = field(default_factory=set)


def is_session(path: Path) -> bool:
    """Return whether ``path`` is a folder with a file of a channel."""
    try:
        return any(_is_window(entry.name) for entry in (*path.iterdir(), *_spooled(path)))
    except OSError:
        return False


def list_session(path: Path, problems: StreamProblems) -> Listing:
    """Return the windows of the session in the folder ``path``. Raises ``InputError``."""
    found = Listing()
    with system_errors(InputError, "cannot read the folder", path):
        entries = sorted(entry for entry in (*path.iterdir(), *_spooled(path)) if entry.is_file())
    if len(entries) > _MAX_FILES:
        raise InputError("holds too many files for one session", where=str(path), why=f"over {_MAX_FILES}")
    windows: list[Window] = []
    for entry in entries:
        name = entry.relative_to(path).as_posix()
        if _is_window(entry.name):
            windows.append(_window(name, _opener(entry)))
        elif sidecar := _SIDECAR.fullmatch(entry.name):
            found.announced.add((sidecar["channel"], int(sidecar["number"])))
            _keep_sidecar(found, entry, name, problems)
        elif loss := _LOSS.fullmatch(entry.name):
            found.given_up.add((loss["channel"], int(loss["number"])))
    names = (_NAME.fullmatch(window.name.rpartition("/")[2]) for window in windows)
    prefixes = {name["prefix"] or "" for name in names if name is not None}
    if len(prefixes) > 1:
        known = ", ".join(sorted(prefix or "(no prefix)" for prefix in prefixes))[:200]
        raise InputError(
            "holds the files of several recordings", where=str(path), why=known, try_="name the files of one of them"
        )
    found.windows = _once(windows, problems)
    if not found.windows:
        below = next((entry for entry in sorted(path.iterdir()) if entry.is_dir() and is_session(entry)), None)
        raise InputError(
            "holds no file of a session",
            where=str(path),
            why="expected device.log, scope.log or system.log",
            try_="" if below is None else f"receipt import {below}",
        )
    return found


def list_files(paths: Sequence[Path]) -> Listing:
    """Return ``paths`` as windows, each under its file name. Raises ``InputError``."""
    return list_streams((path.name, _opener(path)) for path in paths)


def list_streams(streams: Iterable[tuple[str, Callable[[], BinaryIO]]]) -> Listing:
    """Return the windows of ``streams``, pairs (file name, function that opens it); the last pair of a name counts."""
    return Listing(sorted((_window(name, opener) for name, opener in dict(streams).items()), key=_order))


def gaps(listing: Listing) -> set[tuple[str, int]]:
    """Return the missing windows (channel, index), judged by existing files and by sidecars."""
    missing: set[tuple[str, int]] = set()
    for channel in CHANNELS:
        there = {w.number for w in listing.windows if w.channel == channel and w.number is not None}
        announced = {index for name, index in listing.announced | listing.given_up if name == channel}
        last = max(there | announced, default=0)
        if last - len(there) > _MAX_FILES:  # the number is wrong: no session has so many windows
            missing.add((channel, last))
            continue
        missing |= {(channel, index) for index in range(1, last + 1) if index not in there}
    return missing


def _window(name: str, opener: Callable[[], BinaryIO]) -> Window:
    found = _NAME.fullmatch(name.rpartition("/")[2])
    spooled = name.startswith(f"{_SPOOL}/")
    if found is None:
        return Window(name, name, None, spooled, opener)
    return Window(name, found["channel"], None if found["number"] is None else int(found["number"]), spooled, opener)


def _is_window(name: str) -> bool:
    """Return whether ``name`` is that of a channel's file. A hidden file is an unfinished one of a launcher."""
    return not name.startswith(".") and _NAME.fullmatch(name) is not None


def _order(window: Window) -> tuple[int, str, bool, int, bool, str]:
    """Return a sort key: channels in the format's order, windows by number, the one without a number last."""
    known = CHANNELS.index(window.channel) if window.channel in CHANNELS else len(CHANNELS)
    return known, window.channel, window.number is None, window.number or 0, window.spooled, window.name


def _once(windows: Sequence[Window], problems: StreamProblems) -> list[Window]:
    """Return one file for each window: if it exists twice (also compressed, or also spooled), the one with content.

    An empty plain file is left over if it could not be removed after compression.
    """
    kept: dict[tuple[str, int | None], Window] = {}
    for window in sorted(windows, key=lambda window: (*_order(window)[:5], window.name.endswith(".gz"))):
        key = (window.channel, window.number)
        other = kept.get(key)
        if other is None or _is_empty(other):
            kept[key] = window
        elif not _is_empty(window):
            problems.add("window_twice", f"{window.name}: duplicate window; {other.name} was read")
    return sorted(kept.values(), key=_order)


def _is_empty(window: Window) -> bool:
    try:
        with window.open() as file:
            return not file.read(1)
    except InputError:
        return True


def _spooled(path: Path) -> list[Path]:
    spool = path / _SPOOL
    return list(spool.iterdir()) if spool.is_dir() else []


def _keep_sidecar(found: Listing, entry: Path, name: str, problems: StreamProblems) -> None:
    try:
        with entry.open("rb") as file:
            declared = json.loads(file.read(_MAX_SIDECAR))
    except (OSError, ValueError, RecursionError):
        declared = None
    payload = declared.get("payload_file") if isinstance(declared, dict) else None
    if not isinstance(payload, str):
        problems.add("sidecar_unreadable", f"{name}: does not describe a window")
        return
    sizes = {key: whole(declared.get(key), 0, 1 << 62) for key in ("payload_bytes", "payload_crc32")}
    found.sidecars[payload] = sizes


def _opener(path: Path) -> Callable[[], BinaryIO]:
    def open_() -> BinaryIO:
        with system_errors(InputError, "cannot read", path):
            return path.open("rb")

    return open_
