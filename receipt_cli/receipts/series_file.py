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
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from receipt_cli import __version__
from receipt_cli.derive import Derivation
from receipt_cli.events.model import Event, numbers_of
from receipt_cli.events.rows import RowRun
from receipt_cli.io.duckdb import Database, quoted
from receipt_cli.numeric.array_types import Array, Floats, Mask
from receipt_cli.numeric.lazy_numpy import np
from receipt_cli.records.envelope import NO_RANK
from receipt_cli.redaction.text import safe_names, safe_text

FORMAT = "series/1"
"""Version of the columns, written to the footer."""
_LARGEST = 1 << 63
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

    def put(self, row: int, value: float) -> None:
        """Set the value of one row."""
        if math.isfinite(value):
            self.values[row] = value
        else:
            self.nonfinite[row] = True

    def put_all(self, row: int, values: Floats, known: Mask | None) -> None:
        """Set the values from ``row`` on, only those in the mask ``known`` if given."""
        finite = np.isfinite(values)
        rows = slice(row, row + len(values))
        self.values[rows] = np.where(finite if known is None else finite & known, values, np.nan)
        self.nonfinite[rows] = ~finite if known is None else ~finite & known


class SeriesRows:
    """The records of a log as columns.

    ``metrics`` are registry names, ``others`` trainers' names of printed metrics; ``names`` are the columns of both.
    ``phases`` and ``kinds`` (of events) are the texts of the codes in the columns ``phase_index`` and ``event``.
    """

    def __init__(self, derivation: Derivation) -> None:
        self.phases = [safe_text(s.phase) or None if s.phase is not None else None for s in derivation.summaries]
        parts = [[e for e in s.series.events if _counts(e)] for s in derivation.summaries]
        named = {name for s in derivation.summaries for name in s.metrics}
        self.metrics = sorted(named, key=lambda name: derivation.registry.by_name[name].id)
        self.others = sorted({name for s in derivation.summaries for name in s.other_metrics})
        self.names = _distinct([*self.metrics, *(f"other.{name}" for name in safe_names(self.others))])
        self.count = sum(e.records for events in parts for e in events)
        self.kinds = sorted({e.rule.event for events in parts for e in events})
        self._whole = {name: np.zeros(self.count, np.int64) for name in ("phase_index", "event", "step", "line_number", "rank")}
        self._no_step = np.ones(self.count, np.bool_)
        self._values = {
            (of, name): _Values(np.full(self.count, np.nan), np.zeros(self.count, np.bool_))
            for of, names in (("metric", self.metrics), ("other", self.others))
            for name in names
        }
        row = 0
        for phase, events in enumerate(parts):
            first = row
            for event in events:
                self._put(row, phase, event)
                row += event.records
            if any(event.run is not None and event.run.passed for event in events):
                self._put_in_order(slice(first, row), events)

    def _put(self, row: int, phase: int, event: Event) -> None:
        """Set the rows of an event and of its row run, from ``row`` on."""
        rows = slice(row, row + event.records)
        self._whole["phase_index"][rows] = phase
        self._whole["event"][rows] = self.kinds.index(event.rule.event)
        self._whole["rank"][rows] = event.rank
        self._whole["line_number"][row] = event.line
        if event.step is not None and abs(event.step) < _LARGEST:
            self._whole["step"][row] = event.step
            self._no_step[row] = False
        for of, printed in (("metric", event.metrics), ("other", event.unregistered)):
            for name, value in printed.items():
                if (of, name) in self._values:
                    self._values[of, name].put(row, value)
        if event.run is not None:
            self._put_run(row + 1, event, event.run)

    def _put_run(self, row: int, event: Event, run: RowRun) -> None:
        rows, steps = slice(row, row + len(run)), run.steps
        self._whole["line_number"][rows] = run.line
        if len(steps):
            self._whole["step"][rows] = steps
            self._no_step[rows] = False
        kinds = (("metric", event.metric_names, run.metric), ("other", event.unregistered_names, run.unregistered_metric))
        for of, names, read in kinds:
            for name in names:
                values = read(name) if (of, name) in self._values else None
                if values is not None:
                    self._values[of, name].put_all(row, *values)

    def _put_in_order(self, rows: slice, events: Sequence[Event]) -> None:
        """Sort ``rows``, which hold ``events``, in log order: other records may lie between those of a row run."""
        places = numbers_of(events, lambda event: event.at, lambda run: run.at)
        order = np.argsort(places, kind="stable")
        columns = (array for one in self._values.values() for array in (one.values, one.nonfinite))
        for column in (*self._whole.values(), self._no_step, *columns):
            column[rows] = column[rows][order]

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


def _counts(event: Event) -> bool:
    return event.is_step or bool(event.metrics) or bool(event.unregistered)


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
