"""``receipt history``: what changed in a lane, when, and what changed with it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from receipt_cli.cli.options import Color, Json
from receipt_cli.cli.output import note, read_bytes, style, write_json, write_stdout
from receipt_cli.errors import ExitCode, InputError

_MAX_NOTES = 5


def history(
    store: Annotated[Path, typer.Argument(help="A store of receipts.", metavar="STORE")],
    lane: Annotated[str | None, typer.Argument(help="One lane; all by default.", metavar="LANE")] = None,
    policy: Annotated[Path | None, typer.Option(help="YAML: which fields matter, as for compare.", metavar="FILE")] = None,
    changed: Annotated[bool, typer.Option("--changed", help="Only lanes in which something changed.")] = False,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit 1 where a figure changed last for the worse.")] = False,
    json_output: Json = False,
    color: Color = "auto",
) -> None:
    """Find where throughput, memory, goodput and health of a lane changed, and which header fields changed there.

    A run that sticks out alone is named as a spike and is no change.
    """
    from receipt_cli.comparison.policy import DEFAULT, read_policy
    from receipt_cli.definitions.metrics import load_registry
    from receipt_cli.history.lane_history import history as find_history
    from receipt_cli.history.lane_history import worsened
    from receipt_cli.render.history import render_history
    from receipt_cli.store.files import Store
    from receipt_cli.store.reading import read_receipts

    chosen = DEFAULT if policy is None else read_policy(read_bytes(policy), str(policy))
    notes: list[str] = []
    found = find_history(read_receipts(Store(store), notes.append), chosen, load_registry(), lane)
    note([*notes[:_MAX_NOTES], *([f"and {len(notes) - _MAX_NOTES} more files"] if len(notes) > _MAX_NOTES else [])])
    if lane is not None and not found["lanes"]:
        raise InputError(f"no run of the lane {lane!r}", where=str(store), try_=f"receipt history {store}")
    if json_output:
        write_json(found)
    else:
        write_stdout(render_history(found, style(color), quiet=changed) or "no change in any lane\n")
    if exit_code and worsened(found):
        raise typer.Exit(ExitCode.NO)
