"""Export a run to a local MLflow tracking store: a SQLite database, with the receipt as an artifact beside it.

MLflow's folders of files are in maintenance mode and cannot be opened any more. Only this module imports MLflow, which is an
extra and slow to load.
"""

from __future__ import annotations

import json
import logging
import os
import posixpath
import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from receipt_cli.errors import OutputError, UsageError
from receipt_cli.export.run import ExportedRun, instant
from receipt_cli.io.atomic import make_folder

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Metric

_BATCH, _TAGS = 1000, 100
"""Most metrics, and most parameters or tags, per request to MLflow."""
_LONGEST = 250
_STRANGE = re.compile(r"[^\w./ :-]", re.ASCII)
_RUN_TAG = "receipt.run"
_METRIC_TAG = "receipt.metric."
"""Prefix of a tag for a metric whose key MLflow does not allow: ``receipt.metric.Acc_1`` is ``Acc@1``."""
"""Tag with the identity of the exported run."""


def export_to_mlflow(run: ExportedRun, path: Path) -> str:
    """Add ``run`` to the tracking database ``path``, created if missing; return how to open it.

    The experiment is the lane. Raises ``UsageError`` if MLflow is missing, ``OutputError`` if writing fails or the database
    already contains the run.
    """
    client_type, failure = _loaded()
    if "?" in str(path):
        raise UsageError("MLflow does not accept ? in the name of a database", where=str(path))
    if path.is_dir():
        raise OutputError("is a directory, not a file", where=str(path))
    make_folder(path.parent)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # SQLAlchemy's about MLflow, which no user can mend
            _add(client_type(tracking_uri=f"sqlite:///{path.resolve()}"), run, path)
    except (failure, OSError) as error:
        why = str(error).strip().split("\n")[0]
        raise OutputError("MLflow cannot write", where=str(path), why=why) from error
    return f"open it: mlflow ui --backend-store-uri {quote(f'sqlite:///{path.resolve()}')}"


def _add(client: MlflowClient, run: ExportedRun, path: Path) -> None:
    experiment = _experiment(client, run, path)
    known = client.search_runs([experiment], f"tags.`{_RUN_TAG}` = '{run.identity}'")
    for earlier in known:
        if earlier.info.status != "RUNNING":
            why = f"as {earlier.info.run_id}"
            raise OutputError("this run is already in the database", where=str(path), why=why, try_="name another file")
        client.delete_run(earlier.info.run_id)  # left by an interrupted export
    _write(client, experiment, run)


def _loaded() -> tuple[type[MlflowClient], type[Exception]]:
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # otherwise MLflow reports every run
    try:
        import sqlalchemy  # noqa: F401
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException
    except ImportError as error:
        why, help_text = str(error), "pip install 'receipt-cli[mlflow]'"
        raise UsageError("an export to MLflow needs MLflow", why=why, try_=help_text) from error
    for name in ("mlflow", "alembic"):  # both log during import
        logging.getLogger(name).setLevel(logging.WARNING)
    return MlflowClient, MlflowException


def _experiment(client: MlflowClient, run: ExportedRun, path: Path) -> str:
    name = run.lane[:_LONGEST]
    known = client.get_experiment_by_name(name)
    if known is not None:
        return str(known.experiment_id)
    artifacts = path.resolve().with_name(f"{path.stem}-artifacts")
    return str(client.create_experiment(name, artifact_location=artifacts.as_uri()))


def _write(client: MlflowClient, experiment: str, run: ExportedRun) -> None:
    from mlflow.entities import Param, RunTag

    declared, at = run.document["run"], run.dated_ns // 10**6
    started, finished = (instant(declared[key]) for key in ("started_at", "finished_at"))
    begin = at if started is None else started // 10**6
    created = client.create_run(experiment, start_time=begin, run_name=run.title, tags={_RUN_TAG: run.identity})
    key: str = created.info.run_id
    for batch in _batches([RunTag(name, value) for name, value in _tags(run).items()], _TAGS):
        client.log_batch(key, tags=batch)
    facts = {_name(name): str(value) for name, value in run.facts().items()}
    for batch in _batches([Param(name, value) for name, value in facts.items()], _TAGS):
        client.log_batch(key, params=batch)
    for batch in _batches(list(_metrics(run, at)), _BATCH):
        client.log_batch(key, metrics=batch)
    client.log_text(key, json.dumps(run.document, ensure_ascii=False, allow_nan=False, indent=2) + "\n", "receipt.json")
    status = "FAILED" if run.exit_code else "FINISHED"
    client.set_terminated(key, status, end_time=at if finished is None else finished // 10**6)


def _tags(run: ExportedRun) -> dict[str, str]:
    git, failure = run.document["header"]["git"], run.document["failure"]
    keys = [curve.key for curve in run.curves] + [figure.key for figure in run.figures]
    known = {
        "mlflow.source.git.commit": git["commit"],
        "mlflow.source.git.branch": git["branch"],
        "mlflow.source.type": "JOB",
        "receipt.log_sha256": run.digest,
        "receipt.preset": run.document["run"]["preset"],
        "receipt.failure": failure["reason"] if failure else None,
        **{f"{_METRIC_TAG}{_name(key)}"[:_LONGEST]: key for key in keys if _name(key) != key},
        **{f"receipt.check.{name}": str(v).lower() for name, v in run.document["checks"].items() if v is not None},
    }
    return {name: value for name, value in known.items() if value}


def _metrics(run: ExportedRun, at: int) -> Iterator[Metric]:
    """Yield the values of the curves, then every figure at the last step of its phase."""
    from mlflow.entities import Metric

    for curve in run.curves:
        name = _name(curve.key)
        for step, value in zip(curve.steps, curve.values, strict=True):
            yield Metric(name, value, at, step)
    for figure in run.figures:
        step = run.last_step(figure.phase)
        for statistic, value in figure.known.items():
            yield Metric(_name(f"summary/{figure.key}/{statistic}"), value, at, step)


def _name(key: str) -> str:
    """Return a key as MLflow allows it: without special characters, and without ``..`` in its path."""
    return posixpath.normpath(_STRANGE.sub("_", key).replace("..", "__").lstrip("/"))[:_LONGEST].rstrip("/")


def _batches(values: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (values[start : start + size] for start in range(0, len(values), size))
