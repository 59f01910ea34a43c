"""Read the wall time of the option ``--wall``: seconds, a duration, or a file that contains it."""

from __future__ import annotations

import json
import math
import os
import re
from datetime import datetime
from typing import Any

from receipt_cli.analysis.goodput.model import OF_COMMAND, Wall
from receipt_cli.errors import InputError, UsageError
from receipt_cli.importers.nanochat_report import recognise as is_nanochat_report
from receipt_cli.importers.nanochat_report import stage_times
from receipt_cli.importers.text import read_document
from receipt_cli.importers.wandb_summary import recognise as is_wandb_summary

MAX_SECONDS = 1e9
"""Longest wall time in seconds; more than thirty years is a mistake."""
_SECONDS = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)s?", re.ASCII)
_CLOCK = re.compile(r"(?:(\d{1,5})-)?(\d{1,6}):([0-5]\d):([0-5]\d(?:\.\d{1,9})?)", re.ASCII)
_UNITS = re.compile(r"(?=\d)(?:(\d{1,5})d)?(?:(\d{1,6})h)?(?:(\d{1,7})m)?(?:(\d{1,9}(?:\.\d{1,9})?)s)?", re.ASCII)
_TRY = "--wall 3h10m, --wall 11431, --wall wandb-summary.json, --wall report.md, or the receipt of receipt run"


def read_wall(text: str) -> Wall:
    """Return the wall time in ``text``.

    ``11431``, ``11431.5s``, ``3:10:31``, ``1-03:10:31`` (days first) and ``3h10m`` are durations; any other text is the
    path of a file: a wandb summary (``_runtime``), nanochat's report.md (its longest training stage, from the previous
    section to its own), or a receipt or another document with ``run.wall_time_s`` or with ``run.started_at`` and
    ``run.finished_at``. Raises ``UsageError`` for any other text or file, and ``InputError`` for an unreadable file.
    """
    seconds = _duration(text)
    if seconds is not None:
        return _sound(Wall(seconds, "stated"), text)
    if not os.path.exists(text) or os.path.isdir(text):  # False for a text that cannot be a path
        raise UsageError(f"--wall {text!r} is neither a duration nor a file", try_=_TRY)
    return _sound(_from_file(text), text)


def _duration(text: str) -> float | None:
    """Return the seconds of a duration; None for another text."""
    if (found := _SECONDS.fullmatch(text)) is not None:
        return float(found[1])
    if (found := _CLOCK.fullmatch(text)) is not None or (found := _UNITS.fullmatch(text)) is not None:
        days, hours, minutes = (int(part or 0) for part in found.groups()[:3])
        return math.fsum([86400.0 * days, 3600.0 * hours, 60.0 * minutes, float(found[4] or 0)])
    return None


def _sound(wall: Wall, text: str) -> Wall:
    if not 0 < wall.seconds <= MAX_SECONDS:
        raise UsageError(f"--wall {text!r} is not a wall time", why=f"{wall.seconds:g} seconds", try_=_TRY)
    return wall


def _from_file(path: str) -> Wall:
    document = read_document(path)
    if is_nanochat_report(document.text):
        times = stage_times(document.text)
        if not times:
            raise UsageError("the report has no stage with a known beginning and end", why=f"in {document.name}", try_=_TRY)
        phase, seconds = max(times, key=lambda time: time[1])
        return Wall(seconds, "nanochat_report", phase)
    try:
        value = json.loads(document.text)
    except (ValueError, RecursionError) as error:
        why = str(error)[:200]
        raise InputError("is neither JSON nor nanochat's report.md", where=document.name, why=why, try_=_TRY) from error
    wall = (_wandb(value) or _run(value)) if isinstance(value, dict) else None
    if wall is None:
        why = f"{document.name} has neither _runtime nor run.wall_time_s"
        raise UsageError("the file has no wall time", why=why, try_=_TRY)
    return wall


def _wandb(document: dict[str, Any]) -> Wall | None:
    if not is_wandb_summary(document):
        return None
    seconds = _number(document.get("_runtime"))
    return None if seconds is None else Wall(seconds, "wandb_summary")


def _run(document: dict[str, Any]) -> Wall | None:
    run = document.get("run")
    if not isinstance(run, dict):
        return None
    seconds = _number(run.get("wall_time_s"))
    if seconds is not None:
        return Wall(seconds, OF_COMMAND)
    start, end = _moment(run.get("started_at")), _moment(run.get("finished_at"))
    return Wall((end - start).total_seconds(), "started_and_finished") if start is not None and end is not None else None


def _number(value: object) -> float | None:
    sound = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MAX_SECONDS
    return float(value) if sound and isinstance(value, int | float) else None


def _moment(value: object) -> datetime | None:
    if not isinstance(value, str) or not value.endswith("Z"):
        return None
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None
