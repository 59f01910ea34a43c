"""``receipt compare``: are these runs comparable, and what differs?"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from receipt_cli.cli.output import ColorChoice, note, progress, read_policy, style, write_json, write_stdout
from receipt_cli.cli.parameters import Argument, Color, Json, Option, Policy
from receipt_cli.cli.runs import InStore, receipt_file
from receipt_cli.errors import ExitCode, UsageError


def compare(
    runs: Annotated[
        list[str], Argument("RUN...", "Receipts or logs, or runs of the store; the first is the baseline.", completes="run")
    ],
    policy: Policy = None,
    align: Annotated[Literal["step", "tokens", "samples", "time"], Option(help="Quantity by which curves are aligned.")] = "step",
    target: Annotated[
        list[str] | None, Option(metavar="METRIC=VALUE", help="Show step, tokens and time at which each run reached it.")
    ] = None,
    resume: Annotated[bool, Option(help="Test whether the second run continues the first: exit 0, else 1.")] = False,
    exit_code: Annotated[bool, Option(help="Exit 1 where a run is worse or not comparable.")] = False,
    markdown: Annotated[bool, Option(help="Print Markdown, for a pull request.")] = False,
    reproducibility: Annotated[
        bool, Option(help="Test whether the second run is a rerun of the first: exit 0 where that is shown, else 1.")
    ] = False,
    steps: Annotated[
        int | None, Option(least=1, help="With --reproducibility: number of records to compare (100 by default).")
    ] = None,
    tolerance: Annotated[
        float | None, Option(least=0, metavar="RATIO", help="With --reproducibility: relative difference allowed.")
    ] = None,
    series: Annotated[
        Path | None, Option(metavar="FOLDER", help="With --reproducibility: Parquet files of the receipts' logs.")
    ] = None,
    store: InStore = None,
    json_output: Json = False,
    color: Color = "auto",
) -> None:
    """Compare runs with a baseline: first whether they can be compared, then their figures and loss curves.

    Logs show more than receipts: the steps give intervals and curves. Repeats of one lane and preset are pooled.

    Example: receipt compare before.log after.log
    """
    runs = [receipt_file(run, store) for run in runs]
    if reproducibility:
        if markdown:
            raise UsageError("--markdown does not go with --reproducibility")
        return _reproduce(runs, policy, steps, tolerance, series, json_output=json_output, color=color)
    if steps is not None or tolerance is not None or series is not None:
        raise UsageError("--steps, --tolerance and --series go with --reproducibility")
    if resume:
        if markdown or target:
            raise UsageError("--markdown and --target do not go with --resume")
        return _resume(runs, policy, json_output=json_output, color=color)
    from receipt_cli.api.commands import compare as compare_runs
    from receipt_cli.render.comparison.markdown import render_markdown
    from receipt_cli.render.comparison.terminal import render_comparison

    found = compare_runs(*runs, policy=policy, align=align, targets=target or (), workers=None, progress=progress)
    note(found.notes)
    document = found.to_dict()
    if json_output:
        write_json(document)
    else:
        write_stdout(render_markdown(document) if markdown else render_comparison(document, style(color)))
    if exit_code and found.worse:
        sys.exit(ExitCode.NO)


def _resume(runs: Sequence[str], policy: Path | None, *, json_output: bool, color: ColorChoice) -> None:
    """Print whether the second of two logs continues the first; exit 1 unless that is shown. Raises ``ReceiptError``."""
    import os

    from receipt_cli.comparison.load import short_names
    from receipt_cli.comparison.resumption import judge_resumption
    from receipt_cli.receipts.open import read_given
    from receipt_cli.render.comparison.joints import render_resumption

    if len(runs) != 2:
        raise UsageError("--resume needs two runs", try_="receipt compare --resume first.log second.log")
    sides = []
    for run, name in zip(runs, short_names(runs), strict=True):
        _, product = read_given(run, environ=dict(os.environ), progress=progress)
        if product is None:
            raise UsageError(f"{name} is a receipt, which contains no steps", why="--resume needs the two logs")
        note([f"{name}: {text}" for text in product.notes])
        sides.append((name, product))
    document = judge_resumption(sides[0], sides[1], read_policy(policy))
    if json_output:
        write_json(document)
    else:
        write_stdout(render_resumption(document, style(color)))
    if document["continues"] != "yes":
        sys.exit(ExitCode.NO)


def _reproduce(
    runs: Sequence[str],
    policy: Path | None,
    steps: int | None,
    tolerance: float | None,
    series: Path | None,
    *,
    json_output: bool,
    color: ColorChoice,
) -> None:
    """Print whether the second of two runs reproduces the first; exit 1 unless that is shown. Raises ``ReceiptError``."""
    from receipt_cli.comparison.load import load_side
    from receipt_cli.comparison.rerun import STEPS, reproducibility
    from receipt_cli.render.comparison.terminal import render_reproducibility
    from receipt_cli.store.series_files import SeriesFiles

    if len(runs) != 2:
        raise UsageError("--reproducibility needs two runs", try_="receipt compare --reproducibility a.log b.log")
    if tolerance is not None and not math.isfinite(tolerance):
        raise UsageError("--tolerance must be a ratio such as 0.004")
    count = steps or STEPS
    stored = SeriesFiles(series, lambda text: note([text])) if series is not None else None
    (a, first), (b, second) = (load_side(run, count, progress, stored) for run in runs)
    note([*first, *second])
    document = reproducibility(a, b, read_policy(policy), steps=count, tolerance=tolerance)
    if json_output:
        write_json(document)
    else:
        write_stdout(render_reproducibility(document, style(color)))
    if document["reproduced"] != "yes":
        sys.exit(ExitCode.NO)
