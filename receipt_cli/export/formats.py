"""Which formats there are, and how a run becomes one: the bytes of a document, or something at a path."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

from receipt_cli.errors import UsageError
from receipt_cli.export.names import Name
from receipt_cli.export.run import Run
from receipt_cli.io.atomic import make_folder, write_atomically
from receipt_cli.receipts.production import Product


@dataclass(frozen=True, slots=True)
class Format:
    """One format. ``most`` is how many steps of a curve it takes by default; 0: it has no curves.

    ``document`` gives the bytes of one, or ``place`` writes to a path and says how to open what is there.
    """

    most: int
    document: Callable[[Run], bytes] | None = None
    place: Callable[[Run, Product | None, Path], str] | None = None


def export(run: Run, product: Product | None, name: Name, output: Path | None) -> tuple[bytes | None, str | None]:
    """Write ``run`` to ``output``; return the bytes for stdout where there is none, and how to open what was written.

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
        raise UsageError(f"--to {name} wants -o", why="it is no text")
    assert chosen.place is not None
    return None, chosen.place(run, product, output)


def _bmf(run: Run) -> bytes:
    from receipt_cli.export.bmf import bmf

    return bmf(run)


def _csv(run: Run) -> bytes:
    from receipt_cli.export.tables import csv_table

    return csv_table(run)


def _in_toto(run: Run) -> bytes:
    from receipt_cli.export.in_toto import in_toto

    return in_toto(run)


def _openmetrics(run: Run) -> bytes:
    from receipt_cli.export.openmetrics import openmetrics

    return openmetrics(run)


def _otlp(run: Run) -> bytes:
    from receipt_cli.export.otlp import otlp_json

    return otlp_json(run)


def _tensorboard(run: Run, product: Product | None, output: Path) -> str:
    from receipt_cli.export.tensorboard import event_file, file_name

    make_folder(output)
    write_atomically(output / file_name(run), event_file(run))
    return f"open it: tensorboard --logdir {quote(str(output))}"


def _wandb(run: Run, product: Product | None, output: Path) -> str:
    from receipt_cli.export.wandb_run import file_name, folder_name, transaction_log

    folder = output / "wandb" / folder_name(run)
    make_folder(folder / "files")
    write_atomically(folder / file_name(run), transaction_log(run))
    told = quote(str(folder))
    return f"read it: wandb leet {told}; upload it: wandb sync {told}"


def _mlflow(run: Run, product: Product | None, output: Path) -> str:
    from receipt_cli.export.mlflow_store import export_to_mlflow

    export_to_mlflow(run, output)
    return f"open it: mlflow ui --backend-store-uri {quote(f'sqlite:///{output.resolve()}')}"


def _parquet(run: Run, product: Product | None, output: Path) -> str:
    from receipt_cli.export.tables import write_figures
    from receipt_cli.receipts.series_file import write_series

    count = write_figures(run, output) if product is None else write_series(product.derivation, output)
    return f"{count} rows, a row a {'metric' if product is None else 'record'}"


FORMATS: dict[Name, Format] = {
    "mlflow": Format(2_000, place=_mlflow),
    "wandb": Format(10_000, place=_wandb),
    "tensorboard": Format(10_000, place=_tensorboard),
    "openmetrics": Format(0, _openmetrics),
    "otlp-json": Format(0, _otlp),
    "parquet": Format(0, place=_parquet),
    "csv": Format(100_000, _csv),
    "in-toto": Format(0, _in_toto),
    "bmf": Format(0, _bmf),
}
