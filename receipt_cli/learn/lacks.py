"""Readings of a log of which nothing was learned → what the nearest of them lacked, for the person who has the log."""

from __future__ import annotations

from collections.abc import Sequence

from receipt_cli.learn.counting import ABSENT, EPOCHS, GLOBAL, UNNUMBERED
from receipt_cli.learn.metric_names import LOSS, METRIC, PART, SCORE
from receipt_cli.learn.readings import Reading
from receipt_cli.problems import Lack

SHOWN = 3


def find_lacks(readings: Sequence[Reading]) -> tuple[Lack, ...]:
    """Return the kinds of records that came nearest to records of training, the nearest first."""
    told = [r for r in readings if r.shape.samples and _near(r)]
    told.sort(key=lambda r: (-nearness(r), -r.shape.count, r.shape.first))
    return tuple(Lack(r.shape.samples[0].strip().decode("utf-8", "replace"), r.shape.count, _why(r)) for r in told[:SHOWN])


def _near(reading: Reading) -> bool:
    return bool(reading.roles) or reading.evaluation or reading.counter.mode in (GLOBAL, EPOCHS, UNNUMBERED)


def nearness(reading: Reading) -> int:
    """Return how much a record looks like one of training; the higher, the more."""
    kinds = {role.kind for role in reading.roles.values()}
    counted = reading.counter.mode not in (ABSENT, UNNUMBERED)
    often = min(3, reading.shape.count) - 1
    return 4 * (LOSS in kinds) + 2 * bool(kinds & {METRIC, PART, SCORE}) + 2 * counted + often - 3 * reading.evaluation


def _why(reading: Reading) -> str:
    """Return what a record lacked, the first of what must be there."""
    kinds = {role.kind for role in reading.roles.values()}
    if reading.evaluation:
        return "its words speak of an evaluation"
    if not kinds:
        return "it counts, but has no loss and no other metric that is known"
    if reading.counter.mode == ABSENT:
        return "no step, iteration or epoch counts up in it"
    if reading.counter.mode == UNNUMBERED:
        return "its counter starts again, and nothing tells which epoch or launch it is of"
    if not reading.tier:
        return "nothing beside its counter is a loss"
    if reading.bar:
        return "the bar shows a loss before its first step is done"
    return f"{reading.shape.count} such records are too few, or they cannot be told from others"
