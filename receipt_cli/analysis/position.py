"""How far a run came through its data: the samples or tokens that it counts, its cursor in the data, or the share of its epochs.

A cursor is what a data loader prints of its own state (row group, shard, offset, sampler index). It has one value or several
that belong together, each under a label that means nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

import numpy as np

from receipt_cli.events.table import Column, EventTable
from receipt_cli.numeric.array_types import Mask
from receipt_cli.numeric.spill import pieces, rises
from receipt_cli.patterns import compile_later

PositionKind = Literal["samples", "tokens", "epoch_batch", "cursor"]
COUNTED: dict[str, PositionKind] = {"samples_total": "samples", "tokens_total": "tokens"}
"""Metrics of the registry that count the data that a run has consumed."""
_CURSOR = compile_later(
    r"pq|rg|shard|row[ _]group|cursor|(?:pq|rg|shard|file|part|doc|document|sample|row[ _]group|block|chunk)[ _](?:idx|index|id)"
    r"|(?:data|loader|data ?loader|sampler|dataset|shard|file|doc|document|sample)[ _](?:step|pos|position|offset|cursor|state)"
)
_SAMPLES = compile_later(
    r"(?:consumed|seen|total)[ _](?:train[ _])?(?:samples|examples)|(?:samples|examples)[ _](?:seen|consumed)"
)
_TOKENS = compile_later(r"(?:(?:consumed|seen)[ _](?:train[ _])?tokens|tokens[ _](?:seen|consumed))")


class Position(NamedTuple):
    """What the records of a phase count of the data; fields as in ``summary.position`` of a receipt.

    ``by_step`` is how much one step adds, None if it is not always the same.
    """

    kind: PositionKind
    first: float | str
    last: float | str
    by_step: float | None
    lines: list[int]


def position_kind(name: str) -> PositionKind | None:
    """Return which position a figure counts, by its name in a receipt; None if it is no position."""
    if name in COUNTED:
        return COUNTED[name]
    label = name.lower().replace("-", "_").rpartition("/")[2]
    kinds: tuple[tuple[PositionKind, object], ...] = (("cursor", _CURSOR), ("samples", _SAMPLES), ("tokens", _TOKENS))
    return next((kind for kind, pattern in kinds if pattern.fullmatch(label)), None)  # type: ignore[attr-defined]


def find_position(table: EventTable, metrics: Iterable[str], others: Sequence[str]) -> Position | None:
    """Return the position that the step records of a phase print, of the most exact kind; None without one.

    ``metrics`` and ``others`` are the names of the table's figures, in the registry and outside of it.
    """
    steps: Mask = table.by_source(lambda source: source.rule.event == "step")
    columns = {name: table.metric(name).within(steps) for name in metrics if name in COUNTED}
    columns |= {name: table.other(name).within(steps) for name in others if position_kind(name) is not None}
    columns = {name: found for name, found in columns.items() if len(found.values) and np.isfinite(found.values[[0, -1]]).all()}
    for kind in ("cursor", "samples", "tokens"):
        mine = {name: column for name, column in columns.items() if position_kind(name) == kind}
        if mine:
            return _position(table, kind, mine)
    epoch = table.metric("epoch").within(steps)
    finite = all(np.isfinite(piece).all() for piece in pieces(epoch.values))
    fractional = finite and any((piece % 1 != 0).any() for piece in pieces(epoch.values))
    return _position(table, "epoch_batch", {"epoch": epoch}) if fractional and len(epoch.values) > 1 else None


def _position(table: EventTable, kind: PositionKind, columns: dict[str, Column]) -> Position:
    if len(columns) == 1 or kind != "cursor":
        name, column = next(iter(columns.items()))
        lines = [table[column.row(at)].line_of(name) for at in (0, len(column.values) - 1)]
        return Position(kind, float(column.values[0]), float(column.values[-1]), _by_step(table, column), lines)
    firsts, lasts = (" ".join(f"{name} {column.values[at]:.15g}" for name, column in columns.items()) for at in (0, -1))
    of_first = [table[column.row(0)].line_of(name) for name, column in columns.items()]
    of_last = [table[column.row(len(column.values) - 1)].line_of(name) for name, column in columns.items()]
    return Position(kind, firsts, lasts, None, [min(of_first), max(of_last)])


def _by_step(table: EventTable, column: Column) -> float | None:
    """Return how much a step adds; None if it is not always the same, or only one record has a step."""
    steps, values = table.steps_of(column), column.values
    rate: float | None = None
    for (_, passed), (_, added) in zip(rises(steps), rises(values), strict=True):
        if not (passed > 0).all():  # also where a record has no step
            return None
        each = added / passed
        rate = float(each[0]) if rate is None else rate
        if not (np.abs(each - rate) <= 1e-9 * abs(rate)).all():
            return None
    return rate
