"""Export a run as a table: CSV of its curves or figures, Parquet of its figures."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from receipt_cli import __version__
from receipt_cli.export.run import STATISTICS, ExportedRun, Phase
from receipt_cli.io.csv import safe_cell
from receipt_cli.io.duckdb import Database
from receipt_cli.receipts.series_file import write_series

Cell = str | int | float | None
_TEXTS, _WHOLE = ("phase", "metric", "source", "unit", "window", "scope", "definition"), ("record_count", "nonfinite_count")


def csv_table(run: ExportedRun) -> bytes:
    """Return the curves (a row per step of a phase, a column per metric) or, without curves, the figures (a row per metric).

    A cell is empty if nothing was printed; numbers are in base units, with enough digits to restore the float64.
    """
    rows = _steps(run) if run.curves else _figures(run)
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([safe_cell(cell) for cell in row] for row in rows)
    return out.getvalue().encode("utf-8")


def write_parquet(run: ExportedRun, path: Path) -> str:
    """Write the records of the run's log as Parquet, or without a log its figures, a row per metric; return what was written.

    Raises ``OutputError`` and ``UsageError``.
    """
    if run.product is not None:
        return f"{write_series(run.product.derivation, path)} rows, a row a record"
    header, *rows = _figures(run)
    kinds = {**dict.fromkeys(("phase_index", *_WHOLE), "BIGINT"), **dict.fromkeys(_TEXTS, "VARCHAR")}
    structure = {str(name): kinds.get(str(name), "DOUBLE") for name in header}
    database = Database()
    columns = ", ".join(f'"{name}" {kind}' for name, kind in structure.items())
    database.run(f"CREATE TABLE figures ({columns})")
    lines = [json.dumps(dict(zip(structure, row, strict=True)), ensure_ascii=False) for row in rows]
    if lines:
        database.fill("figures", structure, lines)
    footer = {"receipt_figures": json.dumps({"log_sha256": run.digest}), "receipt_version": __version__}
    database.write_parquet("SELECT * FROM figures", path, footer)
    return f"{len(rows)} rows, a row a metric"


def _figures(run: ExportedRun) -> Iterator[Sequence[Cell]]:
    columns = ("window", "scope", "definition", *_WHOLE, *STATISTICS)
    yield ("phase_index", "phase", "metric", "source", "unit", *columns)
    for figure in sorted(run.figures, key=lambda figure: figure.phase.prefix != ""):  # the primary phase (no prefix) first
        unit = figure.metric.unit if figure.metric else None
        known = [figure.statistic.get(name) for name in columns]
        yield (figure.phase.number, figure.phase.name, figure.name, figure.source, unit, *known)


def _steps(run: ExportedRun) -> Iterator[Sequence[Cell]]:
    names = list(dict.fromkeys(curve.key.removeprefix(curve.phase.prefix) for curve in run.curves))
    phases: dict[Phase, dict[int, dict[str, float]]] = {}
    for curve in run.curves:
        rows = phases.setdefault(curve.phase, {})
        for step, value in zip(curve.steps, curve.values, strict=True):
            rows.setdefault(step, {})[curve.key.removeprefix(curve.phase.prefix)] = value
    yield ("phase_index", "phase", "step", *names)
    for phase, rows in phases.items():
        for step, row in sorted(rows.items()):
            yield (phase.number, phase.name, step, *map(row.get, names))
