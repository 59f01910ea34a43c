"""Relays: the attempts that follow one another in one run of rows (see ``rows.RowRun``), and what of each stands."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from receipt_cli.events.model import Event, record_of
from receipt_cli.numeric.array_types import Integers

NEVER = 1 << 62
"""A step that no record reaches."""


class Relay(NamedTuple):
    """Attempts in one run: ``event`` is the first record, behind which all others stand.

    ``starts`` is the first record of each attempt, counted from 0, and ``stands`` how many of its records stand (int64 [n]).
    ``retained`` are the records that stand, ``overtaken`` the others: one event each, and a run; None where there is none.
    """

    event: Event
    starts: Integers
    stands: Integers
    retained: Event | None = None
    overtaken: Event | None = None

    @property
    def empty(self) -> int:
        """How many attempts have no record that stands."""
        return int((self.stands == 0).sum())


def is_relay(event: Event) -> bool:
    """True for an event whose run reaches over attempts."""
    return event.run is not None and event.run.begins is not None


def starts_of(event: Event) -> Integers:
    """Return the first record of each attempt of a relay, counted from 0 for the event itself (int64 [n])."""
    assert event.run is not None and event.run.begins is not None
    return np.concatenate([[0], event.run.begins + 1])


def lengths_of(event: Event) -> Integers:
    """Return how many records each attempt of a relay has (int64 [n])."""
    return np.diff(starts_of(event), append=event.records)


def as_retained(event: Event) -> Relay:
    """Return the relay of records all of which stand."""
    return Relay(event, starts_of(event), lengths_of(event))


def first_records(event: Event) -> list[tuple[int, int]]:
    """Return position and step of the first record of each attempt of a relay."""
    run = event.run
    assert run is not None and run.begins is not None
    return [(event.at, event.step or 0), *zip(run.at[run.begins].tolist(), run.steps[run.begins].tolist(), strict=True)]


def resolve(event: Event, limit: float) -> tuple[Relay, int]:
    """Return a relay with what stands of it, and its lowest step; what follows it begins again at the step ``limit``."""
    run, starts = event.run, starts_of(event)
    assert run is not None
    steps = np.concatenate([[event.step or 0], run.steps])
    firsts = np.append(steps[starts], np.int64(min(limit, NEVER)))
    limits = np.minimum.accumulate(firsts[:0:-1])[::-1]  # what is run again later
    stand = steps < np.repeat(limits, np.diff(starts, append=len(steps)))
    stands = np.add.reduceat(stand, starts, dtype=np.int64)
    begins = (np.cumsum(stands) - stands)[stands > 0][1:]
    retained = _part(event, np.flatnonzero(stand), begins)
    return Relay(event, starts, stands, retained, _part(event, np.flatnonzero(~stand), None)), int(firsts.min())


def _part(event: Event, records: Integers, begins: Integers | None) -> Event | None:
    """Return some records of a relay; ``begins``: those that begin another attempt, counted among them, if they are one."""
    run = event.run
    assert run is not None
    if not len(records):
        return None
    one = record_of(event, int(records[0]))
    if len(records) > 1:
        one.run = run.chosen(records[1:] - 1, None if begins is None else begins - 1)
    return one
