"""Find the lines that announce each epoch, or each fold: what counts in the records behind them starts again there."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from receipt_cli.learn.counting import (
    ABSENT,
    EPOCHS,
    GLOBAL,
    PER_EPOCH,
    UNNUMBERED,
    Counter,
    drawn_steps,
    ends_bar,
    first_epoch,
    is_full,
    shows_share,
)
from receipt_cli.learn.names import LOSS, METRIC, PART, SCORE, VALIDATION_LOSS
from receipt_cli.learn.reading import Reading
from receipt_cli.learn.shapes import Column, Shape
from receipt_cli.learn.tokens import BAR, FRACTION
from receipt_cli.learn.vocabulary import Vocabulary


def find_headings(readings: Sequence[Reading], vocabulary: Vocabulary) -> list[Reading]:
    """Return the readings; each whose counter starts again in every epoch gets the heading that announces its epochs."""
    opening, bare = [r for r in readings if _begins_epochs(r)], [r for r in readings if not r.roles and not r.evaluation]
    drawn = [r for r in bare if r.bar and r.counter.epoch == 0 and shows_share(r.shape)]  # ``Epoch 3: 100%|███|``
    few = [r for r in bare if r.counter.epoch is not None and sum(c.kind != BAR for c in r.shape.columns) < 2]  # or a rule
    announcing = [
        r for r in few if sum(c.isalnum() for c in b"".join(r.shape.literals).decode("utf-8", "replace")) <= MAX_HEADING
    ]
    closing = [r for r in readings if r.counter.mode == EPOCHS and r.counter.epoch == 0 and r.counter.step is None and not r.bar]
    found = [_above_closing(_under_heading(r, readings, announcing, opening, drawn), closing) for r in readings]
    return [_of_runs(reading, readings, vocabulary) for reading in found]


def counted_values(reading: Reading) -> list[float | None]:
    """Return the numbers of the counter in the first records; empty without one."""
    step = reading.counter.step
    if step is None and reading.counter.mode == EPOCHS:
        step = reading.counter.epoch
    return [] if step is None else reading.shape.columns[step].numbers


MAX_HEADING = 20
"""Most letters on a line that only announces an epoch."""


def _under_heading(
    reading: Reading,
    readings: Sequence[Reading],
    announcing: Sequence[Reading],
    openings: Sequence[Reading],
    drawn: Sequence[Reading],
) -> Reading:
    """Return a reading whose counter starts again with every epoch as counted by the line that announces each.

    ``announcing`` are the readings that announce epochs, ``openings`` those that only count them, ``drawn`` the bars that do.
    """
    counter, shape = reading.counter, reading.shape
    if reading.evaluation or counter.epoch is not None or counter.mode in (PER_EPOCH, EPOCHS):
        return reading
    if not reading.roles and (counter.step is None or len(shape.columns) > 1):
        return reading  # a line that only counts may begin a record over several
    if counter.mode == ABSENT and counter.step is None and not reading.bar:
        bars = (r.shape for r in readings if counts_bars(r))
        reading = replace(reading, numbered=reading.loss is not None and any(in_turn(bar, shape, again=1) for bar in bars))
        opening = next((r.shape for r in openings if in_turn(r.shape, shape, again=r.shape.columns[0].stays)), None)
        within = [r.shape for r in drawn if r.shape.first < shape.first and r.shape.last < shape.last]
        spare = 1 + shape.count // ONE_OF  # the last bar may lack its record, and one of so many
        fitting = (bars for bars in within if 0 <= bars.columns[0].rises + bars.columns[0].drops + 1 - shape.count <= spare)
        opening = opening or next(fitting, None)
        if opening is not None and not any(_inside(r, opening) for r in readings):
            return replace(reading, counter=Counter(EPOCHS, None, None, first_epoch(opening.columns[0]), heading=opening))
        return reading
    column = shape.columns[counter.step] if counter.step is not None else None
    if column is None:
        return reading
    for other in announcing:
        found, heads = other.counter.epoch, other.shape
        if found is None or heads.first > shape.last or (heads.first > shape.first and heads.last > shape.last):
            continue  # they follow each epoch, or all of them
        if column.kind != FRACTION:
            if _heads_each(heads, heads.columns[found], shape, column):
                count = Counter(PER_EPOCH, counter.step, None, first_epoch(heads.columns[found]), heading=heads)
                return replace(reading, counter=count)
            continue
        if heads.count == 1 and counter.mode == GLOBAL and not column.drops and heads.columns[found].first in (0, 1):
            return replace(reading, counter=replace(counter, of_epoch=True))
        if other.counter.mode != EPOCHS:
            continue
        each = is_full(column) and heads.count // 2 <= shape.count <= 2 * heads.count
        if is_full(column) and not each:
            continue  # several passes of an epoch
        if each or (column.drops and heads.count // 2 <= column.drops <= 2 * heads.count):
            bare = counter.mode == UNNUMBERED and column.stride != 1 and (counter.step or 0) > min(reading.roles, default=-1)
            bare = bare and counter.step not in drawn_steps(shape)
            keras = any(b"[=" in core or b"=>" in core for core in shape.samples) and not ends_bar(shape, counter.step or 0)
            mode = UNNUMBERED if bare else EPOCHS if each or keras else PER_EPOCH
            return replace(reading, counter=Counter(mode, counter.step, None, first_epoch(heads.columns[found]), heading=heads))
    return reading


def _above_closing(reading: Reading, closing: Sequence[Reading]) -> Reading:
    """Return the reading with the number of its epoch from the lines of ``closing``, one of which ends each epoch.

    The first epoch is 1, so that the line that ends it has the number of the next one, counted from 0.
    """
    counter, shape = reading.counter, reading.shape
    column = shape.columns[counter.step] if counter.mode == UNNUMBERED and counter.step is not None else None
    if column is None or counter.epoch is not None or counter.heading is not None or reading.evaluation or reading.bar:
        return reading
    if column.kind != FRACTION or not column.one_total:
        return reading
    for other in closing:
        heads, epochs = other.shape, other.shape.columns[0]
        each = epochs.first == 1 and epochs.stride == 1 and epochs.strides == heads.count - 1 > 0
        if each and 0 <= heads.count - column.drops <= 1 and shape.first < heads.first:
            return replace(reading, counter=Counter(PER_EPOCH, counter.step, None, 0, heading=heads))
    return reading


def _of_runs(reading: Reading, readings: Sequence[Reading], vocabulary: Vocabulary) -> Reading:
    """Return the reading with its counter as the step if a line such as ``Fold 2`` is before each record that starts it again."""
    counter, shape = reading.counter, reading.shape
    if counter.mode != UNNUMBERED or counter.step is None or counter.epoch is not None or counter.heading is not None:
        return reading
    column = shape.columns[counter.step]
    for other in readings:
        heads = other.shape
        alone = len(heads.columns) == 1 and not other.roles and not other.evaluation and other.names[0].words.split()[-1:]
        if alone and alone[0] in vocabulary.runs and _heads_each(heads, heads.columns[0], shape, column):
            return replace(reading, counter=Counter(GLOBAL, counter.step))
    return reading


def counts_bars(reading: Reading) -> bool:
    """True for a bar without figures that counts one by one to a total: ``Epochs:  69%|███| 16/23 [00:01<00:00, …]``."""
    drawn = drawn_steps(reading.shape) if reading.bar and not reading.roles and not reading.evaluation else []
    column = reading.shape.columns[drawn[0]] if len(drawn) == 1 else None
    vocabulary = reading.vocabulary
    said = {*re.findall(r"[a-z]+", reading.shape.literals[0].decode("utf-8", "replace").lower())}
    told = said <= vocabulary.epoch | vocabulary.training | {*vocabulary.step} and drawn == [2]
    return told and column is not None and column.one_total and column.stride == 1 and not column.drops


ONE_OF = 20
"""One of so many headings may lack its records, or be of another launch."""


SELDOM = 4
"""Epochs seldom begin again if they rise so many times as often."""


def _heads_each(heads: Shape, epochs: Column, shape: Shape, column: Column) -> bool:
    """Return whether a heading precedes the first record, and each record at which the counter starts again.

    Their epochs may begin again, as those of another launch do, at 0 or 1, if that is seldom.
    """
    spare = heads.count // ONE_OF
    each = column.drops > 0 and -spare < heads.count - column.drops <= 2 + spare and heads.first < shape.first
    anew = epochs.drops if epochs.lowest in (0, 1) and SELDOM * epochs.drops <= epochs.rises else 0
    return each and epochs.drops <= max(spare, anew) and epochs.rises >= heads.count - 1 - max(2 * spare, anew)


def _begins_epochs(reading: Reading) -> bool:
    """True for a line that counts epochs and shows no metric: what follows is of that epoch."""
    kinds = {role.kind for role in reading.roles.values() if role.metric != "learning_rate"}
    column = reading.shape.columns[0]
    again = reading.counter.mode == UNNUMBERED and reading.counter.step is None and len(reading.shape.columns) == 1
    launches = again and column.lowest in (0, 1) and column.rises >= column.stays  # short ones, each from the first epoch on
    return (
        (reading.counter.mode == EPOCHS or launches)
        and reading.counter.epoch == 0
        and not reading.evaluation
        and not reading.bar
        and kinds.isdisjoint((LOSS, METRIC, PART, VALIDATION_LOSS, SCORE))
    )


def _inside(reading: Reading, heads: Shape) -> bool:
    """True for records that are printed several times an epoch: what is printed once is their summary."""
    shown = {LOSS, METRIC, PART, SCORE} & {role.kind for role in reading.roles.values()}
    often = reading.shape.count >= 2 * heads.count and reading.shape.first < heads.last
    late = reading.bar and counted_values(reading)[:1] == [0]  # as in ``_lags``: nobody reads them
    step = reading.counter.step
    full = step is not None and reading.bar and reading.counter.mode == ABSENT and is_full(reading.shape.columns[step])
    return bool(shown) and often and not late and not full and step is not None and not reading.evaluation


def in_turn(heads: Shape, records: Shape, *, again: int = 0) -> bool:
    """True where each heading is followed by one record, and each record by the next heading.

    The last may lack its record, one of ``ONE_OF``, and those before which the headings begin ``again``: of cut launches. So many
    records may be printed once more.
    """
    lacking, spare = heads.count - records.count, heads.count // ONE_OF
    if not -spare <= lacking <= 1 + max(spare, again) or heads.last - records.last > heads.count or not records.places:
        return False
    before = [bisect_left(heads.places, place) for place in records.places]
    steps = [b - a for a, b in pairwise([0, *before])]
    once_more = sum(not step for step in steps)
    return once_more <= spare and all(step <= 1 + max(0, lacking) + once_more for step in steps)


def beginning(reading: Reading) -> tuple[bytes, ...]:
    """Return the long words before the first counter, or metric if none counts; those of a bar in front are left out."""
    first = min(reading.counter.places or list(reading.roles)[:1], default=0)
    texts = reading.shape.literals[reading.glued + 1 if reading.glued < first else 0 : first + 1]
    return tuple(word for text in texts for word in _LONG_WORD.findall(text.lower()))


_LONG_WORD = re.compile(rb"[a-z]{3,}")
