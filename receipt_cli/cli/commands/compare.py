"""``receipt compare``: are these runs comparable, and what differs? ``receipt history``: what changed in a lane, and when?"""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from receipt_cli.api.commands import compare as compare_runs
from receipt_cli.cli.output import note, note_some, progress, read_policy, style, write_answer
from receipt_cli.cli.parameters import Argument, Json, Markdown, Option, Policy, StoreFolder, Was
from receipt_cli.cli.runs import InStore, receipt_file
from receipt_cli.comparison.kinds.compare import RECEIPT, check_alike, compare_documents, is_worse, kinds_of
from receipt_cli.comparison.load import load_runs, load_side
from receipt_cli.comparison.rerun import SAME, Question, reproducibility
from receipt_cli.comparison.scaling import scaling as find_scaling
from receipt_cli.definitions.metrics import load_registry
from receipt_cli.errors import ExitCode, InputError, UsageError
from receipt_cli.history.document_history import document_history, documents_worsened
from receipt_cli.history.lane_history import history as find_history
from receipt_cli.history.lane_history import worsened
from receipt_cli.render.comparison.documents import documents_markdown, render_documents_compared
from receipt_cli.render.comparison.markdown import render_markdown
from receipt_cli.render.comparison.terminal import render_comparison, render_reproducibility, render_scaling
from receipt_cli.render.history import render_history
from receipt_cli.store.documents import read_receipts
from receipt_cli.store.files import Store
from receipt_cli.store.listing import list_documents
from receipt_cli.store.series_files import SeriesFiles


def compare(
    runs: Annotated[
        list[str],
        Argument(
            "RUN...", "Receipts, logs or other documents, or those of the store; the first is the baseline.", completes="run"
        ),
    ],
    policy: Policy = None,
    align: Annotated[Literal["step", "tokens", "samples", "time"], Option(help="Quantity by which curves are aligned.")] = "step",
    target: Annotated[
        list[str] | None, Option(metavar="METRIC=VALUE", help="Show step, tokens and time at which each run reached it.")
    ] = None,
    fail: Annotated[bool, Option("--fail", help="Exit 1 if a run is worse or not comparable."), Was("exit-code")] = False,
    markdown: Markdown = None,
    reproducibility: Annotated[
        bool,
        Option("--reproducibility", help="Is the second run the first again? 0 same, 1 other numbers or data, 2 not comparable."),
    ] = False,
    resume: Annotated[
        bool, Option("--resume", help="Does the second run go on where the first was? Exit codes as of --reproducibility.")
    ] = False,
    scaling: Annotated[
        bool,
        Option("--scaling", help="Throughput per device, and efficiency, of runs that differ in devices only; else exit 2."),
    ] = False,
    steps: Annotated[int | None, Option(least=1, help="With these two: number of records to compare (all by default).")] = None,
    tolerance: Annotated[
        float | None, Option(least=0, metavar="RATIO", help="With these two: relative difference allowed.")
    ] = None,
    series: Annotated[
        Path | None,
        Option("--series-from", metavar="FOLDER", help="With these two: Parquet files of the receipts' logs."),
        Was("series"),
    ] = None,
    store: InStore = None,
    full: Annotated[bool, Option("--full", help="Print every metric, curve, check and field that was compared.")] = False,
    json_output: Json = False,
) -> None:
    """Compare runs with a baseline: whether they can be compared, which fields differ, and what changed.

    Logs show more than receipts: the steps give intervals and curves. Repeats of one lane and preset are pooled. Documents of
    another kind (evaluations, ablations, GPU profiles, golden curves) are compared with their like.

    Example: receipt compare before.log after.log
    """
    runs = [receipt_file(run, store) for run in runs]
    kinds = kinds_of(runs)
    if set(kinds) != {RECEIPT}:
        if reproducibility or resume or scaling or target or align != "step" or steps is not None or tolerance is not None:
            raise UsageError("these options go with runs", why=f"{runs[0]} is not one", try_=f"receipt compare {' '.join(runs)}")
        return _compare_documents(runs, check_alike(runs, kinds), fail, markdown, full=full, json_output=json_output)
    if reproducibility + resume + scaling > 1:
        raise UsageError("--reproducibility, --resume and --scaling exclude each other")
    if reproducibility or resume:
        if markdown or target:
            raise UsageError(f"{'--markdown' if markdown else '--target'} does not go with {_option(resume)}")
        return _reproduce(runs, policy, steps, tolerance, series, resume=resume, json_output=json_output)
    if scaling and (markdown or target):
        raise UsageError(f"{'--markdown' if markdown else '--target'} does not go with --scaling")
    if steps is not None or tolerance is not None or series is not None:
        raise UsageError("--steps, --tolerance and --series-from go with --reproducibility or --resume")

    if scaling:
        return _scale(runs, policy, json_output=json_output)
    found = compare_runs(*runs, policy=policy, align=align, targets=target or (), workers=None, progress=progress)
    note(found.notes)
    document = found.to_dict()
    more = [*([] if full else ["--full"]), f"receipt plot {' '.join(map(shlex.quote, runs))}", "--fail exits 1"]
    write_answer(
        document, json_output, lambda: render_comparison(document, style(), full=full, more=more),
        markdown, lambda: render_markdown(document),
    )  # fmt: skip
    if fail and found.worse:
        sys.exit(ExitCode.NO)


def _compare_documents(
    files: Sequence[str], kind: str, fail: bool, markdown: Path | None, *, full: bool, json_output: bool
) -> None:
    """Print how documents of one kind differ from the first; exit 1 if ``fail`` and one is worse. Raises ``ReceiptError``."""
    document = compare_documents(files, kind)
    write_answer(
        document, json_output, lambda: render_documents_compared(document, style(), full=full),
        markdown, lambda: documents_markdown(document),
    )  # fmt: skip
    if fail and is_worse(document):
        sys.exit(ExitCode.NO)


def _option(resume: bool) -> str:
    return "--resume" if resume else "--reproducibility"


def _reproduce(
    runs: Sequence[str],
    policy: Path | None,
    steps: int | None,
    tolerance: float | None,
    series: Path | None,
    *,
    resume: bool,
    json_output: bool,
) -> None:
    """Print whether the second of two runs is the first again, or continues it; exit 1 if it is not, 2 if nothing can be said.

    Raises ``ReceiptError``.
    """
    if len(runs) != 2:
        raise UsageError(f"{_option(resume)} needs two runs", try_=f"receipt compare {_option(resume)} a.log b.log")
    if tolerance is not None and not math.isfinite(tolerance):
        raise UsageError("--tolerance must be a ratio such as 0.004")
    stored = SeriesFiles(series, lambda text: note([text])) if series is not None else None
    (a, first), (b, second) = (load_side(run, progress, stored) for run in runs)
    note([*first, *second])
    question: Question = "resume" if resume else "rerun"
    document = reproducibility(a, b, read_policy(policy), steps=steps, tolerance=tolerance, question=question)
    write_answer(document, json_output, lambda: render_reproducibility(document, style()))
    if document["verdict"] not in SAME:
        sys.exit(ExitCode.USAGE if document["verdict"] == "not_comparable" else ExitCode.NO)


def _scale(runs: Sequence[str], policy: Path | None, *, json_output: bool) -> None:
    """Print how throughput grows with the devices of the runs; exit 2 if anything else differs. Raises ``ReceiptError``."""
    if len(runs) < 2:
        raise UsageError("--scaling needs two runs or more", try_="receipt compare --scaling 8.log 16.log 32.log")
    found, notes = load_runs(runs, "step", progress)
    note(notes)
    document = find_scaling([(run.name, run.document) for run in found], read_policy(policy))
    write_answer(document, json_output, lambda: render_scaling(document, style()))
    if document["verdict"] == "not_comparable":
        sys.exit(ExitCode.USAGE)


def history(
    store: StoreFolder,
    lane: Annotated[str | None, Argument("LANE", "One lane; all by default.", completes="lane")] = None,
    policy: Policy = None,
    changed: Annotated[bool, Option("--changed", help="Only lanes in which something changed.")] = False,
    full: Annotated[bool, Option("--full", help="List every group, and the runs that are in none.")] = False,
    fail: Annotated[
        bool, Option("--fail", help="Exit 1 if the last change of a figure was for the worse."), Was("exit-code")
    ] = False,
    json_output: Json = False,
) -> None:
    """Find where throughput, memory, time in steps and failures of a lane changed, and which header fields changed there.

    Runs without a lane form groups of equal trainer, model, hardware and ranks; changes are sought in groups of at least
    eight finished runs. A single outlier is reported as a jump, not a change. Scores of evaluations, and figures of GPU
    profiles and ablations, follow by lane.

    Example: receipt history runs/
    """
    notes: list[str] = []
    found = find_history(read_receipts(Store(store), notes.append, excluded=False), read_policy(policy), load_registry(), lane)
    rows = list_documents(store)
    found["documents"] = document_history(rows, lane)
    note_some([*notes, *(f"{row['path']} is skipped: {row['refusal']}" for row in rows if row["refusal"] is not None)])
    if lane is not None and not found["lanes"] and not found["documents"]["groups"]:
        raise InputError(f"no run of the lane {lane!r}", where=str(store), try_=f"receipt history {store}")
    told = partial(render_history, found, quiet=changed, full=full, store=str(store))
    write_answer(found, json_output, lambda: told(style=style()) or "no change in any lane\n")
    if fail and (worsened(found) or documents_worsened(found["documents"])):
        sys.exit(ExitCode.NO)
