"""Find a run of a store by digits of its digest, its name, or the path of its log or receipt."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from receipt_cli.errors import InputError
from receipt_cli.io.file_kinds import read_regular
from receipt_cli.io.source import Source
from receipt_cli.store.files import Store, StoredReceipt
from receipt_cli.store.places import place_files, places_by_log, read_places

_DIGITS = re.compile(r"(?P<digits>[0-9a-f]{4,64})(?:\.run(?P<run>[1-9]\d{0,8}))?\Z")
_NAME = re.compile(rb'"run":\s*\{\s*"name":\s*("(?:[^"\\]|\\.)*")')
_HEAD = 2048
"""Bytes of a receipt that contain the run's name, which the store writes near the start."""
SHOWN = 6
"""Most runs listed in the error about an ambiguous name."""
_ROOTS = "roots.json"
MAX_ROOTS = 16


class NamedRun(NamedTuple):
    """A current receipt with the name of its run and the paths of its log."""

    receipt: StoredReceipt
    name: str | None
    paths: tuple[str, ...]


def find_run(root: Path, given: str) -> NamedRun:
    """Return the run of the store at ``root`` that ``given`` names.

    ``given`` is the first digits of its digest (at least four, followed by ``.run1`` for an earlier run of its log), its name,
    or a path of its log or receipt; else the start of a name or path, or the end of a path, if only one run matches. Raises
    ``InputError`` without a match, and for several matches, which it lists.
    """
    store = Store(root)
    store.check_exists()
    digits = _DIGITS.match(given)
    if digits is not None:
        number = int(digits["run"]) if digits["run"] else None  # None: the last run of its log
        logs = dict.fromkeys(receipt.log_sha256 for receipt in store.history(digits["digits"]))
        found = [receipt for log in logs for receipt in store.runs(log) if receipt.run == number]
        if found:
            return _only(given, root, [_name(receipt, list(place_files(root, receipt.log_sha256))) for receipt in found])
    places = places_by_log(root)
    runs = [_name(receipt, places.get(receipt.log_sha256, ())) for receipt in store.receipts()]
    exact = [run for run in runs if given in (run.name, *run.paths, run.receipt.path.relative_to(root).as_posix())]
    beginning = [run for run in runs if any(text.startswith(given) for text in (run.name or "", *run.paths))]
    ending = [run for run in runs if any(path.endswith(f"/{given}") for path in run.paths)]
    for matching in (exact, beginning, ending):
        last = [run for run in matching if run.receipt.run is None]
        if len({run.receipt.log_sha256 for run in matching}) == 1 and last:
            return last[0]  # a path names the last run of its log
        if matching:
            return _only(given, root, matching)
    raise InputError(f"the store has no run {given!r}", where=str(root), try_=f"receipt store ls {root}")


def find_log(root: Path, run: NamedRun) -> Path | None:
    """Return the path of a run's log on this machine, below a root that a batch noted, or None."""
    for folder in noted_roots(root):
        for name in run.paths:
            path = Path(folder) / name
            if path.is_file() and Source(str(path)).measure().sha256 == run.receipt.log_sha256:
                return path
    return None


def noted_roots(root: Path) -> list[str]:
    """Return the archive roots that batches on this machine noted in the store's cache."""
    with contextlib.suppress(OSError, ValueError):
        found = json.loads((root / ".cache" / _ROOTS).read_bytes())
        return [folder for folder in found if isinstance(folder, str)] if isinstance(found, list) else []
    return []


def note_root(root: Path, folder: str) -> None:
    """Note an archive's root in the store's cache, so that the logs of its runs can be found again."""
    known = noted_roots(root)
    if known[:1] == [folder]:
        return
    text = json.dumps([folder, *(each for each in known if each != folder)][:MAX_ROOTS])
    with contextlib.suppress(OSError):
        path = root / ".cache" / f".roots-{os.getpid()}.tmp"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.replace(root / ".cache" / _ROOTS)


def _name(receipt: StoredReceipt, files: Sequence[Path]) -> NamedRun:
    places = read_places(files)
    name: str | None = None
    with contextlib.suppress(OSError, ValueError):
        match = _NAME.search(read_regular(receipt.path, _HEAD))
        name = json.loads(match[1]) if match else None
    if name is None:
        name = next((place.name for place in places if place.name is not None), None)
        name = f"{name}.run{receipt.run}" if name is not None and receipt.run is not None else name
    return NamedRun(receipt, name, tuple(place.path for place in places))


def _only(given: str, root: Path, runs: Sequence[NamedRun]) -> NamedRun:
    if len(runs) == 1:
        return runs[0]
    shown = [f"{run.receipt.run_id[:12]}{run.receipt.run_id[64:]} ({run.name or next(iter(run.paths), '-')})" for run in runs]
    more = f", and {len(runs) - SHOWN} more" if len(runs) > SHOWN else ""
    raise InputError(f"{len(runs)} runs are called {given!r}", where=str(root), why=f"{', '.join(shown[:SHOWN])}{more}")
