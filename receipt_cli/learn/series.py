"""Choose the shapes that are records of training, with their counter: step, step of an epoch, or epoch."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
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
    first_epoch,
    open_steps,
)
from receipt_cli.learn.headings import beginning, counted_values, find_headings, in_turn
from receipt_cli.learn.names import LOSS, METRIC, SCORE, STEP, counter_of
from receipt_cli.learn.reading import Reading
from receipt_cli.learn.readings import leave_out_errors, read_shape, without
from receipt_cli.learn.shapes import MAX_HERALDS, Shape
from receipt_cli.learn.tokens import FRACTION
from receipt_cli.learn.vocabulary import Vocabulary, normalise


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
    def score(self) -> tuple[float, int, int, int, int]:
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
    readings = in_context([read_shape(s, vocabulary) for s in shapes], vocabulary)
    groups: dict[tuple[bytes, ...], Group] = {}
    for reading in readings:
        if reading.tier:
            groups.setdefault(reading.family, Group()).readings.append(reading)
    parts = [part for group in groups.values() for part in _launches(_without_rare_beginnings(group))]
    fit = [g for g in parts if not _lags(g) and _enough(g, readings, vocabulary)]
    if not fit:
        late = [g for g in parts if _shown_before(g) and _enough(g, readings, vocabulary)]
        lagging = {id(reading): replace(reading, lags=True) for group in late for reading in group.readings}
        fit = [Group([lagging[id(reading)] for reading in group.readings]) for group in late]
        readings = [lagging.get(id(reading), reading) for reading in readings]
    fit = [g for g in fit if not any(_precedes(g, other, vocabulary) for other in fit if other is not g)]
    if fit and sum(r.shape.count for r in readings if _lacks_loss(r, vocabulary)) >= fit[0].count:
        fit = []
    fit = sorted(fit, key=lambda g: (not _sums_up(g, fit), g.score), reverse=True)
    if fit and _is_outnumbered(fit[0], readings):
        fit = []
    chosen: list[Group] = []
    for group in fit:
        first, last = group.span
        apart = all(last < g.span[0] or g.span[1] < first for g in chosen)
        alike = bool(chosen) and group.main.loss is not None and group.main.family == chosen[0].main.family
        if not chosen or (apart and chosen[0].main.tier == 4 and (group.main.tier == 4 or alike)):
            chosen.append(group)
        if len(chosen) == MAX_GROUPS:
            break
    return chosen, readings


def in_context(readings: Sequence[Reading], vocabulary: Vocabulary) -> list[Reading]:
    """Return the readings as the other records of the log tell: of the training or of an evaluation, under which heading."""
    told = find_headings(_part_twins(leave_out_errors(readings), vocabulary), vocabulary)
    told = _set_aside(told)
    for doubts in (_beyond_total, _notices, _results, _first_batches, _rounds):
        against = doubts(told, vocabulary)
        told = [_doubted(reading, *against.get(id(reading), ("", ""))) for reading in told]
    return told


def _doubted(reading: Reading, evidence: str, word: str) -> Reading:
    return replace(reading, doubts=(*reading.doubts, evidence), told_by=word) if evidence else reading


Doubts = dict[int, tuple[str, str]]
"""Identity of a reading → the evidence against it, and a word by which it differs from records that are read."""


def _precedes(group: Group, plain: Group, vocabulary: Vocabulary) -> bool:
    """Return whether the records of a group are those of a plain one with other words before them: another model's."""
    shapes = [g.main.shape for g in (group, plain)]
    behind = len(shapes[1].columns) - _place(plain, max)
    texts = [re.findall(rb"[^\W\d_]+", b" ".join(shape.literals[:-behind]).lower()) for shape in shapes]
    rests = [(shape.literals[-behind:], [column.kind for column in shape.columns[-behind:]]) for shape in shapes]
    more = len(texts[0]) - len(texts[1])
    if more < 1 or rests[0] != rests[1] or 2 * plain.count < group.count:
        return False
    if len(shapes[0].columns) - len(shapes[1].columns) > _place(group, min):
        return False  # it counts before what it prints more
    first, last = group.span
    if (last < plain.span[0] or plain.span[1] < first) and MANY * group.count > plain.count:
        return False  # another stage
    for at in range(len(texts[1]) + 1):
        if texts[0][:at] + texts[0][at + more :] == texts[1]:
            words = {word.decode("ascii", "replace") for word in texts[0][at : at + more]}
            return words.isdisjoint(vocabulary.training)
    return False


def _lacks_loss(reading: Reading, vocabulary: Vocabulary) -> bool:
    """Return whether a record that counts ends where its loss should stand: the line was cut."""
    words = normalise(vocabulary.english(reading.shape.literals[-1].decode("utf-8", "replace")).rstrip(" :=")).split()
    words = words[:-1] if words[-1:] == ["is"] else words
    told = any(" ".join(words[-size:]) in vocabulary.loss for size in (1, 2, 3))
    return told and reading.counter.mode in (GLOBAL, PER_EPOCH, EPOCHS) and not reading.evaluation and reading.loss is None


def _place(group: Group, choose: Callable[[list[int]], int]) -> int:
    """Return the place of the counter of a group that ``choose`` takes of two, or of its first metric if none counts."""
    main = group.main
    return choose([at for at in (main.counter.step, main.counter.epoch) if at is not None] or [*main.roles][:1])


MANY = 4
"""So many times the records of one kind are too many to be what a few scores stand for."""


def _sums_up(group: Group, groups: Sequence[Group]) -> bool:
    """Return whether records of epochs are the means of steps that another group prints between them, one for four of them."""
    first, last = group.span
    return group.main.counter.mode == EPOCHS and any(
        g.main.counter.mode == GLOBAL and g.main.tier == group.main.tier == 4 and first < g.span[1] and g.span[0] < last
        for g in groups
        if g is not group and g.count * MANY >= group.count
    )


def _is_outnumbered(group: Group, readings: Sequence[Reading]) -> bool:
    """Return whether the records of a group have only scores, and many more of another kind count with figures that move."""
    others = without(readings, group.readings) if group.main.tier < 3 else []
    return any(
        r.counter.mode == GLOBAL and not (r.counter.tentative or r.evaluation or r.bar)
        and r.shape.count >= MANY * group.count
        and any(len({t.value for t in c.values}) * 2 > len(c.values) for c in r.shape.columns if not c.integer)
        for r in others
    )  # fmt: skip


RARE = 10
"""A beginning that fewer than one in so many records has, where half of them share another one, is not that of the kind."""


def _without_rare_beginnings(group: Group) -> Group:
    """Return the group without the records that other words precede than nearly all: another model's, or an old log's."""
    begun: dict[tuple[bytes, ...], list[Reading]] = {}
    for reading in group.readings:
        begun.setdefault(beginning(reading), []).append(reading)
    counts = {words: sum(r.shape.count for r in readings) for words, readings in begun.items()}
    most = max(counts.values())
    if 2 * most < group.count or group.count < FEWEST_SECTIONS:
        return group
    kept = [words for words, count in counts.items() if count == most or (count > 1 and count * RARE >= group.count)]
    return Group([r for r in group.readings if beginning(r) in kept])


def _launches(group: Group) -> list[Group]:
    """Return the group, or its parts where a later launch prints its loss under another name: a rule reads one."""
    losses: dict[str, Group] = {}
    for reading in group.readings:
        if reading.loss is not None:
            losses.setdefault(reading.names[reading.loss].words, Group()).readings.append(reading)
    parts = sorted(losses.values(), key=lambda part: part.span)
    if len(parts) < 2 or any(a.span[1] > b.span[0] for a, b in pairwise(parts)):
        return [group]
    if sum(len(part.readings) for part in parts) < len(group.readings):
        return [group]  # records without a loss belong to either
    return parts


def _part_twins(readings: Sequence[Reading], vocabulary: Vocabulary) -> list[Reading]:
    """Return the readings with those as evaluations which another record prints of training: ``Train loss``, ``Valid loss``."""
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
    twins = {id(reading) for key, reading in evaluated if key in trained}
    return [_of_evaluation(reading) if id(reading) in twins else reading for reading in readings]


def _of_evaluation(reading: Reading) -> Reading:
    names = [replace(name, evaluation=True) for name in reading.names]
    roles = {at: role for at, role in reading.roles.items() if role.kind != LOSS}
    return replace(reading, evaluation=True, names=names, roles=roles)


def _set_aside(readings: Sequence[Reading]) -> list[Reading]:
    """Return the readings with those as evaluations that stand behind lines which announce one.

    Where only some of the records are, these are left out, or all of them.
    """
    others = [r for r in readings if r.loss is not None and not r.evaluation and not r.shape.heralded]
    plain = any(r.tier for r in others)
    found: list[Reading] = []
    for reading in readings:
        shape = reading.shape
        mixed = reading.counter.mode == UNNUMBERED and reading.counter.heading is None and shape.heralded * 4 >= shape.count
        always = bool(others) and shape.heralded == shape.count
        aside = always or (others and _in_sections(reading))
        aside = aside or (plain and (shape.sectioned or shape.heralded * 5 >= shape.count * 4))
        if shape.heralded and reading.roles and (aside or mixed):
            counter = None if aside else _count_unheralded(reading)
            found.append(replace(reading, evaluation=True) if counter is None else replace(reading, counter=counter))
        else:
            found.append(reading)
    return found


def _beyond_total(readings: Sequence[Reading], _: Vocabulary) -> Doubts:
    """Doubt bars that go on beyond their total (``14/14``, ``15it``): no rule reads both kinds of frames."""
    ends: dict[bytes, list[tuple[float, Reading]]] = {}
    overs: dict[bytes, list[tuple[float, Reading]]] = {}
    for reading in (r for r in readings if r.roles):
        shape = reading.shape
        for at in open_steps(shape):
            overs.setdefault(shape.literals[0], []).append((shape.columns[at].lowest, reading))
        for at in drawn_steps(shape):
            totals = shape.columns[at].totals
            if totals is not None:
                ends.setdefault(shape.literals[0], []).append((totals[0], reading))
    doubted: list[Reading] = []
    for head in overs.keys() & ends.keys():
        least, most = min(total for total, _ in ends[head]), max(lowest for lowest, _ in overs[head])
        doubted += [r for total, r in ends[head] if total < most] + [r for lowest, r in overs[head] if least < lowest]
    return {id(reading): ("beyond_total", "") for reading in doubted}


def _notices(readings: Sequence[Reading], vocabulary: Vocabulary) -> Doubts:
    """Doubt lines that tell of a checkpoint and its loss, where others are as sure: ``Saved x.pt (epoch 3, loss 2.1)``."""
    told: list[Reading] = []
    for reading in readings:
        first = min(reading.roles, default=0)
        text = b" ".join(reading.shape.literals[: first + 1]).lower().decode("utf-8", "replace")
        if reading.tier and not vocabulary.saves.isdisjoint(re.findall(r"[a-z]+", text)):
            told.append(reading)
    best = max((r.tier for r in without(readings, told)), default=0)
    return {id(reading): ("notice", "") for reading in told if reading.tier <= best}


def _results(readings: Sequence[Reading], _: Vocabulary) -> Doubts:
    """Doubt losses without a counter where a line beside each prints one that never moves, or goes back: of several runs."""
    epochs = [(r.shape, r.shape.columns[r.counter.epoch]) for r in readings if r.counter.epoch is not None]
    still = [shape for shape, column in epochs if column.count > 1 and not (column.rises or column.drops)]
    again = [r.shape for r in readings if _begins_again(r)]
    uncounted = [r for r in readings if r.counter.mode == ABSENT and r.loss is not None] if still or again else []
    several = [r for r in uncounted if any(in_turn(s, r.shape) for s in still) or any(_beside(s, r.shape) for s in again)]
    return {id(reading): ("results_of_runs", "") for reading in several}


def _begins_again(reading: Reading) -> bool:
    """Return whether a line without a loss counts steps, and from the start again: another launch's."""
    step = reading.counter.step if reading.counter.mode in (GLOBAL, UNNUMBERED) and reading.counter.epoch is None else None
    return step is not None and reading.loss is None and not reading.bar and reading.shape.columns[step].drops > 0


def _beside(shape: Shape, records: Shape) -> bool:
    """Return whether about as many records of one shape stand among those of another."""
    alike = max(shape.count, records.count) <= 2 * min(shape.count, records.count)
    return alike and shape.first < records.last and records.first < shape.last


def _first_batches(readings: Sequence[Reading], vocabulary: Vocabulary) -> Doubts:
    """Doubt the records of the first batch of each epoch, where others are of whole epochs: ``Epoch 3 Batch 0 Loss 2``."""
    counted = [r for r in readings if r.tier and r.counter.mode == EPOCHS]
    words = [first_batch(reading, vocabulary) if reading.shape.count > 2 else "" for reading in counted]
    whole = [reading for reading, word in zip(counted, words, strict=True) if not word]
    doubted: Doubts = {}
    for reading, word in zip(counted, words, strict=True):
        twins = (r for r in whole if word and r.family == reading.family and r.loss is not None)
        if any(reading.shape.count <= 2 * r.shape.count for r in twins):
            doubted[id(reading)] = "first_batches", word
    return doubted


def _rounds(readings: Sequence[Reading], _: Vocabulary) -> Doubts:
    """Doubt records whose epochs begin again in each round of others."""
    return {id(reading): ("in_rounds", "") for reading in readings if _in_rounds(reading, readings)}


def first_batch(reading: Reading, vocabulary: Vocabulary) -> str:
    """Return what a counter of steps is called that never counts, since it is 0, or 1, in each record; empty without one."""
    for name, column in zip(reading.names, reading.shape.columns, strict=True):
        counter = counter_of(name.words.split(), vocabulary) if name.words and column.integer else None
        if counter is not None and counter.kind == STEP and column.count > 1 and not column.rises and column.lowest < 2:
            return name.words.split()[-1]
    return ""


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
            return _rich(group, readings) or _drawn(group, readings) or _unambiguous(group, readings, rises)
    step = main.counter.step
    total = step is not None and main.shape.columns[step].kind == FRACTION
    epoch = main.counter.epoch
    total = total or (step is None and epoch is not None and main.shape.columns[epoch].kind == FRACTION)
    sure = main.tier == 4 or (main.tier == 1 and main.counter.mode != ABSENT) or main.loss is not None
    return group.count >= (vocabulary.min_records if sure or total else FEW)


def _lags(group: Group) -> bool:
    """True for a bar that shows a loss before its first step is done."""
    first = min(group.readings, key=lambda r: r.shape.first)
    values = counted_values(first)
    return group.main.bar and first.loss is not None and bool(values) and values[0] == 0


def _shown_before(group: Group) -> bool:
    """True for a bar whose every loss is shown before its step is counted; what it shows at 0 is no mere start value."""
    main, first = group.main, min(group.readings, key=lambda r: r.shape.first)
    if not _lags(group) or first.loss is None or main.counter.mode not in (GLOBAL, PER_EPOCH):
        return False
    step = main.counter.step
    value = first.shape.columns[first.loss].values[0].value
    return step is not None and main.shape.columns[step].kind == FRACTION and bool(value) and math.isfinite(value or 0.0)


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
    values = [value for r in group.readings for value in counted_values(r)]
    if any(r.loss is not None and r.counter.step is not None for r in without(readings, group.readings)):
        return False
    return all(value is not None and value <= EARLY for value in values)


def _unambiguous(group: Group, readings: Sequence[Reading], rises: int) -> bool:
    """Return whether one or two records name a step that counts up, or counts to a total, and a loss that no others print."""
    main, step = group.main, group.main.counter.step
    if main.loss is None or step is None or main.counter.mode != GLOBAL or main.bar or main.tier < 4:
        return False
    others = [r.counter.step for r in without(readings, group.readings) if r.loss is not None]
    sure = sum(main.names[at].sure for at in main.roles)
    total = not others and main.shape.columns[step].kind == FRACTION and sure >= RICH
    named = bool(main.names[step].words) and main.names[main.loss].sure and set(others) <= {None}
    return named and (total or rises == group.count - 1 > 0)


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
    pairs = (pair for r in group.readings for pair in zip(r.shape.lines, counted_values(r), strict=False))
    return sorted((line, value) for line, value in pairs if value is not None)
