"""Render the step, tokens and time at which each run reached a target."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from receipt_cli.render.console import Column, Page, Span, write_table
from receipt_cli.render.fields import UNKNOWN
from receipt_cli.render.metrics import metric_label
from receipt_cli.render.scale import count, duration, significant

TARGET_HEAD = ("run", "reached", "step", "held from", "tokens", "samples", "time", "best")
_REACHED = {True: "yes", False: "no", None: UNKNOWN}


def target_title(target: Mapping[str, Any]) -> str:
    """Return a target as a heading: ``val loss 2.5``."""
    return f"{metric_label(target['metric'])} {target['value']:g}"


def target_rows(target: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield the cells of each run under ``TARGET_HEAD``."""
    for run in target["runs"]:
        counts = (UNKNOWN if run[key] is None else count(run[key]) for key in ("step", "held_step", "tokens", "samples"))
        time = UNKNOWN if run["time_s"] is None else duration(run["time_s"])
        best = UNKNOWN if run["best"] is None else significant(run["best"], 4)
        yield [run["run"], _REACHED[run["reached"]], *counts, time, best]


def write_targets(page: Page, targets: Sequence[Mapping[str, Any]]) -> None:
    """Add a table for each target."""
    for target in targets:
        page.heading(page.say(target_title(target)))
        columns = [Column("run", least=8), Column("reached"), *(Column(name, right=True) for name in TARGET_HEAD[2:])]
        write_table(page, columns, [[Span(page.say(cell)) for cell in row] for row in target_rows(target)])
