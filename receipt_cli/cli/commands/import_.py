"""``receipt import``: turn another system's record of a run into a receipt, a GPU profile or an evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from receipt_cli.analysis.stated import StatedFact
from receipt_cli.cli.commands.store import add_each
from receipt_cli.cli.output import style, write_output, write_stdout
from receipt_cli.cli.parameters import Argument, Attach, Fact, Json, Lane, Option, Output, Preset, RunName
from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.errors import ReceiptError, UsageError
from receipt_cli.gpu_profile.format import GPUFL_FORMAT
from receipt_cli.gpu_profile.importing import import_report, import_session, is_recording, is_report
from receipt_cli.gpu_profile.nsys import NSYS_FORMAT
from receipt_cli.importers.importing import import_document
from receipt_cli.importers.trackers.recognise import format_of, runs_in
from receipt_cli.io.compression import SUFFIXES
from receipt_cli.receipts.production import Declared, declare
from receipt_cli.receipts.stated import read_facts
from receipt_cli.render.document import render_document

_NAME = 200
"""Most characters of a path that names a run."""


def import_(
    files: Annotated[
        list[str],
        Argument("FILE...", f"The document (also {' '.join(SUFFIXES)}), or - for stdin; a session's folder or its files."),
    ],
    format_name: Annotated[str | None, Option("--format", metavar="NAME", help="Format of the document; else detected.")] = None,
    session: Annotated[
        str | None, Option(metavar="ID", help="Which session of a recording, or which run of a database or table (id or name).")
    ] = None,
    fact: Fact = None,
    store: Annotated[
        Path | None, Option(metavar="FOLDER", help="Add the receipt of every run in the files and folders to this store.")
    ] = None,
    json_output: Json = False,
    output: Annotated[Path | None, Output("Write the document to this file.", dash="kept")] = None,
    name: RunName = None,
    lane: Lane = None,
    preset: Preset = None,
    attach: Attach = None,
) -> None:
    """Turn another system's record of a run into a receipt that names its origin.

    Reads event files of TensorBoard, run files of W&B (and wandb-summary.json), MLflow's database or folder, Trackio's
    database, Parquet files of neptune-exporter, tables of metrics (metrics.csv of Lightning, Keras's CSVLogger, TensorBoard's
    CSV, JSON lines, our own exports), Keras's history, trainer_state.json of the Hugging Face Trainer, nanochat's report.md,
    Forgather's trainer_logs.json, and the training receipts of MegaCpp and cppmega. A session of GPU Flight (gpufl: a folder
    of device.log, scope.log and system.log) becomes a GPU profile, and so do the CSV tables of nsys stats. Results of
    lm-evaluation-harness, Every Eval Ever and MTEB become an evaluation, and so do the tables of scores in a log.
    --fact states what the document does not hold, such as devices and peak FLOP/s, so that figures can be recomputed.
    --store adds every run that is found, and names it by its path. Exits 3 for a document that cannot be read and 4 for
    one in no known format; with --store, the others are added all the same.

    Example: receipt import wandb-summary.json -o run.receipt.json
    """
    facts = read_facts(fact or ())
    declared = declare(name=name, lane=lane, preset=preset, attachments=attach or ())
    if store is not None:
        if output is not None:
            raise UsageError("--store and -o exclude each other")
        add_each(store, _documents(files, format_name, session, declared, facts), json_output)
        return
    document = _imported(files, format_name, session, declared, facts)
    data = canonical_bytes(document)
    if output is not None:
        write_output(output, data)
    if str(output) != "-":
        write_stdout(data if json_output else render_document(document, style=style()))


def _documents(
    files: Sequence[str], format_name: str | None, session: str | None, declared: Declared, facts: tuple[StatedFact, ...]
) -> Iterator[tuple[str, Callable[[], Mapping[str, Any]]]]:
    """Yield each run of the files with a function that makes its receipt, or raises the error of a file without any."""

    def make(path: str, key: str | None) -> Mapping[str, Any]:
        return import_document(path, declared, wanted=format_name, session=key, otherwise=path[-_NAME:], facts=facts)

    def refuse(error: ReceiptError) -> Mapping[str, Any]:
        raise error

    for file in files:
        try:
            runs = [(path, key) for path, key in runs_in(file) if session is None or key is None or key.startswith(session)]
        except ReceiptError as error:
            yield file, partial(refuse, error)
            continue
        yield from ((path if key is None else f"{path}#{key}", partial(make, path, key)) for path, key in runs)


def _imported(
    files: Sequence[str], format_name: str | None, session: str | None, declared: Declared, facts: tuple[StatedFact, ...]
) -> dict[str, Any]:
    """Return the receipt, GPU profile or evaluation of one run."""
    tracked = len(files) == 1 and format_of(files[0]) is not None
    recording = not tracked and (format_name == GPUFL_FORMAT or (format_name is None and is_recording(files)))
    report = not tracked and not recording and (format_name == NSYS_FORMAT or (format_name is None and is_report(files)))
    if facts and (recording or report):
        raise UsageError("--fact states facts of a run", why="this becomes a GPU profile")
    if recording:
        return import_session(files, declared, session=session)
    if report:
        return import_report(files, declared)
    if len(files) > 1:
        raise UsageError("import takes one document at a time", why="only a recorded session may be several files")
    return import_document(files[0], declared, wanted=format_name, session=session, facts=facts)
