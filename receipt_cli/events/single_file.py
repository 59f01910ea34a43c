"""The records of a phase one behind the other: what is measured between two of them has nothing else in it."""

from __future__ import annotations

from collections.abc import Collection
from itertools import pairwise

from receipt_cli.events.model import Event, expand, in_order, part_of
from receipt_cli.events.phases import Phase
from receipt_cli.lazy_dataclass import replace
from receipt_cli.numeric.array_types import Integers
from receipt_cli.numeric.arrays import distinct_values
from receipt_cli.numeric.lazy_numpy import np

LONG = 64
"""Records between two evaluations or checkpoints that are worth a run of their own."""


def in_single_file(phase: Phase, figures: Collection[str]) -> Phase:
    """Return the phase with no run that reaches over an evaluation or a checkpoint: it is cut there, or into events.

    These have of all metrics the ``figures``.
    """
    lists = (phase.step_events, phase.evals, phase.superseded, *phase.attempts)
    if not any(event.run is not None and event.run.passed for events in lists for event in events):
        return phase
    evals = in_order(phase.evals)
    saved = (event for event in phase.standalone_events if event.rule.event == "checkpoint")
    marks = np.sort(np.array([event.at for event in (*evals, *saved)], np.int64))
    known: dict[int, list[Event]] = {}

    def single(events: list[Event]) -> list[Event]:
        return [one for event in events for one in known.setdefault(id(event), _between(event, marks, figures))]

    steps, superseded, *attempts = map(single, (phase.step_events, phase.superseded, *phase.attempts))
    return replace(phase, step_events=steps, evals=evals, superseded=superseded, attempts=attempts)


def _between(event: Event, marks: Integers, figures: Collection[str]) -> list[Event]:
    """Return the records of an event whose run reaches over ``marks``: ``LONG`` and more without one among them have a run."""
    run = event.run
    if run is None or not run.passed:
        return [event]
    metrics = {name: columns for name, columns in run.metrics.items() if name in figures}
    event = replace(event, run=replace(run, metrics=metrics, unregistered={}, epoch=None, attached={}))
    low, high = np.searchsorted(marks, [event.at, event.last_at])
    cuts = distinct_values(np.searchsorted(run.at, marks[low:high])) + 1
    bounds = [0, *cuts.tolist(), event.records]
    long = [(begin, end) for begin, end in pairwise(bounds) if end - begin >= LONG]
    found: list[Event] = []
    done = 0
    for begin, end in (*long, (event.records, event.records)):
        found += expand(part_of(event, done, begin)) if done < begin else ()
        if begin < end:
            one = part_of(event, begin, end)
            found.append(replace(one, run=None if one.run is None else replace(one.run, passed=False)))
        done = end
    return found
