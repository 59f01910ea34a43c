"""The attempts of a phase with everything that they printed: one by one, or those of a relay together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from receipt_cli.analysis.goodput.attempts import Try, covered, last_clock, run_paces
from receipt_cli.analysis.goodput.legs import Legs, Tries, legs_of
from receipt_cli.analysis.goodput.marked import Placed
from receipt_cli.events.model import Event
from receipt_cli.events.phases import Phase
from receipt_cli.events.relays import Relay, as_retained, is_relay
from receipt_cli.numeric.statistics import Values, finite

if TYPE_CHECKING:
    from receipt_cli.numeric.array_types import Floats


def attempts_of(phase: Phase) -> list[Tries]:
    """Return the attempts of a phase in log order, those too of which nothing stands; those of a relay are ``Legs``."""
    if not phase.superseded:
        return standing_of(phase)
    relays = {id(relay.event): relay for relay in phase.relays}
    parts = {id(part) for relay in phase.relays for part in (relay.retained, relay.overtaken)}
    stands = {id(event) for event in phase.steps}
    events = [event for event in (*phase.steps, *phase.superseded) if id(event) not in parts]
    groups: list[list[Event]] = []
    last: int | None = None
    for event in sorted([*events, *(relay.event for relay in phase.relays)], key=lambda event: event.at):
        if not groups or (event.step is not None and last is not None and event.step <= last):
            groups.append([])
        groups[-1].append(event)
        last = last if event.last_step is None else event.last_step
    found: list[Tries] = []
    for group in groups:
        relay = relays.get(id(group[0]))
        found += [Try(group, sum(id(event) in stands for event in group))] if relay is None else _legs(relay)
    return found


def standing_of(phase: Phase) -> list[Tries]:
    """Return the attempts of a phase of which something stands, without what was overtaken."""
    found: list[Tries] = []
    for attempt in filter(None, phase.attempts):
        found += _legs(as_retained(attempt[0])) if is_relay(attempt[0]) else [Try(attempt, len(attempt))]
    return found


def _legs(relay: Relay) -> list[Legs]:
    return legs_of(relay)


def paces(tries: Sequence[Tries], marks: Placed) -> tuple[Values, Values]:
    """Return the seconds between neighbouring records by their stamps, and the seconds of a step between them.

    What stands between a record behind one of the ``marks`` and the record before it does not count.
    """
    spans: list[float] = []
    each: list[float] = []
    runs: list[tuple[Floats, Floats]] = []
    for one in tries:
        if not isinstance(one, Try):
            runs.append(one.paces())
            continue
        before: Event | None = None
        for event in one.events:
            cover = covered(before, event, 1)
            if before is not None and id(event) not in marks.before and cover:
                spans.append(event.clock - last_clock(before))
                each.append(spans[-1] / cover)
            if event.run is not None:
                runs.append(run_paces(event, event.run, [row.place for row in marks.rows_of(event)]))
            before = event
    lengths, times = (finite(_joined(v, [run[i] for run in runs])) for i, v in enumerate((spans, each)))
    return lengths, times


def _joined(values: list[float], arrays: Sequence[Floats]) -> Values:
    if not arrays:
        return values
    joined: Floats = np.concatenate([np.array(values, np.float64), *arrays])
    return joined
