"""Rules for what is printed between the records of training: evaluations, and values on lines of their own."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import replace
from itertools import chain, pairwise
from typing import NamedTuple

from receipt_cli.learn.counting import ABSENT, AGREE, EPOCHS, FEW, GLOBAL, PER_EPOCH, Counter
from receipt_cli.learn.emit import Cell, Induced, counter_cell, counters_of, field_name, induce, metric_cell, rule
from receipt_cli.learn.headings import in_turn
from receipt_cli.learn.names import LOSS, METRIC, PART, SCORE, VALIDATION_LOSS, Role, is_mean
from receipt_cli.learn.progress import heading_rule
from receipt_cli.learn.reading import Reading
from receipt_cli.learn.readings import without
from receipt_cli.learn.series import Group, is_first_batch
from receipt_cli.learn.shapes import Shape
from receipt_cli.learn.tokens import FRACTION, NUMBER
from receipt_cli.learn.vocabulary import Vocabulary

MOST_SCORED = 3
"""Kinds of lines with scores of an evaluation that are read."""
MOST_COMPANIONS = 4
"""Kinds of lines with values of the record before them."""
_Found = tuple[Reading, int]
"""A record with the place of a number."""


def induce_evaluations(training: Training, readings: Sequence[Reading], vocabulary: Vocabulary) -> list[Induced]:
    """Return the rules of the evaluations among the records of ``training``: one with a loss, and those with scores alone."""
    with_loss = _after_each(training.group, readings, vocabulary) or _with_loss(training, readings, vocabulary)
    read = {id(reading) for reading, _ in with_loss}
    found = [_evaluation(with_loss, vocabulary)] if with_loss else []
    kinds = _kinds([(r, at) for r in readings if id(r) not in read for at in _graded(r, training, vocabulary)])
    between = [kind for kind in kinds if _is_whole(kind, readings) and _comes_between(training, kind, vocabulary)]
    for kind in sorted(between, key=lambda kind: -sum(r.shape.count for r, _ in kind))[:MOST_SCORED]:
        name = kind[0][0].names[kind[0][1]]
        role = Role(SCORE, unit="percent" if name.unit == "%" else None)
        found.append(_rule(kind, role, field_name(f"eval {name.text}", ())))
    made = [rule for rule in found if rule is not None]
    for number, one in enumerate(made[1:], start=2):
        one.name = f"{one.name}_{number}"
    return made


def unread_evaluations(training: Training, readings: Sequence[Reading], vocabulary: Vocabulary) -> list[tuple[Reading, int]]:
    """Return the records behind the first of ``training`` that print the loss of an evaluation, the most frequent first.

    They are those of which no rule was made: single ones, or two kinds that nothing tells apart.
    """
    found = [(r, at) for r in readings if r.shape.last > training.group.span[0] for at in _evaluated(r, training, vocabulary)]
    told = [(r, at) for r, at in found if not _speaks_of(vocabulary.foreign, r, at, vocabulary)]
    return sorted(told, key=lambda one: (-one[0].shape.count, one[0].shape.first))


def evaluation_metric(reading: Reading, at: int, vocabulary: Vocabulary) -> str:
    """Return the metric of the loss of an evaluation: that of a test, or of a validation."""
    return "test_loss" if _is_test(reading, at, vocabulary) else "val_loss"


def _after_each(group: Group, readings: Sequence[Reading], vocabulary: Vocabulary) -> list[_Found]:
    """Return the evaluation behind each record of a block: the only loss of its line."""
    records = group.main.shape
    for reading in readings if group.main.counter.heading is not None and group.main.counter.mode == EPOCHS else ():
        shape = reading.shape
        losses = [at for at in range(len(shape.columns)) if _is_loss(reading, at, vocabulary)]
        each = reading.evaluation and len(losses) == 1 and abs(shape.count - records.count) <= 1
        if each and all(a < b for a, b in zip(records.lines, shape.lines, strict=False)):
            return [(reading, losses[0])]
    return []


def _with_loss(training: Training, readings: Sequence[Reading], vocabulary: Vocabulary) -> list[_Found]:
    """Return the only lines among the records of ``training`` with a loss of an evaluation, if those have none."""
    if any(role.kind == VALIDATION_LOSS for r in training.group.readings for role in r.roles.values()):
        return []
    found = _kinds([(r, at) for r in readings for at in _evaluated(r, training, vocabulary)])
    found = [kind for kind in found if sum(r.shape.count for r, _ in kind) >= vocabulary.min_records]
    found = [kind for kind in found if not _is_test(*kind[0], vocabulary)] or found
    if len(found) > 1:
        found = [kind for kind in found if not _speaks_of(vocabulary.foreign, *kind[0], vocabulary)]
    if len(found) > 1:
        # beside the batches of an evaluation
        found = [kind for kind in found if is_mean(kind[0][0].names[kind[0][1]], vocabulary)]
    if len(found) != 1 or not (_is_whole(found[0], readings) and _comes_between(training, found[0], vocabulary)):
        return []
    return _without_echoes(found[0], _copies(found[0]))


def _evaluation(kind: Sequence[_Found], vocabulary: Vocabulary) -> Induced | None:
    return _rule(kind, Role(VALIDATION_LOSS, metric=evaluation_metric(*kind[0], vocabulary)))


def _kinds(found: Iterable[_Found]) -> list[list[_Found]]:
    """Return the records of each kind, that of most records first: the words up to the number are the same."""
    kinds: dict[tuple[bytes, ...], list[_Found]] = {}
    for reading, at in found:
        kinds.setdefault(tuple(reading.shape.texts(at + 1)), []).append((reading, at))
    return [sorted(kind, key=lambda one: -one[0].shape.count) for kind in kinds.values()]


def _is_whole(kind: Sequence[_Found], readings: Sequence[Reading]) -> bool:
    """Return whether all records with the words of a kind that counts steps are of the kind: else figures would be missing."""
    (first, at), own = kind[0], {id(reading) for reading, _ in kind}
    if all(reading.counter.mode in (EPOCHS, ABSENT) for reading, _ in kind):
        return True
    alike = (r for r in readings if len(r.shape.columns) > at and r.shape.texts(at + 1) == first.shape.texts(at + 1))
    return all(id(reading) in own for reading in alike)


def _comes_between(training: Training, kind: Sequence[_Found], vocabulary: Vocabulary) -> bool:
    """True where so many lines of a kind are among the records of ``training``, and records between two of them."""
    copies = _copies(kind)
    shapes = [reading.shape for reading, _ in _without_echoes(kind, copies)]
    count, (first, last) = sum(shape.count for shape in shapes), training.group.span
    often = vocabulary.min_records <= count <= training.group.count + 1
    if not often or max(s.last for s in shapes) < first or min(s.first for s in shapes) > last + training.group.count:
        return False
    places = [place for one in kind for place, _ in _values(*one)] if copies else [p for shape in shapes for p in shape.places]
    return _parted(training, sorted(places), count, copies)


def _without_echoes(kind: Sequence[_Found], copies: Set[int]) -> list[_Found]:
    """Return the records of a kind without those that only print another once more: ``Valid loss 2.1 -> best``."""
    return [one for one in kind if any(place not in copies for place, _ in _values(*one))]


def _copies(kind: Sequence[_Found]) -> set[int]:
    """Return the places of the lines that print the value of the line before them."""
    values = sorted(chain.from_iterable(_values(*one) for one in kind))
    return {place for (_, before), (place, value) in pairwise(values) if value == before}


def _values(reading: Reading, at: int) -> Iterator[tuple[int, float | None]]:
    return zip(reading.shape.places, reading.shape.columns[at].numbers, strict=False)


def _parted(training: Training, places: Sequence[int], count: int, copies: Set[int] = frozenset()) -> bool:
    """True where nearly each two of ``count`` lines have records of ``training`` between them, as far as the kept ones show.

    ``copies`` print what the line before them does: two loggers print each line.
    """
    found = training.between(places)
    if found:
        alone = [number for place, number in zip(places[1:], found, strict=False) if number or place not in copies]
        return sum(number > 0 for number in alone) >= AGREE * len(alone) and bool(alone)
    gaps = sorted(b - a for a, b in pairwise(places))
    return bool(gaps) and 2 * gaps[len(gaps) // 2] > training.group.count // count > 1


class Training(NamedTuple):
    """Where the records of a group are, as far as all of them are kept: their places, ascending, and the last of these."""

    group: Group
    places: list[int]
    known: float

    @classmethod
    def of(cls, group: Group) -> Training:
        """Return where the records of ``group`` are."""
        shapes = [reading.shape for reading in group.readings]
        known = min((shape.places[-1] for shape in shapes if shape.count > len(shape.places)), default=math.inf)
        return cls(group, sorted(place for shape in shapes for place in shape.places), known)

    def counts(self, reading: Reading, at: int) -> bool:
        """Return whether a counter of a reading has the values that the last record of training before each line has."""
        own = [(r, n) for r in self.group.readings for n, name in enumerate(r.names) if name.words == reading.names[at].words]
        found = sorted(chain.from_iterable(_values(*one) for one in own), key=lambda one: one[0])
        known = [place for place, _ in found]
        until = min((r.shape.places[len(r.shape.columns[n].values) - 1] for r, n in own if r.shape.columns[n].values), default=0)
        pairs = [(bisect_left(known, place), value) for place, value in _values(reading, at) if place <= until]
        return bool(pairs) and all(n and found[n - 1][1] == value for n, value in pairs)

    def between(self, places: Sequence[int]) -> list[int]:
        """Return how many records are between each place and the next, as far as that is known."""
        before = [bisect_left(self.places, place) for place in places if place <= self.known]
        return [b - a for a, b in pairwise(before)]


def _evaluated(reading: Reading, training: Training, vocabulary: Vocabulary) -> list[int]:
    """Return the place of the only loss of an evaluation in a record that is none of training, nor of its batches.

    The summary of an epoch may have the loss of its training, too. In a record without a counter or a word of training, the
    loss behind another figure of an evaluation is of the evaluation.
    """
    loss, names, mode = reading.loss, reading.names, reading.counter.mode
    behind = loss is not None and reading.evaluation and not reading.counter.places and names[0].evaluation
    behind = behind and not _speaks_of(vocabulary.training, reading, len(names), vocabulary)
    if _counts_batches(reading, training, vocabulary) or not (loss is None or behind or mode in (EPOCHS, ABSENT)):
        return []
    about = [n for n, name in enumerate(names) if name.evaluation or (behind and n == loss)]
    places = [n for n in about if _is_loss(reading, n, vocabulary)]
    return places if len(places) == 1 else []


def _graded(reading: Reading, training: Training, vocabulary: Vocabulary) -> list[int]:
    """Return the place of the first score of an evaluation in a record that has no loss of training, nor is of its batches."""
    counted = reading.counter.mode in (EPOCHS, ABSENT) or all(training.counts(reading, at) for at in reading.counter.places)
    if _counts_batches(reading, training, vocabulary) or reading.loss is not None or not counted:
        return []
    aside, grades = vocabulary.evaluation | vocabulary.averaging | vocabulary.training, vocabulary.scores | vocabulary.grades
    grades |= vocabulary.fit
    for at, (name, column) in enumerate(zip(reading.names, reading.shape.columns, strict=True)):
        words = [word for word in name.words.split() if word not in aside]
        score = bool(words) and (" ".join(words) in vocabulary.scores or {words[0], words[-1]} & grades)
        plain = column.kind == NUMBER and name.unit in (None, "%") and not name.several and not column.integer
        told = name.evaluation or (reading.evaluation and reading.shape.heralded == reading.shape.count)
        told = told or (reading.shape.sectioned and not vocabulary.grades.isdisjoint(words))
        if score and plain and told and not _speaks_of(vocabulary.foreign, reading, at, vocabulary):
            return [at]
    return []


def _counts_batches(reading: Reading, training: Training, vocabulary: Vocabulary) -> bool:
    """Return whether a reading is a bar, or has a step counter that restarts, and is not that of training, or never counts."""
    if reading.bar or is_first_batch(reading, vocabulary):
        return True
    for at, (column, name) in enumerate(zip(reading.shape.columns, reading.names, strict=True)):
        again = column.rises > column.drops > 0 and (column.kind == FRACTION or name.words.split()[-1:] != ["epoch"])
        if column.integer and again and not training.counts(reading, at):
            return True
    return False


def _speaks_of(words: frozenset[str], reading: Reading, at: int, vocabulary: Vocabulary) -> bool:
    """True where one of ``words`` is before a number: ``New best model, val_loss=2.1``."""
    before = b" ".join(reading.shape.literals[: at + 1]).decode("utf-8", "replace")
    return not words.isdisjoint(re.findall(r"[a-z]+", vocabulary.english(before).lower()))


def _is_test(reading: Reading, at: int, vocabulary: Vocabulary) -> bool:
    return not _speaks_of(vocabulary.evaluation - vocabulary.tests, reading, at, vocabulary)


def _is_loss(reading: Reading, at: int, vocabulary: Vocabulary) -> bool:
    name = reading.names[at]
    others = vocabulary.evaluation | vocabulary.averaging | vocabulary.training
    rest = " ".join(word for word in name.words.split() if word not in others)
    return reading.shape.columns[at].kind == NUMBER and name.unit is None and rest in vocabulary.validation_loss


def _rule(kind: Sequence[_Found], event_of: Role, called: str = "") -> Induced | None:
    """Return the rule of the records of a kind, with the epoch and the number that each is about.

    A number behind a separator keeps its label, and needs no field, if it is outside the registry.
    """
    members: list[tuple[Shape, dict[int, Cell]]] = []
    for reading, at in kind:
        cell = metric_cell(reading, at, event_of, (), called)
        if cell is None:
            return None
        labelled = event_of.kind == SCORE and reading.shape.literals[at].rstrip()[-1:] in (b":", b"=")
        cells = {} if labelled else {at: cell}
        epoch = _epoch_before(reading, at)
        if epoch is not None:  # else it would be a figure of the evaluation
            cells[epoch] = counter_cell(reading.shape.columns[epoch], "epoch_number", "epochs_planned")
        members.append((reading.shape, cells))
    return rule("evaluation", "eval", members)


def _epoch_before(reading: Reading, at: int) -> int | None:
    """Return the place of the only number before ``at`` that is called an epoch."""
    columns, names = reading.shape.columns[:at], reading.names[:at]
    found = [
        n for n, (c, name) in enumerate(zip(columns, names, strict=True)) if c.integer and name.words.split()[-1:] == ["epoch"]
    ]
    return found[0] if len(found) == 1 and columns[found[0]].kind in (NUMBER, FRACTION) else None


def induce_companions(training: Training, main: Induced, readings: Sequence[Reading], vocabulary: Vocabulary) -> list[Induced]:
    """Return rules for lines of their own that print more values of a training record, or values of a whole epoch.

    ``main`` is the rule of the training records. Such a line follows each record, or stands after or before the records of an
    epoch. Of an epoch only metrics of the registry are read: they hold for its last record, or, if they are printed before it,
    for its first.
    """
    found: list[Induced] = []
    known = set(main.fields)
    for reading in sorted(readings, key=lambda r: -r.shape.count):
        place = _beside(reading, training, vocabulary) if len(found) < MOST_COMPANIONS else ""
        if not place:
            continue
        alone = Group([replace(reading, counter=Counter(ABSENT))])
        companion = induce(alone, f"train_values_{len(found) + 1}", ())
        if companion is None or known & set(companion.fields):
            continue
        if place == "behind":
            companion.body["companion"] = True
        else:
            companion.body["event"] = "progress"
        companion.group, companion.count = None, reading.shape.count  # it counts nothing of its own
        known |= set(companion.fields)
        found.append(companion)
    return found


def induce_lines(readings: Sequence[Reading], vocabulary: Vocabulary) -> list[Induced]:
    """Return the rules of a line that counts and of the lines of values below each: ``batch 3, len 12``, ``kl:0.1,loss:2.5``.

    Before them stands that of the line which announces the epochs, where one does.
    """
    plain = [r for r in readings if r.counter.mode == ABSENT and not r.evaluation and not r.bar]
    losses = sorted((r for r in plain if r.loss is not None), key=lambda r: (r.roles[r.loss or 0].rank, -r.shape.count))
    scores = [r for r in plain if r.shape.count >= FEW and [role.kind for role in r.roles.values()] == [SCORE]]
    for values in losses or scores:
        openings = [r for r in readings if opens(r, values, vocabulary)]
        opening = max(openings, key=lambda r: (min(r.shape.count, values.shape.count), -r.shape.first), default=None)
        companion = induce(Group([values]), "train_values", ())
        if opening is None or companion is None:
            continue
        alike = [r for r in without(readings, [opening]) if _begins_as(r, opening) and r.loss is None and not r.evaluation]
        lines = [opening, *(replace(r, counter=opening.counter) for r in alike)]
        opened = rule("train_step", "step", [(r.shape, counters_of(r, opening.counter)) for r in lines])
        announced = opening.counter.heading
        heading = heading_rule(announced) if announced is not None else None
        if opened is None or (announced is not None and heading is None):
            continue
        companion.body["companion"], companion.group = True, None
        companion.count = values.shape.count + (not alike and _lacks_at_end(opening, values.shape))
        if opening.counter.mode == PER_EPOCH and not opening.counter.epochs_from:
            opened.body["epochs_from"] = 0
        more = induce_companions(Training.of(Group(lines)), companion, without(readings, [opening, *alike, values]), vocabulary)
        return [*([heading] if heading is not None else []), opened, companion, *more]
    return []


def _lacks_at_end(opening: Reading, values: Shape) -> bool:
    """Return whether only the first or the last of the lines that count has no line of values: none yet, or none any more."""
    shape = opening.shape
    one = opening.counter.mode == GLOBAL and shape.count == values.count + 1
    return one and (shape.places[1] < values.first or shape.last > values.last)


def _begins_as(reading: Reading, opening: Reading) -> bool:
    """Return whether two lines are the same up to what counts."""
    last = max(opening.counter.places)
    return reading.shape.texts(last + 1) == opening.shape.texts(last + 1) and len(reading.shape.columns) > last


def opens(reading: Reading, values: Reading, vocabulary: Vocabulary) -> bool:
    """Return whether a line counts and has no loss, stands before the first line of values, and is as frequent."""
    shape, kinds = reading.shape, {role.kind for role in reading.roles.values()}
    plain = reading.counter.mode in (GLOBAL, PER_EPOCH) and kinds.isdisjoint((LOSS, VALIDATION_LOSS))
    if not plain or reading.counter.tentative or reading.evaluation or reading.bar or values.shape.count < vocabulary.min_records:
        return False
    often = (
        not reading.roles and vocabulary.min_records <= shape.count and shape.count // 2 <= values.shape.count <= shape.count + 1
    )
    return in_turn(shape, values.shape) or (often and 0 < values.shape.first - shape.first <= GAP)


GAP = 64
"""Most records between a line that counts and a line of its values: the other lines of the record."""


def _beside(reading: Reading, training: Training, vocabulary: Vocabulary) -> str:
    """Return where the record is whose values a line without a counter has, or one that only counts epochs: before or behind it.

    Empty for other lines.
    """
    shape, roles, group = reading.shape, reading.roles.values(), training.group
    bare = not reading.counter.places
    rate = reading.counter.mode == EPOCHS and {role.metric for role in roles} == {"learning_rate"}
    if not (bare or rate) or not roles or reading.evaluation or reading.bar:
        return ""
    if not vocabulary.min_records <= shape.count <= group.count + 1:
        return ""
    if any(_speaks_of(vocabulary.evaluation | vocabulary.foreign, reading, at, vocabulary) for at in reading.roles):
        return ""
    between = training.between(shape.places)
    metrics = all(role.kind == METRIC for role in roles)
    if shape.first < group.span[0]:
        return "before" if metrics and _parted(training, shape.places, shape.count) else ""
    if shape.count >= AGREE * group.count and between and sum(n == 1 for n in between) >= AGREE * len(between):
        told = all(role.kind in (METRIC, PART, SCORE) for role in roles)
        return "behind" if told and bare else ""
    return "behind" if metrics and _parted(training, shape.places, shape.count) else ""
