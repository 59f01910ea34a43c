"""``receipt history``: what changed in a lane, when, and what changed with it."""

from __future__ import annotations

import sys
from typing import Annotated

from receipt_cli.cli.output import note_some, read_policy, style, write_json, write_stdout
from receipt_cli.cli.parameters import Argument, Color, Json, Option, Policy, StoreFolder
from receipt_cli.errors import ExitCode, InputError


def history(
    store: StoreFolder,
    lane: Annotated[str | None, Argument("LANE", "One lane; all by default.", completes="lane")] = None,
    policy: Policy = None,
    changed: Annotated[bool, Option(help="Only lanes in which something changed.")] = False,
    exit_code: Annotated[bool, Option(help="Exit 1 where the last change of a figure was for the worse.")] = False,
    json_output: Json = False,
    color: Color = "auto",
) -> None:
    """Find where throughput, memory, goodput and health of a lane changed, and which header fields changed there.

    A single outlier is reported as a spike, not a change.

    Example: receipt history runs/
    """
    from receipt_cli.definitions.metrics import load_registry
    from receipt_cli.history.lane_history import history as find_history
    from receipt_cli.history.lane_history import worsened
    from receipt_cli.render.history import render_history
    from receipt_cli.store.files import Store
    from receipt_cli.store.reading import read_receipts

    notes: list[str] = []
    found = find_history(read_receipts(Store(store), notes.append, excluded=False), read_policy(policy), load_registry(), lane)
    note_some(notes)
    if lane is not None and not found["lanes"]:
        raise InputError(f"no run of the lane {lane!r}", where=str(store), try_=f"receipt history {store}")
    if json_output:
        write_json(found)
    else:
        write_stdout(render_history(found, style(color), quiet=changed) or "no change in any lane\n")
    if exit_code and worsened(found):
        sys.exit(ExitCode.NO)
