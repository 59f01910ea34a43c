"""``receipt golden make``: golden curves of good runs, which ``receipt check --golden`` holds others against."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

from receipt_cli.cli.output import note, progress, write_output
from receipt_cli.cli.parameters import Argument, Lane, Option, Output
from receipt_cli.comparison.golden import make_golden
from receipt_cli.comparison.load import load_side
from receipt_cli.documents.canonical import canonical_bytes
from receipt_cli.errors import UsageError


def make(
    runs: Annotated[list[str], Argument("RUN...", "Logs of good runs; those of one system are repeats of each other.")],
    output: Annotated[Path | None, Output("Write the golden curves to this file; else to stdout.", dash="stdout")] = None,
    steps: Annotated[int | None, Option(least=1, help="Number of records of each curve, from the first; all by default.")] = None,
    tolerance: Annotated[
        float | None, Option(least=0, metavar="RATIO", help="Relative difference allowed, in place of the spread of the runs.")
    ] = None,
    exact: Annotated[bool, Option("--exact", help="Refuse runs of one system that do not print the same.")] = False,
    lane: Lane = None,
) -> None:
    """Take what good runs print by step as golden curves: values as printed, and how far another run may be from them.

    One run, or several that print the same, are exact. If several differ, the tolerance of each step comes from their spread.
    Runs of different devices, numbers of ranks or lanes give several references in one file.

    Example: receipt golden make a.log b.log c.log -o golden.json
    """
    if tolerance is not None and (exact or not math.isfinite(tolerance)):
        raise UsageError("--tolerance excludes --exact" if exact else "--tolerance must be a ratio such as 0.004")
    sides = [load_side(run, progress) for run in runs]
    note([text for _, notes in sides for text in notes])
    if lacking := [side.name for side, _ in sides if side.streams is None]:
        raise UsageError("a receipt has no steps: give the log", why=", ".join(lacking[:3]))
    given = [(side.document, side.streams or {}) for side, _ in sides]
    if lane is not None:
        given = [({**receipt, "run": {**receipt["run"], "lane": lane}}, streams) for receipt, streams in given]
    document = make_golden(given, steps=steps, ratio=tolerance)
    spread = [curve["metric"] for entry in document["references"] for curve in entry["curves"] if curve["rule"] == "spread/1"]
    if exact and spread:
        raise UsageError("the runs do not print the same", why=f"they differ in {', '.join(dict.fromkeys(spread))}")
    write_output(output, canonical_bytes(document))
