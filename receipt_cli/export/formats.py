"""The export formats: each returns a document's bytes, or writes to a path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from receipt_cli.errors import UsageError
from receipt_cli.export.bmf import bmf
from receipt_cli.export.in_toto import in_toto
from receipt_cli.export.mlflow_store import export_to_mlflow
from receipt_cli.export.names import Name
from receipt_cli.export.openmetrics import openmetrics
from receipt_cli.export.otlp import otlp_json
from receipt_cli.export.run import ExportedRun
from receipt_cli.export.tables import csv_table, write_figures
from receipt_cli.export.tensorboard import event_file, event_file_name
from receipt_cli.export.wandb_run import folder_name, transaction_log, transaction_log_name
from receipt_cli.io.atomic import make_folder, write_atomically
from receipt_cli.receipts.production import Product
from receipt_cli.receipts.series_file import write_series


@dataclass(frozen=True, slots=True)
class Format:
    """One format. ``most`` is its default number of steps per curve; 0: it has no curves.

    ``document`` returns the bytes of a document; or ``place`` writes to a path and returns a hint for opening it.
    """

    most: int
    document: Callable[[ExportedRun], bytes] | None = None
    place: Callable[[ExportedRun, Product | None, Path], str] | None = None


def export(run: ExportedRun, product: Product | None, name: Name, output: Path | None) -> tuple[bytes | None, str | None]:
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
    return None, chosen.place(run, product, output)


def _tensorboard(run: ExportedRun, product: Product | None, output: Path) -> str:
    make_folder(output)
    write_atomically(output / event_file_name(run), event_file(run))
    return f"open it: tensorboard --logdir {quote(str(output))}"


def _wandb(run: ExportedRun, product: Product | None, output: Path) -> str:
    folder = output / "wandb" / folder_name(run)
    make_folder(folder / "files")
    write_atomically(folder / transaction_log_name(run), transaction_log(run))
    shown = quote(str(folder))
    return f"read it: wandb leet {shown}; upload it: wandb sync {shown}"


def _mlflow(run: ExportedRun, product: Product | None, output: Path) -> str:
    export_to_mlflow(run, output)
    return f"open it: mlflow ui --backend-store-uri {quote(f'sqlite:///{output.resolve()}')}"


def _parquet(run: ExportedRun, product: Product | None, output: Path) -> str:
    count = write_figures(run, output) if product is None else write_series(product.derivation, output)
    return f"{count} rows, a row a {'metric' if product is None else 'record'}"


FORMATS: dict[Name, Format] = {
    "mlflow": Format(2_000, place=_mlflow),
    "wandb": Format(10_000, place=_wandb),
    "tensorboard": Format(10_000, place=_tensorboard),
    "openmetrics": Format(0, openmetrics),
    "otlp-json": Format(0, otlp_json),
    "parquet": Format(0, place=_parquet),
    "csv": Format(100_000, csv_table),
    "in-toto": Format(0, in_toto),
    "bmf": Format(0, bmf),
}
