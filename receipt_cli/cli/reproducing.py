"""What ``receipt compare --reproducibility`` does: loads no typer."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from pathlib import Path

from receipt_cli.cli.output import ColorChoice, note, progress, read_bytes, style, write_json, write_stdout
from receipt_cli.errors import ExitCode, UsageError


def reproduce(
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
    from receipt_cli.comparison.policy import DEFAULT, read_policy
    from receipt_cli.comparison.rerun import STEPS, reproducibility
    from receipt_cli.render.comparison.terminal import render_reproducibility
    from receipt_cli.store.series_files import SeriesFiles

    if len(runs) != 2:
        raise UsageError("--reproducibility wants two runs", try_="receipt compare --reproducibility a.log b.log")
    if tolerance is not None and not math.isfinite(tolerance):
        raise UsageError("--tolerance is a ratio such as 0.004")
    chosen = DEFAULT if policy is None else read_policy(read_bytes(policy), str(policy))
    count = steps or STEPS
    stored = SeriesFiles(series, lambda text: note([text])) if series is not None else None
    (a, first), (b, second) = (load_side(run, count, progress, stored) for run in runs)
    note([*first, *second])
    document = reproducibility(a, b, chosen, steps=count, tolerance=tolerance)
    if json_output:
        write_json(document)
    else:
        write_stdout(render_reproducibility(document, style(color)))
    if document["reproduced"] != "yes":
        sys.exit(ExitCode.NO)
