"""The attempts of a relay as arrays: for all of them at once what ``Try`` says of one.

Each has something before it and behind it in its phase, and no mark stands among them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from receipt_cli.analysis.goodput.attempts import CUMULATIVE, DATA, LONGEST, MISSING, SLACK, TIME, Try
from receipt_cli.analysis.steady import warmups
from receipt_cli.events.model import Event, part_of
from receipt_cli.events.relays import Relay

if TYPE_CHECKING:
    from receipt_cli.numeric.array_types import Array, Floats, Integers, Mask


MOST = 1 << 17
"""Records from which on a relay is looked at in parts."""


class Beyond(NamedTuple):
    """What some records of a warm-up hold beyond their steps, and the seconds that they have as steps (float64 [n] each).

    ``at`` are the records, ascending, counted from 0 (int64 [n]).
    """

    at: Integers
    seconds: Floats
    working: Floats


def legs_of(relay: Relay) -> list[Legs]:
    """Return the attempts of a relay: together where they are few, else in parts."""
    event, starts = relay.event, relay.starts
    places = np.flatnonzero(np.diff(starts // MOST)) + 1  # attempts that a part may begin with
    cuts = [0]
    for place in places.tolist():
        if starts[place] - starts[cuts[-1]] > 1 and event.records - starts[place] > 1:  # a part has a run
            cuts.append(place)
    if len(cuts) == 1:
        return [Legs(event, starts, relay.stands)]
    bounds = [*starts[cuts].tolist(), event.records]
    parts = zip(pairwise([*cuts, len(starts)]), pairwise(bounds), strict=True)
    return [
        Legs(part_of(event, begin, end), starts[low:high] - begin, relay.stands[low:high]) for (low, high), (begin, end) in parts
    ]


class Legs:
    """The attempts of the relay ``event``: ``starts`` is the first record of each, ``stands`` how many of its records stand."""

    def __init__(self, event: Event, starts: Integers, stands: Integers) -> None:
        run = event.run
        assert run is not None
        self.events: Sequence[Event] = [event]
        self.first, self.records, self.count, self._run = event, event.records, len(starts), run
        self.starts: Integers = starts
        self.stops: Integers = np.append(starts[1:], event.records)
        self.standing: Integers = starts + stands
        self.lengths: Integers = self.stops - starts

    @property
    def clock(self) -> Floats:
        """The time stamp of each record (float64 [n])."""
        return np.append(self.first.clock, self._run.clock)

    @property
    def steps(self) -> Integers:
        """The step of each record (int64 [n])."""
        return np.append(self.first.step or 0, self._run.steps)

    @property
    def overtaken(self) -> int:
        """How many of them have records that were overtaken."""
        return int(np.count_nonzero(self.standing < self.stops))

    @property
    def stands(self) -> Mask:
        """Which records stand (bool [n])."""
        return np.arange(self.records) < np.repeat(self.standing, self.lengths)

    @property
    def begins(self) -> Mask:
        """Which records are the first of an attempt (bool [n])."""
        found = np.zeros(self.records, np.bool_)
        found[self.starts] = True
        return found

    @property
    def line(self) -> Integers:
        """The line of each record (int64 [n])."""
        return np.append(self.first.line, self._run.line)

    @property
    def strides(self) -> Integers:
        """The steps from the first record of each to the second; none where there is no second."""
        steps = self.steps
        found: Integers = steps[np.minimum(self.starts + 1, self.stops - 1)] - steps[self.starts]
        return found

    @property
    def stride(self) -> int:
        """The greatest of them."""
        return int(self.strides.max())

    @property
    def leads(self) -> Integers:
        """How many steps the first record of each is of (see ``Try.lead``)."""
        step, stride = self.steps[self.starts], self.strides
        many = np.minimum(stride, np.where((step + 1) % np.maximum(stride, 1) == 0, step + 1, step))
        return np.where((step <= 1) | (stride <= 1), 1, many)

    @property
    def covers(self) -> Integers:
        """Of how many steps each record is (int64 [n]), the first of each attempt of its ``leads``."""
        found: Integers = np.diff(self.steps, prepend=0)
        found[self.starts] = self.leads
        return found

    @property
    def ends(self) -> tuple[Floats, Floats]:
        """The stamps of the first and of the last record of each attempt."""
        clock = self.clock
        return clock[self.starts], clock[self.stops - 1]

    @property
    def lasting(self) -> Floats:
        """The seconds from the first record of each attempt to its last."""
        begin, end = self.ends
        found: Floats = end - begin
        return found

    def since(self, begin: float) -> Floats:
        """Return the seconds to the first record of each attempt from the end of the one before: of the first, from ``begin``."""
        first, last = self.ends
        found: Floats = first - np.append(begin, last[:-1])
        return found

    @property
    def spans(self) -> Floats:
        """The seconds since the record before by the stamps (float64 [n]), NaN for the first of each attempt."""
        found: Floats = np.diff(self.clock, prepend=np.nan)
        found[self.starts] = np.nan
        return found

    def paces(self) -> tuple[Floats, Floats]:
        """Return the seconds between neighbouring records of an attempt by their stamps, and those per step."""
        between = ~self.begins
        spans = self.spans[between]
        return spans, spans / self.covers[between]

    def times(self, name: str) -> Floats:
        """Return what each record prints of a figure that is a time (float64 [n]); NaN where it prints none."""
        found = self._run.filled(name)
        values = np.full(self.records, np.nan)
        values[0] = self.first.metrics.get(name, math.nan)
        values[1:] = np.nan if found is None else found
        values[~((values >= 0) & (values <= LONGEST))] = np.nan
        return values

    def steps_in(self, begins: Integers, ends: Integers) -> Integers:
        """Return of how many steps the records from each of ``begins`` to each of ``ends`` are; nothing of those without any."""
        steps = _sums(self.covers)
        found: Integers = (steps[ends] - steps[begins])[begins < ends]
        return found

    def totals(self, begins: Integers, ends: Integers, name: str, definition: str | None, median: float) -> list[float | None]:
        """Return for the records from each of ``begins`` to each of ``ends`` what ``steptime.figure_total`` says of them.

        Nothing of those that are empty.
        """
        begins, ends = begins[begins < ends], ends[begins < ends]
        values, covers = self.times(name), self.covers
        known = ~np.isnan(values)
        timed, kept = _sums(np.where(known, covers, 0)), _sums(known)
        whole, with_time = self.steps_in(begins, ends), timed[ends] - timed[begins]
        if definition in CUMULATIVE:
            last = np.maximum.accumulate(np.where(known, np.arange(self.records), -1))[ends - 1]
            shown = (values[last] * whole).tolist()
            return [total if place >= first else None for total, place, first in zip(shown, last, begins, strict=True)]
        without = whole - with_time
        dark = (with_time == 0) | (without > MISSING * whole)
        products = (values * covers)[known].tolist()
        sums = [math.fsum(products[low:high]) for low, high in zip(kept[begins].tolist(), kept[ends].tolist(), strict=True)]
        every = zip(sums, without.tolist(), dark.tolist(), strict=True)
        return [None if unknown else total + missing * median for total, missing, unknown in every]

    def before(self, begin: float, working: Floats, beyond: Beyond | None) -> list[float]:
        """Return the seconds before the first record of each attempt, its own steps left out; the first one: since ``begin``.

        ``working`` are the seconds of the steps of each record, ``beyond`` what those of warm-ups hold beyond them.
        """
        lead = working[self.starts]
        if beyond is not None:
            more = np.zeros(self.records)
            more[beyond.at] = beyond.seconds
            lead = lead + more[self.starts]
        found: list[float] = (self.since(begin) - lead).tolist()
        return found

    def by_clock(self, pace: float, begin: float, standing: list[float], wasted: list[float]) -> None:
        """Add the seconds of the attempts, as the stamps show them, to those that stand and those that were overtaken.

        The first one begins at the stamp ``begin``; all have stamps at both ends.
        """
        own = pace * self.leads
        since = self.since(begin)
        lead = np.maximum(0.0, np.minimum(own, np.where(np.isnan(since), own, since)))
        stands, over = self.standing > self.starts, self.standing < self.stops
        first, last = self.ends
        until = np.where(stands, self.clock[self.standing - 1], first)
        standing += [*lead[stands].tolist(), *(until - first)[stands].tolist()]
        wasted += [*lead[~stands].tolist(), *(last - until)[over].tolist()]

    def are_credible(self, grain: float, definition: str | None, median: float) -> bool:
        """Say whether the stamps leave room for the printed times (see ``steptime.is_credible``)."""
        begin, end = self.ends
        first = self.times(TIME)[self.starts]
        first = np.where(np.isnan(first), median, first) * self.leads
        room = ((end - begin) * (1 + SLACK) + 2 * grain).tolist()
        totals = self.totals(self.starts, self.stops, TIME, definition, median)
        every = zip(totals, first.tolist(), room, strict=True)
        return not any(seconds is not None and seconds - lead > most for seconds, lead, most in every)

    def beyond(self, median: float, definition: str | None, waiting: float | None) -> Beyond:
        """Return what the records of the warm-ups hold beyond their steps, as ``steptime`` says it of one attempt."""
        values, data, covers = self.times(TIME), self.times(DATA), self.covers
        with np.errstate(invalid="ignore"):
            waits = (data > waiting) & (data <= values) if waiting is not None else np.zeros(self.records, np.bool_)
            waited = np.where(waits, data - (waiting or 0.0), 0.0)
            more = values - waited - median
            early = np.arange(self.records) - np.repeat(self.starts, self.lengths) < np.repeat(
                warmups(self.lengths), self.lengths
            )
            early &= more > 0
        averaged = covers if definition is not None else np.where(covers <= 1, covers, 1)
        at = np.flatnonzero(early)
        return Beyond(at, (more * averaged)[at], ((median + waited) * covers)[at])


def _sums(values: Array) -> Integers:
    """Return the sums of the first values, from none to all."""
    found = np.zeros(len(values) + 1, np.int64)
    np.cumsum(values, out=found[1:])
    return found


Tries: TypeAlias = Try | Legs
"""One attempt, or those of a relay."""
