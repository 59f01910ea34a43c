"""The export formats: each returns a document's bytes, or writes to a path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from receipt_cli.errors import UsageError
from receipt_cli.export.bmf import bmf
from receipt_cli.export.in_toto import in_toto
from receipt_cli.export.mlflow_store import export_to_mlflow
from receipt_cli.export.openmetrics import openmetrics
from receipt_cli.export.otlp import otlp_json
from receipt_cli.export.run import ExportedRun
from receipt_cli.export.tables import csv_table, write_parquet
from receipt_cli.export.tensorboard import write_event_file
from receipt_cli.export.wandb_run import write_run_folder
from receipt_cli.io.atomic import write_atomically

Name: TypeAlias = Literal["mlflow", "wandb", "tensorboard", "openmetrics", "otlp-json", "parquet", "csv", "in-toto", "bmf"]


@dataclass(frozen=True, slots=True)
class Format:
    """One format. ``most`` is its default number of steps per curve; 0: it has no curves.

    ``document`` returns the bytes of a document; or ``place`` writes to a path and returns a hint for opening it.
    """

    most: int
    document: Callable[[ExportedRun], bytes] | None = None
    place: Callable[[ExportedRun, Path], str] | None = None


def export(run: ExportedRun, name: Name, output: Path | None) -> tuple[bytes | None, str | None]:
    """Write ``run`` to ``output``; return the bytes for stdout if it is None, and a hint for opening the output.

    Raises ``UsageError``, ``OutputError``.
    """
    chosen = FORMATS[name]
    if chosen.document is not None:
        data = chosen.document(run)
        if output is None:
            return data, None
        write_atomically(output, data)
        return None, None
    if output is None:
        raise UsageError(f"--to {name} needs an output path", why="it is not a text format", try_=f"--to {name} -o PATH")
    assert chosen.place is not None
    return None, chosen.place(run, output)


FORMATS: dict[Name, Format] = {
    "mlflow": Format(2_000, place=export_to_mlflow),
    "wandb": Format(10_000, place=write_run_folder),
    "tensorboard": Format(10_000, place=write_event_file),
    "openmetrics": Format(0, openmetrics),
    "otlp-json": Format(0, otlp_json),
    "parquet": Format(0, place=write_parquet),
    "csv": Format(100_000, csv_table),
    "in-toto": Format(0, in_toto),
    "bmf": Format(0, bmf),
}
