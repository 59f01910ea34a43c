"""``receipt compare``: are these runs comparable, and what differs?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from receipt_cli.cli.options import Color, Json
from receipt_cli.cli.output import note, progress, read_bytes, style, write_json, write_stdout
from receipt_cli.errors import ExitCode, UsageError


def compare(
    runs: Annotated[list[str], typer.Argument(help="Receipts or logs; the first is the baseline.", metavar="A B...")],
    policy: Annotated[Path | None, typer.Option(help="YAML: which fields block, warn or are ignored.", metavar="FILE")] = None,
    align: Annotated[Literal["step", "tokens"], typer.Option(help="What curves are laid over one another by.")] = "step",
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit 1 where a run is worse or not comparable.")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown, for a pull request.")] = False,
    reproducibility: Annotated[
        bool, typer.Option("--reproducibility", help="Ask whether B reproduces A: exit 0 where it is shown, else 1.")
    ] = False,
    steps: Annotated[int | None, typer.Option(min=1, help="With --reproducibility: compare so many records (100).")] = None,
    tolerance: Annotated[
        float | None, typer.Option(min=0, help="With --reproducibility: relative difference allowed.", metavar="REL")
    ] = None,
    series: Annotated[
        Path | None, typer.Option(help="With --reproducibility: Parquet files of the receipts' logs.", metavar="FOLDER")
    ] = None,
    json_output: Json = False,
    color: Color = "auto",
) -> None:
    """Compare runs with a baseline: first whether they can be compared, then their figures and loss curves.

    Logs say more than receipts: the steps give intervals and curves. Repeats of one lane and preset are pooled.
    """
    from receipt_cli.comparison.contrasts import compare_runs
    from receipt_cli.comparison.load import load_runs
    from receipt_cli.comparison.policy import DEFAULT, read_policy
    from receipt_cli.definitions.metrics import load_registry
    from receipt_cli.render.comparison.markdown import render_markdown
    from receipt_cli.render.comparison.terminal import render_comparison

    if reproducibility:
        if markdown:
            raise UsageError("--markdown does not go with --reproducibility")
        from receipt_cli.cli.reproducing import reproduce

        return reproduce(runs, policy, steps, tolerance, series, json_output=json_output, color=color)
    if steps is not None or tolerance is not None or series is not None:
        raise UsageError("--steps, --tolerance and --series go with --reproducibility")
    if len(runs) < 2:
        raise UsageError("compare wants two runs or more", try_="receipt compare before.log after.log")
    chosen = DEFAULT if policy is None else read_policy(read_bytes(policy), str(policy))
    loaded, notes = load_runs(runs, align, progress)
    note(notes)
    document, contrasts = compare_runs(loaded, chosen, load_registry(), align)
    if json_output:
        write_json(document)
    else:
        write_stdout(render_markdown(document) if markdown else render_comparison(document, style(color)))
    if exit_code and any(contrast.bad for contrast in contrasts):
        raise typer.Exit(ExitCode.NO)
