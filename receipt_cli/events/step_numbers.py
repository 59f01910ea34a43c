"""Number step records that print no step, if the progress bar or the epochs beside them prove the number.

A trainer that writes through its progress bar redraws the bar right after each record, with the step of the record. The log must
prove that both kept their order: after every record, before the next one, comes a bar with the total of the run, and the steps so
found rise by one constant stride, except at a restart and at the first step.

Else the records must be at multiples of one stride. Their epochs show which ones, and exactly one stride may agree with the steps
that bars show, or checkpoints without bars. A record may be printed long after its step, but never before it: no line behind it
shows a lower step. If the records kept their order, no line before them shows a higher one; else the bar must be drawn again at
each of their steps. Otherwise no record gets a number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from receipt_cli.events.table import EventTable, falls, not_nan, numbers_in, of_grammar, where
from receipt_cli.numeric.array_types import Floats
from receipt_cli.numeric.arrays import distinct_values
from receipt_cli.numeric.precision import Printing, resolution
from receipt_cli.numeric.spill import PIECE, gathered, rises, slices

MIN_RECORDS = 3
MOST_TRIED = 50
"""Most totals and strides that are tried, and most multiples beside the likeliest one; if more are left, nothing is proven."""


def number_steps(table: EventTable) -> EventTable:
    """Return the table without progress bars, and with the step of each record that prints none, if it is proven."""
    bars = table.by_source(lambda source: source.rule.event == "progress")
    asked = table.by_source(lambda source: source.is_step) & ~not_nan(table.steps)
    for grammar in sorted({source.grammar.id for source in table.sources}):
        mine = table.by_source(of_grammar(grammar))
        rows = numbers_in(where(mine & asked))
        if len(rows) < MIN_RECORDS:
            continue
        steps, total = _proven(table.chosen(rows), table.where(mine & ~asked))
        if steps is not None:
            every, planned = (np.array(table.column(name)) for name in ("step", "planned"))
            every[rows], planned[rows] = steps, total
            table = table.having(step=every, planned=planned)
    return table.where(~bars)


def _proven(records: EventTable, others: EventTable) -> tuple[Floats | None, float]:
    """Return the steps (float64 [n]; None: not proven) of ``records`` and the planned steps, from ``others`` of their grammar."""
    bars, saved, ends, evals = (_of(others, event) for event in ("progress", "checkpoint", "end", "eval"))
    closing = ends.where(ends.at > records.at[-1]).metric("epoch").values[-1:]
    for number, total in enumerate(_totals(others)[:MOST_TRIED]):
        marks = bars.where((bars.column("planned") == total) & ~np.isnan(bars.steps))
        steps = _numbers(records, marks) if len(marks) and not number else None
        if steps is None:
            shown = marks or saved.where(~np.isnan(saved.steps))
            steps = _multiples(records, shown, total, closing[: len(marks)], evaluated=2 * len(evals) >= len(records))
        if steps is not None:
            return steps, total
    return None, math.nan


def _numbers(records: EventTable, bars: EventTable) -> Floats | None:
    """Return the steps that the ``bars`` after the records show (float64 [n]).
    None if no bar is between a record and the next one, or if the steps do not rise by one stride."""
    at, places = records.at, bars.at

    def parts() -> list[Floats]:
        found: list[Floats] = []
        for part in slices(len(at)):
            after = np.searchsorted(places, at[part], "right")
            following = at[part.start + 1 : part.stop + 1]
            if after[-1] == len(places) or bool((places[after[: len(following)]] >= following).any()):
                return []
            found.append(bars.steps[after])
        return found

    steps = gathered(np.float64, len(at), parts() or [np.full(len(at), np.nan)])
    strides: set[float] = set()
    for _, each in rises(steps[1:]):
        strides |= set(distinct_values(each[each > 0]).tolist())
        if len(strides) > 1:
            return None
    if not strides or not (steps[1] - steps[0] in strides or steps[1] % min(strides) == 0):
        return None
    return steps


def _multiples(records: EventTable, marks: EventTable, total: float, closing: Floats, *, evaluated: bool) -> Floats | None:
    """Return the steps (float64 [n]) of ``records`` if exactly one stride agrees with all that is shown, else None.
    ``marks``: lines that show a step; ``closing``: the epoch of the last one, if the trainer says it; ``evaluated``: whether
    evaluations are half as many as the records."""
    if not 0 < len(marks) <= PIECE - len(records) or falls(marks.steps).any():
        return None
    epochs, last = np.append(records.filled("epoch"), closing), marks.steps[-1:].repeat(len(closing))
    digits = np.maximum(resolution(epochs) or 1, Printing.of(None, epochs).units(epochs))
    errors = np.minimum(digits, np.maximum(0.01, epochs / 1000)) * 0.500001  # trainers print two decimals or four digits at least
    behind = np.searchsorted(marks.at, records.at, "right")
    in_order = bool((np.diff(behind) > 0).all() or (np.diff(records.clock) >= 1).all())
    if not in_order and evaluated and not len(closing):  # an evaluation draws the bar again, too
        return None
    highest = np.append(marks.steps, total)[behind]
    if not behind[-1]:  # the stream of the bars is written below the other one
        highest[:] = marks.steps[-1]
    lowest = np.append(marks.steps, 0)[behind - 1] if in_order else np.zeros(len(records))
    shown, counts = np.unique(marks.steps, return_counts=True)
    again = shown[counts > 1]
    found: list[Floats] = []
    for numbers in _numberings(epochs[: len(records)], errors):
        counted = slice(int(not numbers[0]), None)
        least, most = (lowest[counted] / numbers[counted]).max(), (highest[counted] / numbers[counted]).min()
        strides = again[again <= most * numbers[1]] / numbers[1]
        if in_order:
            strides = np.arange(max(1, math.ceil(least)), 1 + min(most, least + MOST_TRIED + 1))
        if len(strides) > MOST_TRIED:
            return None
        for stride in strides:
            steps = np.maximum(stride * numbers, 1)
            resumed = int(steps[0] > stride)  # while it skips steps, the bar is drawn rarely
            drawn = in_order or (np.isin(steps[resumed:], again).all() and steps[0] in shown)
            if steps[0] < steps[1] and ((lowest <= steps) & (steps <= highest)).all() and drawn:
                found += [steps] * _agree(np.append(steps, last), epochs, errors)
    return found[0] if len(found) == 1 else None


def _numberings(epochs: Floats, errors: Floats) -> Iterator[Floats]:
    """Yield which multiples of the stride records with such epochs may be (float64 [n]); 0 is step 1."""
    apart = (epochs[-1] - epochs[0]) / (len(epochs) - 1)
    if apart > 0:
        likeliest = epochs[0] / apart
        reach = (1 + likeliest / len(epochs)) * ((errors[0] + errors[-1]) / apart + 1)
        firsts = range(max(0, math.floor(likeliest - reach)), math.ceil(likeliest + reach) + 1) if reach <= MOST_TRIED else ()
        every = (np.arange(first, first + len(epochs), dtype=np.float64) for first in firsts)
        yield from (numbers for numbers in every if _agree(numbers, epochs, errors[: len(epochs)]))


def _agree(steps: Floats, epochs: Floats, errors: Floats) -> bool:
    """Return whether all epochs, known up to ``errors``, have one length in steps, give or take a step: the batches that an epoch
    has beyond its whole steps are spread over them."""
    least, most = (epochs - errors) / (steps + 1), (epochs + errors) / np.maximum(steps - 1, 1e-9)
    return bool(least.max() <= most.min())


def _of(table: EventTable, event: str) -> EventTable:
    """Return the records of an event."""
    return table.of_sources(lambda source: source.rule.event == event)


def _totals(mine: EventTable) -> list[float]:
    """Return what may be the planned steps of a grammar: those of its last header line, else the totals that its bars show, the
    most frequent first."""
    headers = _of(mine, "header").column("planned")
    stated = headers[~np.isnan(headers)]
    if len(stated):
        return [float(stated[-1])]
    shown = _of(mine, "progress").column("planned")
    totals, counts = np.unique(shown[~np.isnan(shown)], return_counts=True)
    return [total for _, total in sorted(zip(counts.tolist(), totals.tolist(), strict=True), reverse=True)]
