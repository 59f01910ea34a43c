"""Choose the shapes that are records of training, with their counter: step, step of an epoch, or epoch."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from receipt_cli.learn.counting import (
    ABSENT,
    EPOCHS,
    FEW,
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
from receipt_cli.learn.metric_names import LOSS, METRIC, PART, SCORE, VALIDATION_LOSS
from receipt_cli.learn.readings import Reading, doubt_overrun, leave_out_errors, read_shape, without
from receipt_cli.learn.shapes import MAX_HERALDS, Column, Shape
from receipt_cli.learn.tokens import FRACTION
from receipt_cli.learn.vocabulary import Vocabulary


@dataclass(slots=True)
class Group:
    """Readings of one kind of record: the same words up to the counter, whatever fields follow."""

    readings: list[Reading] = field(default_factory=list)

    @property
    def main(self) -> Reading:
        """The reading of most records."""
        return max(self.readings, key=lambda r: (r.tier, r.shape.count, -r.shape.first))

    @property
    def count(self) -> int:
        """Records of all readings."""
        return sum(r.shape.count for r in self.readings)

    @property
    def span(self) -> tuple[int, int]:
        """The first and the last record."""
        return min(r.shape.first for r in self.readings), max(r.shape.last for r in self.readings)

    @property
    def score(self) -> tuple[int, int, int, int, int]:
        """The higher, the more probable that these are the records of training."""
        main = self.main
        metrics = sum(1 for r in main.roles.values() if r.kind in (METRIC, LOSS))
        often = len(bin(self.count))  # of two lines about each step, the richer one
        step = main.counter.step
        sure = -main.shape.columns[step].drops if step is not None else 0
        return main.tier, often, metrics, sure, self.count


MAX_GROUPS = 16
"""Stages of a run that are learned: ten folds, and then some."""


def choose(shapes: Iterable[Shape], vocabulary: Vocabulary) -> tuple[list[Group], list[Reading]]:
    """Return the groups that are records of training, the surest first, and all readings.

    A second group is chosen only where it is entirely before or after the first in the log: another stage of the run.
    """
    readings = [read_shape(s, vocabulary) for s in shapes]
    leave_out_errors(readings)
    _part_twins(readings, vocabulary)
    opening, drawn = [r for r in readings if _begins_epochs(r)], [r for r in readings if _draws_epochs(r)]
    announcing = [r for r in readings if _announces_epochs(r)]
    for reading in readings:
        _find_heading(reading, readings, announcing, opening, drawn)
        _find_runs(reading, readings, vocabulary)
    _set_aside(readings)
    doubt_overrun(readings)
    for reading in readings:
        reading.doubted = reading.doubted or _in_rounds(reading, readings)
    groups: dict[tuple[bytes, ...], Group] = {}
    for reading in readings:
        if reading.tier:
            groups.setdefault(_family(reading), Group()).readings.append(reading)
    fit = [g for g in groups.values() if not _lags(g) and _enough(g, readings, vocabulary)]
    fit = fit or [g for g in groups.values() if _shown_before(g) and _enough(g, readings, vocabulary)]
    fit.sort(key=lambda g: g.score, reverse=True)
    chosen: list[Group] = []
    for group in fit:
        first, last = group.span
        apart = all(last < g.span[0] or g.span[1] < first for g in chosen)
        if not chosen or (apart and group.main.tier >= chosen[0].main.tier == 4):
            chosen.append(group)
        if len(chosen) == MAX_GROUPS:
            break
    return chosen, readings


def _part_twins(readings: Sequence[Reading], vocabulary: Vocabulary) -> None:
    """Take for an evaluation what another record prints of training: ``Train acc 1 | loss 2``, ``Valid acc 1 | loss 2``."""
    trained: set[tuple[bytes, ...]] = set()
    evaluated: list[tuple[tuple[bytes, ...], Reading]] = []
    for reading in readings:
        if reading.loss is None:
            continue
        text = b"\x00".join(reading.shape.literals).lower()
        words = set(re.findall(r"[a-z]+", text.decode("utf-8", "replace")))
        spoken = words & vocabulary.evaluation
        if bool(spoken) == bool(words & vocabulary.training):
            continue
        sides = b"|".join(word.encode() for word in words & (vocabulary.evaluation | vocabulary.training))
        key = tuple(re.sub(rb"(?<![a-z])(?:%s)(?![a-z])" % sides, b"\x01", text).split())
        if spoken:
            evaluated.append((key, reading))
        else:
            trained.add(key)
    for key, reading in evaluated:
        if key in trained:
            reading.evaluation = True
            reading.names = [replace(name, evaluation=True) for name in reading.names]
            reading.roles = {at: role for at, role in reading.roles.items() if role.kind != LOSS}


def _set_aside(readings: Sequence[Reading]) -> None:
    """Take for evaluations the records behind lines that announce one; where only some are, they are left out, or all."""
    others = [r for r in readings if r.loss is not None and not r.evaluation and not r.shape.heralded]
    plain = any(r.tier for r in others)
    for reading in readings:
        shape = reading.shape
        if not shape.heralded or not reading.roles:
            continue
        mixed = reading.counter.mode == UNNUMBERED and reading.counter.heading is None and shape.heralded * 4 >= shape.count
        always = bool(others) and shape.heralded == shape.count
        if always or (others and _in_sections(reading)) or (plain and (shape.sectioned or shape.heralded * 5 >= shape.count * 4)):
            reading.evaluation = True
        elif mixed and (counter := _count_unheralded(reading)) is not None:
            reading.counter = counter
        elif mixed:
            reading.evaluation = True


FEWEST_SECTIONS = 3
"""Evaluations with a counter of their own: fewer may be chance."""


def _in_sections(reading: Reading) -> bool:
    """True where such a line precedes the first record, and each whose counter starts again."""
    place = reading.counter.step if reading.counter.step is not None else reading.counter.epoch
    shape = reading.shape
    return place is not None and FEWEST_SECTIONS <= shape.columns[place].drops + 1 <= shape.heralded


def _in_rounds(reading: Reading, readings: Sequence[Reading]) -> bool:
    """True where the epochs begin again for each record of another kind that counts: rounds of several workers."""
    epoch = reading.counter.epoch
    drops = reading.shape.columns[epoch].drops if epoch is not None else 0
    if drops < 2:
        return False
    for other in readings:
        place = other.counter.step if other.counter.step is not None else other.counter.epoch
        if other is reading or other.loss is None or place is None or other.counter.mode not in (GLOBAL, EPOCHS):
            continue
        each = abs(other.shape.count - drops - 1) <= 1 and not other.shape.columns[place].drops
        if each and other.tier == 4 and other.shape.first > reading.shape.first:
            return True
    return False


def _count_unheralded(reading: Reading) -> Counter | None:
    """Return the counter of the epochs of the records that no line announces, where each of these is another epoch's."""
    shape, epoch = reading.shape, reading.counter.epoch
    column = shape.columns[epoch] if epoch is not None and reading.counter.step is None else None
    spelled = len(shape.heralds) < MAX_HERALDS and not any(re.search(rb"\d", line) for line in shape.heralds)
    if column is None or column.drops or not spelled or shape.count - shape.heralded != column.rises + 1:
        return None
    return Counter(EPOCHS, None, epoch, first_epoch(column), heralded=True)


def _enough(group: Group, readings: Sequence[Reading], vocabulary: Vocabulary) -> bool:
    """True when enough records were seen to trust a group; more where no loss is printed and no total."""
    main = group.main
    if main.counter.tentative:
        seen = _counted(group)
        rises = sum(1 for (_, a), (_, b) in pairwise(seen) if b > a)
        if any(b < a for (_, a), (_, b) in pairwise(seen)):
            return False
        if rises < 2 or group.count < vocabulary.min_records:
            return _rich(group, readings) or _drawn(group, readings)
    step = main.counter.step
    total = step is not None and main.shape.columns[step].kind == FRACTION
    epoch = main.counter.epoch
    total = total or (step is None and epoch is not None and main.shape.columns[epoch].kind == FRACTION)
    sure = main.tier == 4 or (main.tier == 1 and main.counter.mode != ABSENT) or main.loss is not None
    return group.count >= (vocabulary.min_records if sure or total else FEW)


def _lags(group: Group) -> bool:
    """True for a bar that shows a loss before its first step is done."""
    first = min(group.readings, key=lambda r: r.shape.first)
    values = _values(first)
    return group.main.bar and first.loss is not None and bool(values) and values[0] == 0


def _shown_before(group: Group) -> bool:
    """True for a bar whose every loss is shown before its step is counted; what it shows at 0 is no mere start value."""
    main, first = group.main, min(group.readings, key=lambda r: r.shape.first)
    if not _lags(group) or first.loss is None or main.counter.mode not in (GLOBAL, PER_EPOCH):
        return False
    step = main.counter.step
    value = first.shape.columns[first.loss].values[0].value
    if step is None or main.shape.columns[step].kind != FRACTION or not value or not math.isfinite(value):
        return False
    for reading in group.readings:
        reading.lags = True
    return True


RICH = 3
"""Named numbers (a step, a loss, another metric) that are a step record though it is the only one."""
EARLY = 10
"""A step up to which a run may have come that printed one or two records; a final summary says a later one."""


def _rich(group: Group, readings: Sequence[Reading]) -> bool:
    main = group.main
    step = main.counter.step if main.counter.mode == GLOBAL else main.counter.epoch if main.counter.mode == EPOCHS else None
    telling = (METRIC, LOSS) if main.counter.mode == GLOBAL else (METRIC, LOSS, SCORE)
    names = 1 + sum(1 for at, role in main.roles.items() if role.kind in telling and main.names[at].sure)
    if main.loss is None or step is None or not main.names[step].words or names < RICH:
        return False
    values = [value for r in group.readings for value in _values(r)]
    if any(r.loss is not None and r.counter.step is not None for r in without(readings, group.readings)):
        return False
    return all(value is not None and value <= EARLY for value in values)


def _drawn(group: Group, readings: Sequence[Reading]) -> bool:
    """True for the only bars of the log that end with a loss: what counts in a bar is known without seeing it count."""
    main = group.main
    if main.loss is None or main.counter.mode not in (GLOBAL, PER_EPOCH) or main.counter.step not in drawn_steps(main.shape):
        return False
    if main.counter.mode == GLOBAL and any(b <= a for (_, a), (_, b) in pairwise(_counted(group))):
        return False  # drawn again from the start: passes that nothing tells apart
    return not any(r.bar and r.loss is not None for r in without(readings, group.readings))


def _counted(group: Group) -> list[tuple[int, float]]:
    """Return line and counter of the kept records of a group, in log order."""
    pairs = (pair for r in group.readings for pair in zip(r.shape.lines, _values(r), strict=False))
    return sorted((line, value) for line, value in pairs if value is not None)


def _values(reading: Reading) -> list[float | None]:
    step = reading.counter.step
    if step is None and reading.counter.mode == EPOCHS:
        step = reading.counter.epoch
    return [] if step is None else [token.value for token in reading.shape.columns[step].values]


MAX_HEADING = 24
"""Most bytes of words on a line that only announces an epoch."""


def _announces_epochs(reading: Reading) -> bool:
    """True for a line of few words that counts epochs and nothing else."""
    plain = reading.counter.epoch is not None and not reading.evaluation and not reading.roles and len(reading.names) < 2
    return plain and sum(map(len, reading.shape.literals)) <= MAX_HEADING


def _find_heading(
    reading: Reading,
    readings: Sequence[Reading],
    announcing: Sequence[Reading],
    openings: Sequence[Reading],
    drawn: Sequence[Reading],
) -> None:
    """Find the line that announces each epoch, for records whose counter starts again with every epoch.

    ``announcing`` are the readings that announce epochs, ``openings`` those that only count them, ``drawn`` the bars that do.
    """
    counter, shape = reading.counter, reading.shape
    if reading.evaluation or not reading.roles or counter.epoch is not None or counter.mode in (PER_EPOCH, EPOCHS):
        return
    if counter.mode == ABSENT and counter.step is None and not reading.bar:
        opening = next((r.shape for r in openings if in_turn(r.shape, shape)), None)
        opening = opening or next((r.shape for r in drawn if _draw_each(r.shape, shape)), None)
        if opening is not None and not any(_inside(r, opening) for r in readings):
            reading.counter = Counter(EPOCHS, None, None, first_epoch(opening.columns[0]), heading=opening)
        return
    column = shape.columns[counter.step] if counter.step is not None else None
    if column is None:
        return
    for other in announcing:
        found, heads = other.counter.epoch, other.shape
        if found is None or heads.first > shape.last or (heads.first > shape.first and heads.last > shape.last):
            continue  # they follow each epoch, or all of them
        if column.kind != FRACTION:
            if _heads_each(heads, heads.columns[found], shape, column):
                reading.counter = Counter(PER_EPOCH, counter.step, None, first_epoch(heads.columns[found]), heading=heads)
                return
            continue
        if other.counter.mode != EPOCHS:
            continue
        each = is_full(column) and heads.count // 2 <= shape.count <= 2 * heads.count
        if each or (column.drops and heads.count // 2 <= column.drops <= 2 * heads.count):
            bare = counter.mode == UNNUMBERED and column.stride != 1 and (counter.step or 0) > min(reading.roles)
            keras = any(b"[=" in core or b"=>" in core for core in shape.samples) and not ends_bar(shape, counter.step or 0)
            mode = UNNUMBERED if bare else EPOCHS if each or keras else PER_EPOCH
            reading.counter = Counter(mode, counter.step, None, first_epoch(heads.columns[found]), heading=heads)
            return


def _find_runs(reading: Reading, readings: Sequence[Reading], vocabulary: Vocabulary) -> None:
    """Count by the step where a line such as ``Fold 2`` precedes each record whose counter starts again: a run of its own."""
    counter, shape = reading.counter, reading.shape
    if counter.mode != UNNUMBERED or counter.step is None or counter.epoch is not None or counter.heading is not None:
        return
    column = shape.columns[counter.step]
    for other in readings:
        heads = other.shape
        alone = len(heads.columns) == 1 and not other.roles and not other.evaluation and other.names[0].words.split()[-1:]
        if alone and alone[0] in vocabulary.runs and _heads_each(heads, heads.columns[0], shape, column):
            reading.counter = Counter(GLOBAL, counter.step)
            return


ONE_OF = 20
"""One of so many headings may lack its records, or be of another launch."""


def _heads_each(heads: Shape, epochs: Column, shape: Shape, column: Column) -> bool:
    """True where a line that counts precedes the first record, and each whose counter starts again; the last may lack records."""
    spare = heads.count // ONE_OF
    each = column.drops > 0 and -spare < heads.count - column.drops <= 2 + spare and heads.first < shape.first
    return each and epochs.drops <= spare and epochs.rises >= heads.count - 1 - 2 * spare


def _begins_epochs(reading: Reading) -> bool:
    """True for a line that counts epochs and shows no metric: what follows is of that epoch."""
    kinds = {role.kind for role in reading.roles.values() if role.metric != "learning_rate"}
    return (
        reading.counter.mode == EPOCHS
        and reading.counter.epoch == 0
        and not reading.evaluation
        and not reading.bar
        and kinds.isdisjoint((LOSS, METRIC, PART, VALIDATION_LOSS, SCORE))
    )


def _draws_epochs(reading: Reading) -> bool:
    """True for bars whose description counts the epochs: ``Epoch 3: 100%|███|``."""
    counts = reading.bar and reading.counter.epoch == 0 and not reading.roles and not reading.evaluation
    return counts and shows_share(reading.shape)


def _draw_each(bars: Shape, records: Shape) -> bool:
    """True where one record is behind the bar of each epoch; the last may lack its record, and one of ``ONE_OF``."""
    epochs = bars.columns[0].rises + bars.columns[0].drops + 1
    within = bars.first < records.first and bars.last < records.last
    return within and 0 <= epochs - records.count <= 1 + records.count // ONE_OF


def _inside(reading: Reading, heads: Shape) -> bool:
    """True for records that are printed several times an epoch: what is printed once is their summary."""
    shown = {LOSS, METRIC, PART, SCORE} & {role.kind for role in reading.roles.values()}
    often = reading.shape.count >= 2 * heads.count and reading.shape.first < heads.last
    late = reading.bar and _values(reading)[:1] == [0]  # as in ``_lags``: nobody reads them
    return bool(shown) and often and not late and reading.counter.step is not None and not reading.evaluation


def in_turn(heads: Shape, records: Shape) -> bool:
    """True where each heading is followed by one record, and each record by the next heading.

    The last may lack its record, and one of ``ONE_OF``: those of launches that were cut.
    """
    lacking, pairs = heads.count - records.count, list(zip(heads.lines, records.lines, strict=False))
    if not 0 <= lacking <= 1 + heads.count // ONE_OF or heads.last - records.last > heads.count:
        return False
    if lacking > 1:  # the lines that are kept of both need not be those of one epoch
        return all(head < record for head, record in pairs)
    places = [place for pair in pairs for place in pair]
    return all(a < b for a, b in pairwise(places))


def _family(reading: Reading) -> tuple[bytes, ...]:
    """Return the key of one kind of records: the literals up to the counter, or to the first metric."""
    counters = [at for at in (reading.counter.step, reading.counter.epoch) if at is not None]
    literals = reading.shape.literals[: min(counters or list(reading.roles)[:1]) + 1]
    kinds = ",".join(reading.shape.columns[at].kind for at in counters).encode()
    if reading.glued >= 0 and len(literals) == reading.glued + 2:
        literals = [literals[-1].lstrip(b"] ")]  # the same record, once behind a bar and once not
    return (kinds, b" " * reading.indented, *(b" ".join(text.split()) for text in literals[-2:]))
