"""Read each record in the context of its log, and put those of one kind together: what may be a series of training."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

from receipt_cli.learn.counting import (
    ABSENT,
    EPOCHS,
    GLOBAL,
    UNNUMBERED,
    Counter,
    drawn_steps,
    first_epoch,
    open_steps,
)
from receipt_cli.learn.headings import beginning, find_headings, in_turn
from receipt_cli.learn.names import LOSS, STEP, counter_of
from receipt_cli.learn.reading import FIGURES, Reading
from receipt_cli.learn.readings import leave_out_errors, read_shape, without
from receipt_cli.learn.shapes import MAX_HERALDS, Column, Shape
from receipt_cli.learn.vocabulary import Vocabulary
from receipt_cli.records.envelope import CITATION

RANK = {name: rank for rank, name in enumerate(FIGURES)}


@dataclass(eq=False)
class Group:
    """Readings of one kind of record: the same words up to the counter, whatever fields follow."""

    readings: list[Reading] = field(default_factory=list)

    against: frozenset[str] = frozenset()
    """What the records of another group say against these."""

    @cached_property
    def main(self) -> Reading:
        """The reading of most records."""
        return max(self.readings, key=lambda r: (not r.against, -RANK.get(r.figure, len(RANK)), r.shape.count, -r.shape.first))

    @property
    def count(self) -> int:
        """The number of records of all readings of the group."""
        return sum(r.shape.count for r in self.readings)

    @property
    def span(self) -> tuple[int, int]:
        """The first and the last record."""
        return min(r.shape.first for r in self.readings), max(r.shape.last for r in self.readings)


def find_groups(readings: Iterable[Reading]) -> list[Group]:
    """Return the records of each kind, and apart from them those of the kind against which something speaks."""
    groups: dict[tuple[object, ...], Group] = {}
    for reading in readings:
        if reading.figure:
            against = frozenset[str]() if reading.plain else reading.against
            groups.setdefault((reading.family, against, reading.apart), Group()).readings.append(reading)
    return _with_marked([part for group in groups.values() for found in _by_beginnings(group) for part in _launches(found)])


def _with_marked(groups: Sequence[Group]) -> list[Group]:
    """Return the groups; each gets the readings of records that differ only by a mark in front: ``[BEST] Epoch 3: ...``.

    These fill the gaps between the others: together they count one sequence in the order of the log, and no value comes twice.
    """
    merged: dict[int, list[Group]] = {}
    for group in sorted(groups, key=lambda group: -group.count):
        found = {id(other): _as_marked(other, group) for other in groups if id(group) not in merged and id(other) not in merged}
        marked = {key: readings for key, readings in found.items() if readings and key != id(group)}
        for taken in (marked, *({key: readings} for key, readings in marked.items())):
            readings = [*group.readings, *(reading for each in taken.values() for reading in each)]
            if taken and _is_one_sequence(readings):
                merged |= {**{key: list[Group]() for key in taken}, id(group): [Group(readings)]}
                break
    return [kept for group in groups for kept in merged.get(id(group), [group])]


def _as_marked(marked: Group, group: Group) -> list[Reading]:
    """Return records among those of ``group``, with the same words and others before them, as these count; else none."""
    main, (first, last), (begin, end) = group.main, marked.span, group.span
    if not main.plain or main.bar or group.against or marked.against or not (first < end and begin < last):
        return []
    found: list[Reading] = []
    for reading in marked.readings:
        before = any(reading.shape.words_before(plain.shape) for plain in group.readings)
        if not before or reading.evaluation or "quoted" in reading.against:
            return []
        at = main.counter.epoch
        start = first_epoch(reading.shape.columns[at]) if at is not None else main.counter.epochs_from
        found.append(replace(reading, counter=replace(main.counter, epochs_from=start)))
    return found


def _is_one_sequence(readings: Sequence[Reading]) -> bool:
    """Return whether what counts in records of several shapes is one sequence, in the order of the log and without a gap."""
    columns: list[Column] = []
    rows: list[tuple[int, float]] = []
    known: list[int] = []
    for reading in readings:
        shape, counter = reading.shape, reading.counter
        places = counter.places
        if counter.mode not in (GLOBAL, EPOCHS) or len(places) != 1 or counter.heading is not None:
            return False
        column = shape.columns[places[0]]
        values = column.numbers
        if column.count != shape.count or column.rises != column.count - 1:
            return False
        columns.append(column)
        rows += [(place, value) for place, value in zip(shape.places, values, strict=False) if value is not None]
        known += [shape.places[len(values) - 1]] if len(values) < shape.count else []
    counted = [value for place, value in sorted(rows) if place <= min(known, default=place)]
    strides = {after - before for before, after in pairwise(counted)}
    first, last = min(column.first or 0 for column in columns), max(column.last or 0 for column in columns)
    return len(strides) == 1 and min(strides) * (sum(column.count for column in columns) - 1) == last - first > 0


def read_shapes(shapes: Iterable[Shape], vocabulary: Vocabulary) -> list[Reading]:
    """Return a reading of the records of each shape, chosen with regard to all shapes of the log."""
    return in_context([read_shape(shape, vocabulary) for shape in shapes], vocabulary)


def in_context(readings: Sequence[Reading], vocabulary: Vocabulary) -> list[Reading]:
    """Return the readings as the other records of the log tell: of the training or of an evaluation, under which heading."""
    told = find_headings(_part_twins(leave_out_errors(readings), vocabulary), vocabulary)
    told = _set_aside(told)
    told = _apart(told)
    for name, doubt in DOUBTED.items():
        out = set(map(id, doubt(told, vocabulary)))
        told = [replace(reading, doubts=(*reading.doubts, name)) if id(reading) in out else reading for reading in told]
    return told


RARE = 10
"""A beginning that fewer than one in so many records has, where half of them share another one, is not that of the kind."""


def _by_beginnings(group: Group) -> list[Group]:
    """Return the group, or apart the records that other words precede than nearly all: another model's, or an old log's."""
    begun: dict[tuple[bytes, ...], list[Reading]] = {}
    for reading in group.readings:
        begun.setdefault(beginning(reading), []).append(reading)
    counts = {words: sum(r.shape.count for r in readings) for words, readings in begun.items()}
    most = max(counts.values())
    if 2 * most < group.count or group.count < FEWEST_SECTIONS:
        return [group]
    kept = [words for words, count in counts.items() if count == most or (count > 1 and count * RARE >= group.count)]
    parts = [Group([r for r in group.readings if (beginning(r) in kept) == rare]) for rare in (True, False)]
    return [parts[0], *([replace(parts[1], against=frozenset({"rare_beginning"}))] if parts[1].readings else [])]


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
    """Return the readings with those as evaluations that count and name their loss as others do which say that they are of
    training: ``[Train] Epoch 3: loss = 0.5``, ``[Diff-Val] Epoch 3: loss = 0.6``."""
    trained: set[tuple[str, ...]] = set()
    evaluated: list[tuple[tuple[str, ...], Reading]] = []
    sides = vocabulary.evaluation | vocabulary.training
    for reading in readings:
        if reading.loss is None:
            continue
        words = set(re.findall(r"[a-z]+", b" ".join(reading.shape.literals).lower().decode("utf-8", "replace")))
        spoken = words & vocabulary.evaluation
        if bool(spoken) == bool(words & vocabulary.training):
            continue
        named = (reading.names[at] for at in (*reading.counter.places, reading.loss))
        key = (*(" ".join(word for word in name.spelled if word not in sides) for name in named), reading.counter.mode)
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
    """Return the readings; those whose records follow a line that announces an evaluation are evaluations.

    Where only some of the records are, these are left out, or all of them.
    """
    others = [r for r in readings if r.loss is not None and not r.evaluation and not r.shape.heralded]
    plain = any(r.plain for r in others)
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


def _apart(readings: Sequence[Reading]) -> list[Reading]:
    """Return the readings with those apart that begin as the records of a training do, and are none of its steps.

    They are the means of its epochs, or what another program prints behind it, or before it, without a loss: an evaluation.
    """
    kinds: dict[object, list[Reading]] = {}
    for reading in readings:
        if reading.plain:
            kinds.setdefault(reading.family, []).append(reading)
    means, others = set[int](), set[int]()
    for alike in kinds.values():
        losses = [r for r in alike if r.loss is not None]
        means |= {id(r) for r in losses if any(_is_mean_of(r, other) for other in losses)}
        others |= {id(r) for r in alike if r.loss is None and losses and _begins_over(r, losses)}
    found = [replace(r, apart=id(r) in means or id(r) in others) for r in readings]
    return [replace(new, evaluation=True) if id(old) in others else new for old, new in zip(readings, found, strict=True)]


def _is_mean_of(reading: Reading, other: Reading) -> bool:
    """Return whether each record is the mean of many of another shape with the same counter, and stands behind these.

    ``Epoch 1 - Average loss: 1.6`` behind ``Epoch 1 - Batch loss: 12.1`` and more of them.
    """
    epochs, counts = reading.counter, other.counter
    if epochs.epoch is None or counts.epoch is None or counts.mode != UNNUMBERED or reading.bar or other.bar:
        return False
    if {epochs.step, epochs.heading, counts.step, counts.heading} != {None} or reading.loss is None or other.loss is None:
        return False
    shape, each, column = reading.shape, other.shape, reading.shape.columns[epochs.epoch]
    if reading.names[reading.loss].words == other.names[other.loss].words or column.rises < column.count - 1:
        return False
    whole = len(each.places) == each.count
    before = [bisect_left(each.places, place) for place in shape.places if whole or place <= each.places[-1]]
    return bool(before) and all(b - a >= FEWEST_SUMMED for a, b in pairwise([0, *before]))


FEWEST_SUMMED = 2
"""Records of each epoch of which one is the mean."""


def _begins_over(reading: Reading, losses: Sequence[Reading]) -> bool:
    """Return whether records without a loss stand behind all that have one, or before them, and count the same once more."""
    shapes, counter = [r.shape for r in losses], reading.counter
    places = counter.places[::-1]
    first, last = min(shapes, key=lambda shape: shape.first), max(shapes, key=lambda shape: shape.last)
    if reading.bar or any(len(shape.columns) <= max(places, default=-1) for shape in shapes):
        return False

    def at_end(shape: Shape, *, begin: bool) -> list[float]:
        found = [shape.columns[at].first if begin else shape.columns[at].last for at in places]
        return [value for value in found if value is not None]

    if last.last < reading.shape.first:
        return bool(places) and at_end(reading.shape, begin=True) <= at_end(last, begin=False)
    if reading.shape.last < first.first:
        return bool(places) and at_end(first, begin=True) <= at_end(reading.shape, begin=False)
    return False


def _citations(readings: Sequence[Reading], _: Vocabulary) -> list[Reading]:
    """Doubt records that a search found in a file, ``old.log:12:step 3 loss 2.1``, if others are printed without its name."""
    told = [reading for reading in readings if reading.figure]
    cited = [reading for reading in told if all(CITATION.match(core.lstrip()) for core in reading.shape.samples)]
    return cited if len(cited) < len(told) else []


def _beyond_total(readings: Sequence[Reading], _: Vocabulary) -> list[Reading]:
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
    return doubted


def _notices(readings: Sequence[Reading], vocabulary: Vocabulary) -> list[Reading]:
    """Doubt lines that tell of a checkpoint and its loss, where others are as sure: ``Saved x.pt (epoch 3, loss 2.1)``."""
    told: list[Reading] = []
    for reading in readings:
        first = min(reading.roles, default=0)
        text = b" ".join(reading.shape.literals[: first + 1]).lower().decode("utf-8", "replace")
        if reading.figure and not vocabulary.saves.isdisjoint(re.findall(r"[a-z]+", text)):
            told.append(reading)
    return told


def _results(readings: Sequence[Reading], vocabulary: Vocabulary) -> list[Reading]:
    """Doubt losses of several runs without a counter: one of each, of several processes, or beside a counter that is still."""
    epochs = [(r.shape, r.shape.columns[r.counter.epoch]) for r in readings if r.counter.epoch is not None]
    still = [shape for shape, column in epochs if column.count > 1 and not (column.rises or column.drops)]
    again = [r.shape for r in readings if _begins_again(r)]
    uncounted = [r for r in readings if r.counter.mode == ABSENT and r.loss is not None]
    processes = set[bytes]().union(*(r.shape.writers for r in uncounted))
    several = [r for r in uncounted if any(in_turn(s, r.shape) for s in still) or any(_beside(s, r.shape) for s in again)]
    several += [r for r in uncounted if _of_each_run(r, vocabulary)]
    several += [r for r in readings if _ends_each_run(r, vocabulary)]
    return several + [r for r in uncounted if r.shape.writers and len(processes) > 1]


def _of_each_run(reading: Reading, vocabulary: Vocabulary) -> bool:
    """Return whether most records are of another fold or trial than the one before: ``Trial 3/20: lr=0.01 loss=0.41``."""
    columns = zip(reading.names, reading.shape.columns, strict=True)
    return any(2 * c.rises > c.count for name, c in columns if not vocabulary.runs.isdisjoint(name.spelled[-1:]))


def _ends_each_run(reading: Reading, vocabulary: Vocabulary) -> bool:
    """Return whether the best epoch goes back without the counter, as in no single run: ``Round=2 BestEpoch=218 MAE=…``."""
    bests, columns = {f"best{word}" for word in vocabulary.epoch}, reading.shape.columns
    again = max((columns[at].drops for at in reading.counter.places), default=0)
    best = [c.drops for name, c in zip(reading.names, columns, strict=True) if "".join(name.spelled) in bests and c.integer]
    return reading.loss is None and max(best, default=0) > again


def _begins_again(reading: Reading) -> bool:
    """Return whether a line without a loss counts steps, and from the start again: another launch's."""
    step = reading.counter.step if reading.counter.mode in (GLOBAL, UNNUMBERED) and reading.counter.epoch is None else None
    return step is not None and reading.loss is None and not reading.bar and reading.shape.columns[step].drops > 0


def _beside(shape: Shape, records: Shape) -> bool:
    """Return whether about as many records of one shape stand among those of another."""
    alike = max(shape.count, records.count) <= 2 * min(shape.count, records.count)
    return alike and shape.first < records.last and records.first < shape.last


def _first_batches(readings: Sequence[Reading], vocabulary: Vocabulary) -> list[Reading]:
    """Doubt the records of the first batch of each epoch, where others are of whole epochs: ``Epoch 3 Batch 0 Loss 2``."""
    counted = [r for r in readings if r.plain and r.counter.mode == EPOCHS]
    first = [r for r in counted if r.shape.count > 2 and is_first_batch(r, vocabulary)]
    whole = [r for r in without(counted, first) if r.loss is not None]
    return [r for r in first if any(r.family == o.family and r.shape.count <= 2 * o.shape.count for o in whole)]


def is_first_batch(reading: Reading, vocabulary: Vocabulary) -> bool:
    """Return whether a counter of steps never counts, since it is 0, or 1, in each record."""
    for name, column in zip(reading.names, reading.shape.columns, strict=True):
        counter = counter_of(name.spelled, vocabulary) if name.words and column.integer else None
        if counter is not None and counter.kind == STEP and column.count > 1 and not column.rises and column.lowest < 2:
            return True
    return False


def _in_rounds(readings: Sequence[Reading], _: Vocabulary) -> list[Reading]:
    """Doubt records whose epochs begin again for each record of another kind that counts: rounds of several workers."""
    epochs = [(r, r.shape.columns[r.counter.epoch].drops) for r in readings if r.counter.epoch is not None]
    again = [(r, drops) for r, drops in epochs if drops > 1]
    counting = [r for r in readings if _counts_on(r)] if again else []
    return [r for r, drops in again if any(_is_round(other, r, drops) for other in counting)]


def _counts_on(reading: Reading) -> bool:
    places = reading.counter.places[:1] if reading.counter.mode in (GLOBAL, EPOCHS) else []
    return bool(places) and not reading.shape.columns[places[0]].drops and reading.loss is not None and reading.sure


def _is_round(other: Reading, reading: Reading, drops: int) -> bool:
    return abs(other.shape.count - drops - 1) <= 1 and other.shape.first > reading.shape.first


DOUBTED: Mapping[str, Callable[[Sequence[Reading], Vocabulary], list[Reading]]] = {
    "quoted": _citations,
    "beyond_total": _beyond_total,
    "notice": _notices,
    "results_of_runs": _results,
    "first_batches": _first_batches,
    "in_rounds": _in_rounds,
}
"""The evidence against some of the readings of a log that others give → the function that finds these."""


FEWEST_SECTIONS = 3
"""Evaluations with a counter of their own: fewer may be chance."""


def _in_sections(reading: Reading) -> bool:
    """True where such a line precedes the first record, and each whose counter starts again."""
    place = reading.counter.step if reading.counter.step is not None else reading.counter.epoch
    shape = reading.shape
    return place is not None and FEWEST_SECTIONS <= shape.columns[place].drops + 1 <= shape.heralded


ODD = 8
"""Of this many epochs, one may have an additional record (a copy) or lack a record (a torn line)."""


def _count_unheralded(reading: Reading) -> Counter | None:
    """Return the counter of the epochs of the records that no line announces, if nearly each of these is of another epoch."""
    shape, epoch = reading.shape, reading.counter.epoch
    column = shape.columns[epoch] if epoch is not None and reading.counter.step is None else None
    spelled = len(shape.heralds) < MAX_HERALDS and not any(re.search(rb"\d", line) for line in shape.heralds)
    if column is None or column.drops or not spelled:
        return None
    epochs = column.rises + 1
    if abs(shape.count - shape.heralded - epochs) * ODD > epochs:
        return None
    return Counter(EPOCHS, None, epoch, first_epoch(column), heralded=True)
