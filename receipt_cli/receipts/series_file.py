"""Write the records that a receipt's statistics are computed from to a Parquet file.

A row is a retained record (see ``phases``): a step record, or another line with metrics. The columns:

- ``phase_index`` (in ``/phases`` of the receipt), ``phase``, ``event`` (``step``, ``eval``, ``end``, …)
- ``step``, ``line_number`` and ``rank``, each NULL if the log does not contain it
- one DOUBLE for every metric, under its registry name and in its base unit; NULL if the record does not print it, or prints
  NaN or an infinity; then ``nonfinite`` contains its name
- one such DOUBLE for every metric outside the registry, named ``other.`` and the printed name
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from receipt_cli import __version__
from receipt_cli.derive import Derivation
from receipt_cli.events.table import NO_STEP, EventTable, numbers_in
from receipt_cli.io.duckdb import Database, quoted
from receipt_cli.numeric.array_types import Array, Floats, Mask
from receipt_cli.records.envelope import NO_RANK
from receipt_cli.redaction.text import safe_names, safe_text

FORMAT = "series/1"
"""Version of the columns, written to the footer."""
_TABLE = "records"


def write_series(derivation: Derivation, path: Path) -> int:
    """Write the records of all phases to ``path``, atomically; return their number. Raises ``OutputError`` and ``UsageError``."""
    database = Database()
    rows = SeriesRows(derivation)
    registry = derivation.registry
    about = {
        "format": FORMAT,
        "log_sha256": derivation.log.sha256,
        "registry": {"version": registry.version, "sha256": registry.sha256},
        "metrics": {n: {"id": registry.by_name[n].id, "unit": registry.by_name[n].unit} for n in rows.metrics},
        "others": dict(zip(rows.names[len(rows.metrics) :], safe_names(rows.others), strict=True)),
    }
    footer = {"receipt_series": json.dumps(about, ensure_ascii=False), "receipt_version": __version__}
    with database.columns(_TABLE, rows.arrays()):
        database.write_parquet(f"SELECT {', '.join(rows.expressions())} FROM {_TABLE}", path, footer)
    return rows.count


@dataclass(slots=True)
class _Values:
    """One metric: float64 [rows], NaN if missing or non-finite, and a mask of the rows with a non-finite value."""

    values: Floats
    nonfinite: Mask

    def put(self, rows: Array, values: Floats) -> None:
        """Set the values of some rows."""
        finite = np.isfinite(values)
        self.values[rows[finite]] = values[finite]
        self.nonfinite[rows[~finite]] = True


class SeriesRows:
    """The records of a log as columns.

    ``metrics`` are registry names, ``others`` trainers' names of printed metrics; ``names`` are the columns of both.
    ``phases`` and ``kinds`` (of events) are the texts of the codes in the columns ``phase_index`` and ``event``.
    """

    def __init__(self, derivation: Derivation) -> None:
        self.phases = [safe_text(s.phase) or None if s.phase is not None else None for s in derivation.summaries]
        parts = [_counted(summary.series.table) for summary in derivation.summaries]
        named = {name for s in derivation.summaries for name in s.metrics}
        self.metrics = sorted(named, key=lambda name: derivation.registry.by_name[name].id)
        self.others = sorted({name for s in derivation.summaries for name in s.other_metrics})
        self.names = _distinct([*self.metrics, *(f"other.{name}" for name in safe_names(self.others))])
        self.count = sum(part.count for part in parts)
        self.kinds = sorted({source.rule.event for part in parts for source in part.sources})
        self._whole = {name: np.zeros(self.count, np.int64) for name in ("phase_index", "event", "step", "line_number", "rank")}
        self._no_step = np.ones(self.count, np.bool_)
        self._values = {
            (of, name): _Values(np.full(self.count, np.nan), np.zeros(self.count, np.bool_))
            for of, names in (("metric", self.metrics), ("other", self.others))
            for name in names
        }
        first = 0
        for phase, part in enumerate(parts):
            self._put(first, phase, part)
            first += part.count

    def _put(self, first: int, phase: int, table: EventTable) -> None:
        """Set the rows of a phase, from ``first`` on, in the order of the log."""
        rows = slice(first, first + table.count)
        kinds = {kind: number for number, kind in enumerate(self.kinds)}
        self._whole["phase_index"][rows] = phase
        self._whole["event"][rows] = table.by_source(lambda source: kinds.get(source.rule.event, -1))
        self._whole["rank"][rows] = table.rank
        self._whole["line_number"][rows] = table.line
        self._no_step[rows] = table.step == NO_STEP
        self._whole["step"][rows] = np.where(self._no_step[rows], 0, table.step)
        for (of, name), values in self._values.items():
            column = table.metric(name) if of == "metric" else table.other(name)
            values.put(first + numbers_in(column.rows), column.values)

    def arrays(self) -> dict[str, Array]:
        """Return the columns under short names, because a log's names may contain anything.

        ``v0``, ``v1``, … are the values of ``names`` (float64 [n], NaN if missing); ``n0``, ``n1``, … mark non-finite values,
        if there are any. An unknown rank is ``NO_RANK``; ``no_step`` marks unknown steps.
        """
        arrays: dict[str, Array] = {**self._whole, "no_step": self._no_step}
        for number, column in enumerate(self._values.values()):
            arrays[f"v{number}"] = column.values
            if column.nonfinite.any():
                arrays[f"n{number}"] = column.nonfinite
        return arrays

    def expressions(self) -> list[str]:
        """Return the SQL expressions of the file's columns over those of ``arrays``."""
        bad = [number for number, column in enumerate(self._values.values()) if column.nonfinite.any()]
        names = "".join(f" || CASE WHEN n{number} THEN [{quoted(self.names[number])}] ELSE [] END" for number in bad)
        return [
            "phase_index::INTEGER AS phase_index",
            f"({_texts(self.phases)})[phase_index + 1] AS phase",
            f"({_texts(self.kinds)})[event + 1] AS event",
            "CASE WHEN NOT no_step THEN step END AS step",
            "line_number",
            f"nullif(rank, {NO_RANK})::INTEGER AS rank",
            *(f"CASE WHEN NOT isnan(v{n}) THEN v{n} END AS {_identifier(name)}" for n, name in enumerate(self.names)),
            f"[]::VARCHAR[]{names} AS nonfinite",
        ]  # fmt: skip


def _counted(table: EventTable) -> EventTable:
    """Return the step records, and all others with a figure."""
    counts = np.array(table.by_source(lambda source: source.is_step))
    for name in table.metric_names():
        counts[table.metric(name).rows] = True
    for name in table.other_names():
        counts[table.other(name).rows] = True
    return table.where(counts)


def _distinct(names: Sequence[str]) -> list[str]:
    """Return ``names``, numbered if an earlier name differs only in case: DuckDB ignores case."""
    taken: dict[str, str] = {}
    for name in names:
        number, unique = 2, name
        while unique.casefold() in taken:
            number, unique = number + 1, f"{name}_{number}"
        taken[unique.casefold()] = unique
    return list(taken.values())


def _texts(values: Sequence[str | None]) -> str:
    return f"[{', '.join('NULL' if value is None else quoted(value) for value in values)}]::VARCHAR[]"


def _identifier(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
