"""Read the Parquet files of neptune-exporter: ``RUN_part_N.parquet``, a row for each value of each attribute.

Columns: neptune_exporter/model.py. Parquet is read by DuckDB, which is an extra.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from receipt_cli.errors import InputError
from receipt_cli.importers.model import DeclaredFailure, ForeignRun
from receipt_cli.importers.text import Document
from receipt_cli.importers.trackers.curves import Curves
from receipt_cli.importers.values import rfc3339, whole_step
from receipt_cli.importers.wandb_summary import read_config
from receipt_cli.io.duckdb import Damaged, Database

FORMAT = "neptune-exporter"
MAGIC = b"PAR1"
_PART = re.compile(r".+_part_(\d+)\.parquet")
_NAMES = "**/*_part_*.parquet"
_SYSTEM = ("sys/", "monitoring/")
"""Namespaces of Neptune's own attributes and of its machine metrics."""
_QUERY = (
    "SELECT run_id, attribute_path, attribute_type, CAST(step AS VARCHAR), epoch_ms(timestamp), "
    "coalesce(CAST(bool_value AS VARCHAR), CAST(int_value AS VARCHAR), string_value), float_value, epoch(datetime_value) "
    "FROM read_parquet(?)"
)


class _Attribute(NamedTuple):
    """A value of an attribute; ``step`` is decimal text, ``at_ms`` milliseconds since 1970, ``moment`` seconds."""

    run: str
    path: str
    kind: str
    step: str | None
    at_ms: int | None
    text: str | None
    number: float | None
    moment: float | None


def is_part(path: Path) -> bool:
    """Return whether a file has the name of a part of an exported run."""
    return _PART.fullmatch(path.name) is not None


def parts_in(folder: Path) -> list[Path]:
    """Return the parts of all runs in a folder and below it, those of a run in their order."""
    found = ((path, _PART.fullmatch(path.name)) for path in folder.glob(_NAMES) if path.is_file())
    numbered = [(_stem(path), int(match[1]), path) for path, match in found if match is not None]
    return [path for _, _, path in sorted(numbered)]


def files(run: Path) -> list[Path]:
    """Return the parts of the run that one of its parts belongs to."""
    return [part for part in parts_in(run.parent) if part.parent == run.parent and _stem(part) == _stem(run)]


def runs(folder: Path) -> list[Path]:
    """Return the first part of each run in a folder."""
    return list({_stem(part): part for part in reversed(parts_in(folder))}.values())[::-1]


def _stem(part: Path) -> str:
    return str(part).rpartition("_part_")[0]


def read(foreign: ForeignRun, documents: Sequence[Document], paths: Sequence[Path]) -> ForeignRun:
    """Return the run in the parts. Raises ``InputError``, and ``UsageError`` without DuckDB."""
    foreign.producer = "neptune-exporter"
    values = _values(paths)
    run = values[0].run if values else ""
    curves = Curves(foreign)
    curves.namespace = "metrics/"
    settings: dict[str, _Attribute] = {}
    points: list[tuple[int, _Attribute]] = []
    for value in values:
        if value.kind == "float_series":
            if value.path.startswith(_SYSTEM):
                continue
            step = whole_step(value.step or "")
            if step is None:
                foreign.problems.add("record_without_step", None, f"{value.path[:64]}: step {value.step}")
            else:
                points.append((step, value))
        elif value.step is None:
            settings[value.path] = value
    for step, value in sorted(points, key=lambda point: point[0]):
        clock = math.nan if value.at_ms is None else value.at_ms / 1000
        curves.add(step, value.path, math.nan if value.number is None else value.number, clock=clock)
    curves.finish()
    _add_run(foreign, settings, run)
    return foreign


def _values(paths: Sequence[Path]) -> list[_Attribute]:
    database = Database()
    found: list[_Attribute] = []
    for path in paths:
        try:
            rows = database.read_parquet(_QUERY, path)
        except Damaged as error:
            raise InputError("cannot be read as a part of neptune-exporter", where=str(path), why=str(error)[:200]) from error
        found += [
            _Attribute(str(run or ""), str(attribute or ""), str(kind or ""), *rest) for run, attribute, kind, *rest in rows
        ]
    if len(runs := sorted({value.run for value in found})) > 1:
        raise InputError("has several runs", where=str(paths[0]), why=f"its runs: {', '.join(runs)}"[:300])
    return found


def _add_run(foreign: ForeignRun, settings: Mapping[str, _Attribute], run: str) -> None:
    """Add name, start, failure and settings of the run."""

    def told(path: str) -> str | None:
        value = settings.get(path)
        return value.text if value is not None else None

    foreign.run["name"] = told("sys/name") or run or None
    began = settings.get("sys/creation_time")
    foreign.run["started_at"] = None if began is None else rfc3339(began.moment)
    if told("sys/failed") == "true":
        foreign.failure = DeclaredFailure("Neptune's sys/failed is true")
    own = {path: {"value": _plain(value)} for path, value in settings.items() if not path.startswith(_SYSTEM)}
    read_config(foreign, own, "import:")


def _plain(value: _Attribute) -> Any:
    """Return the Python value of a setting."""
    if value.kind == "float":
        return value.number
    if value.kind == "bool":
        return value.text == "true"
    return int(value.text) if value.kind == "int" and value.text is not None else value.text
