"""Where the marks of a phase stand among its step records, those of a run too, which are no events else."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from receipt_cli.analysis.goodput.attempts import FIGURES, strides
from receipt_cli.analysis.goodput.pauses import Mark
from receipt_cli.events.model import Event, records_at
from receipt_cli.numeric.arrays import distinct_values


class Row(NamedTuple):
    """A record of a run that follows a mark: its place in the run, itself as an event, the stamp of the record before it, and of
    how many steps it is."""

    place: int
    event: Event
    before: float
    cover: int


class Placed(NamedTuple):
    """The marks ``before`` a record, by the identity of its event, and those ``behind`` all. ``rows`` are such records in the run
    behind an event, by the identity of that one, ascending."""

    before: Mapping[int, list[Mark]]
    rows: Mapping[int, list[Row]]
    behind: list[Mark]

    def rows_of(self, event: Event) -> Sequence[Row]:
        """Return the records behind a mark in the run of an event."""
        return self.rows.get(id(event), ())


def place(marks: Sequence[Mark], records: Sequence[Event]) -> Placed:
    """Return where ``marks`` stand among the step records; both in log order."""
    places = [event.at for event in records]
    ends = [event.last_at if event.run is not None and event.run.passed else event.at for event in records]
    before: dict[int, list[Mark]] = {}
    inside: dict[int, list[Mark]] = {}
    behind: list[Mark] = []
    for mark in marks:
        index = bisect_left(places, mark.event.at)
        if index and mark.event.at < ends[index - 1]:
            inside.setdefault(index - 1, []).append(mark)
        else:
            (before.setdefault(id(records[index]), []) if index < len(records) else behind).append(mark)
    rows: dict[int, list[Row]] = {}
    for index, among in inside.items():
        rows[id(records[index])] = _rows(records[index], among, before)
    return Placed(before, rows, behind)


def _rows(owner: Event, marks: Sequence[Mark], before: dict[int, list[Mark]]) -> list[Row]:
    """Return the records behind ``marks`` in the run of an event, and add the marks to those ``before`` each."""
    run = owner.run
    assert run is not None
    following = np.searchsorted(run.at, [mark.event.at for mark in marks])
    indices = distinct_values(following)
    metrics = {name: columns for name, columns in run.metrics.items() if name in FIGURES}
    slim = replace(owner, run=replace(run, metrics=metrics, unregistered={}, epoch=None, attached={}))
    events = records_at(slim, indices)
    for mark, number in zip(marks, np.searchsorted(indices, following).tolist(), strict=True):
        before.setdefault(id(events[number]), []).append(mark)
    clocks = np.append(owner.clock, run.clock)[indices]
    covers = strides(owner, len(run))[indices]
    return [Row(*row) for row in zip(indices.tolist(), events, clocks.tolist(), map(int, covers.tolist()), strict=True)]
