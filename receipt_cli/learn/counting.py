"""Find the counter in the records of one shape: a step of the run, a step inside an epoch, or the epoch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise, product

from receipt_cli.learn.names import EPOCH, LOSS, PART, SCORE, STEP, Name, Role
from receipt_cli.learn.shapes import Column, Shape
from receipt_cli.learn.tokens import BAR, FRACTION, NUMBER, RATE, TIME
from receipt_cli.learn.vocabulary import Vocabulary

GLOBAL, PER_EPOCH, EPOCHS, UNNUMBERED, ABSENT = "global", "per epoch", "epochs", "unnumbered", "absent"
"""Modes of counting: by step; by step inside an epoch; one an epoch; by a counter without a step; not at all."""
AGREE = 0.9
DRAWN_BAR = r"\d{1,3}+%\|[^|\r\n]{0,400}+\|[ \t]*+"
"""What a progress bar draws before its counter."""
MOST = 0.75
"""Share of the falls of a counter from its end that tells epochs: an attempt may have been cut."""
FEW = 8
"""Records of a shape that are all kept: too few to confirm a counter by them alone."""


@dataclass(frozen=True, slots=True)
class Counter:
    """The columns that count: ``step`` and ``epoch`` are places in the shape, or None.

    ``tentative``: too few records of this shape to confirm the counter. ``heading``: the line that announces the epoch.
    ``heralded``: the records behind a line that announces an evaluation do not count. ``of_epoch``: only one epoch is
    shown: the total beside the step may be that of the epoch, or of the run, and is no plan.
    """

    mode: str
    step: int | None = None
    epoch: int | None = None
    epochs_from: int = 1
    tentative: bool = False
    heading: Shape | None = None
    heralded: bool = False
    of_epoch: bool = False

    @property
    def places(self) -> list[int]:
        """The columns of the step and of the epoch, if they have one."""
        return [at for at in (self.step, self.epoch) if at is not None]


def glued_bar(shape: Shape) -> int:
    """Return the last column of a progress bar in front of the record on its line, or -1.

    The columns of a bar are inside its brackets, or before it.
    """
    for at, column in enumerate(shape.columns):
        if column.kind == RATE:
            behind = shape.literals[at + 1].strip()
            if behind.startswith(b"]") and (len(behind) > 1 or at + 1 < len(shape.columns)):
                return at
    return -1


def find_counter(shape: Shape, names: list[Name], roles: list[Role | None], vocabulary: Vocabulary) -> Counter:
    """Return the counter of the records of ``shape``: the surest rising column by name, else a rising nameless one."""
    columns = shape.columns
    named = [at for at, role in enumerate(roles) if role is not None and role.kind == STEP and columns[at].integer]
    counting = [at for at in named if _counts(shape, at, vocabulary)]
    few = [at for at in named if shape.count < FEW and columns[at].count and not columns[at].drops]
    epochs = [at for at, r in enumerate(roles) if r is not None and r.kind == EPOCH and columns[at].integer and columns[at].count]
    head = next((at for at, r in enumerate(roles) if r is not None and r.kind not in (STEP, EPOCH)), len(columns))
    places = range(head if head < len(columns) or not epochs else len(columns))
    glued = glued_bar(shape)
    free = [at for at in places if at > glued and at not in epochs and at not in named]
    nameless = [at for at in free if _nameless(shape, names, at)]
    steps = counting or few
    if not steps:
        moving = [at for at in nameless if _counts(shape, at, vocabulary)]
        slower = [at for at in nameless if not columns[at].drops and 0 < 2 * columns[at].rises < columns[at].count]
        finer = [at for at in free if slower and at > slower[0] and _each(columns[at])]
        if finer and not epochs:
            steps, epochs = finer[:1], slower[:1]  # ``[1/41] 300), Loss: 0.067``
        elif moving:
            best = max(moving, key=lambda at: (columns[at].rises, columns[at].kind == FRACTION, at))
            steps = [best]
            if not epochs:
                beside = best - 1 if _pair(shape, best - 1) or _adjacent(shape, best - 1) else -1
                alike = [at for at in nameless if columns[at].kind == columns[best].kind or at == beside]
                slower = [at for at in alike if at < best]
                epochs = [at for at in slower if columns[at].rises < columns[best].rises][:1]
    before = [at for at in nameless if columns[at].kind == FRACTION and named and at < min(named)]
    epoch = epochs[0] if epochs else _slower(shape, named if len(named) == 2 else before, steps)
    steps = [at for at in steps if at != epoch and not (epochs and _is_outer(columns[at], columns[epochs[0]]))]
    drawn = drawn_steps(shape) or open_steps(shape)
    if not steps and any(role is not None and role.kind in (LOSS, PART) for role in roles):
        steps = [at for at in drawn if _counts(shape, at, vocabulary)][:1]
    if not steps and epoch is None and any(role is not None and role.kind in (LOSS, PART, SCORE) for role in roles):
        steps = [at for at in range(glued + 1, glued + 2) if roles[at] is None and _leads(shape, names, at, vocabulary)]
    if not steps and epoch is None and any(role is not None and role.kind in (LOSS, PART) for role in roles):
        epoch, steps = _nested(shape, [at for at in free if not {*names[at].spelled} & (vocabulary.runs | vocabulary.foreign)])
    if not steps and epoch is None:
        behind = [at for at in range(head + 1, len(columns)) if _place(shape, names, at)]
        if len(behind) == 1 and _counts(shape, behind[0], vocabulary):
            return _by_place(shape, behind[0])
    ended = epoch is not None and columns[epoch].rises > 0 and all(is_full(columns[at]) for at in drawn)
    if not steps and shape.count < FEW and not ended:
        steps = few = drawn[:1]
    steps = [at for at in steps if vocabulary.runs.isdisjoint(names[at].spelled[-1:])]  # ``Trial 3/20`` counts no steps
    if not steps:
        full = [at for at in (*nameless, *drawn) if is_full(columns[at])]
        return _by_epoch(shape, epoch, full[0] if full else None, vocabulary)

    def surest(at: int) -> tuple[bool, int, float, int]:
        role = roles[at]
        own = " ".join(word for word in names[at].spelled if word not in vocabulary.training)
        part = bool(shape.header) and own not in vocabulary.step  # ``critic_steps`` are some of them
        return (part, role.rank if role is not None else 99, -columns[at].rises / max(1, columns[at].count - 1), at)

    step = min(steps, key=surest)
    found = _by_step(shape, step, epoch)
    shared = not names[step].text and shape.literals[step + 1].strip() == b"("  # ``[640/60000 (1%)]`` counts samples
    if found.mode == PER_EPOCH and (shared or _counts_samples(shape, step)):
        found = replace(found, mode=UNNUMBERED)
    return replace(found, tentative=step not in counting and step in few)


def drawn_steps(shape: Shape) -> list[int]:
    """Return the counters of a record that is a progress bar: the fractions before a rate, and one that ends a bar."""
    kinds = [column.kind for column in shape.columns]
    places = [at for at in range(1, len(kinds) - 1) if kinds[at : at + 2] == [FRACTION, RATE]]
    if kinds[0] == BAR and ends_bar(shape, len(kinds) - 1):
        places.append(len(kinds) - 1)
    return [at for at in places if at > glued_bar(shape) and shape.columns[at].integer]


def open_steps(shape: Shape) -> list[int]:
    """Return the counter of a bar of tqdm that does not know its total: ``15it [04:04, 18.89s/it``."""
    pairs = enumerate(pairwise(column.kind for column in shape.columns))
    places = [at for at, kinds in pairs if kinds == (NUMBER, RATE) and not shape.literals[at + 1].strip()]
    counted = (at for at in places if at > glued_bar(shape) and shape.columns[at].integer)
    return [at for at in counted if counted_unit(shape.columns[at])]


def counted_unit(column: Column) -> str:
    """Return what a bar counts, as it is glued to each number of a column; empty where nothing is."""
    units = {token.unit for token in column.values}
    return units.pop() if len(units) == 1 and max(units).isalpha() else ""


def ends_bar(shape: Shape, at: int) -> bool:
    """True for the place in a bar that the line begins with, where it ends the line: `` [==>..] | Loss: 2.1 | 12/391``."""
    alone = shape.columns[at].kind == FRACTION and not shape.literals[at + 1].strip() and at == len(shape.columns) - 1
    return alone and shape.columns[0].kind == BAR and not any(chr(b).isalnum() for b in shape.literals[at])


def count_by_bar(shape: Shape) -> Counter | None:
    """Return the counter of records behind a bar that is one further at each: of a loop that prints one record a turn."""
    at = glued_bar(shape) - 1
    column = shape.columns[at] if at >= 0 else None
    if column is None or column.kind != FRACTION or not column.one_total or column.stride != 1:
        return None
    each = column.strides + column.drops >= column.count - 1 and column.rises >= 2 and not column.lowest
    return Counter(EPOCHS, None, at, 0) if each and column.first == 0 else None


def shows_share(shape: Shape) -> bool:
    """True where a percentage is the second number: that of a bar behind its description, ``Epoch 3: 100%|███|``."""
    return len(shape.columns) > 1 and any(token.unit == "%" for token in shape.columns[1].values)


def is_full(column: Column) -> bool:
    """True for ``14/14`` in every record: a bar that is printed when it is full."""
    return column.kind == FRACTION and all(t.total is None or t.value == t.total for t in column.values)


def passes_of(column: Column) -> int | None:
    """Return the total of the first of two full bars that take turns, ``391/391`` and ``100/100``: training, then a test."""
    totals = [int(token.total) for token in column.values if token.total is not None]
    turns = len(totals) == len(column.values) and len(set(totals)) == 2 and all(a != b for a, b in pairwise(totals))
    return totals[0] if turns and len(totals) > 2 and not column.grouped else None


def _counts(shape: Shape, at: int, vocabulary: Vocabulary) -> bool:
    """True for a column of whole numbers that rises in most records, or is constant between redraws."""
    column = shape.columns[at]
    if column.kind not in (NUMBER, FRACTION) or not column.integer or column.rises < 2:
        return False
    drops = column.drops * (1 - _with_epochs(shape, at)) if column.drops and not _falls_from_end(shape, at) else 0
    moves = column.rises + drops
    bar = any(c.kind in (BAR, RATE) for c in shape.columns)
    often = column.rises >= (column.count - 1) * (0.2 if bar else 0.4) or (not column.drops and column.rises >= FEW)
    return column.rises >= vocabulary.rising * moves and often


def _falls_from_end(shape: Shape, at: int) -> bool:
    """Return whether the counter has one fixed total and goes back only after it has reached the total."""
    column, falls = shape.columns[at], shape.falls(at)
    return column.kind == FRACTION and column.one_total and bool(falls) and all(b[at] == column.total for b, _ in falls)


def _with_epochs(shape: Shape, at: int) -> float:
    """Return the share of the falls of a column at which another whole number rose that seldom rises elsewhere: an epoch."""
    falls, numbers = shape.falls(at), {i: column.numbers for i, column in enumerate(shape.columns) if column.integer and i != at}
    often = 2 * sum((b or 0) < (a or 0) for a, b in pairwise(shape.columns[at].numbers))
    slow = {i for i, values in numbers.items() if sum((b or 0) > (a or 0) for a, b in pairwise(values)) <= often}
    slow |= {i for i in numbers if _first_pass(shape.columns[i], shape.columns[at]) is not None}
    risen = [1 for b, a in falls if any(a.get(i, 0) > v for i, v in b.items() if i in slow)]
    return len(risen) / len(falls) if falls else 0.0


def _counts_samples(shape: Shape, at: int) -> bool:
    """Return whether each epoch begins at one number above 1, a fraction of the stride: the samples of a batch (``16, 1616``)."""
    column, begins = shape.columns[at], {after[at] for _, after in shape.falls(at)}
    batch, stride = column.first or 0, column.stride or 0
    return begins == {batch} and 1 < batch < stride and not stride % batch and column.strides >= AGREE * column.rises


def _leads(shape: Shape, names: list[Name], at: int, vocabulary: Vocabulary) -> bool:
    """True for the first number of a record, of an unknown name, if it counts on by one stride: ``[Kimg 22] loss: 2.1``."""
    column, name, known = shape.columns[at], names[at], vocabulary.foreign | vocabulary.things | vocabulary.timings
    plain = column.kind in (NUMBER, FRACTION) and column.integer and not name.unit and not name.evaluation and bool(name.words)
    steady = column.count >= FEW and column.strides >= AGREE * column.rises and column.strides + column.drops >= column.count - 2
    return plain and steady and known.isdisjoint(name.spelled)


def _each(column: Column) -> bool:
    """Return whether whole numbers rise by one stride, but for a few, and never go back."""
    return column.integer and not column.drops and column.strides >= AGREE * (column.count - 1) >= FEW


def _nameless(shape: Shape, names: list[Name], at: int) -> bool:
    """True for ``[20/597]``, ``[50]``, ``[1, 50]`` and for a whole number that begins the line or follows a time."""
    column, name = shape.columns[at], names[at]
    if column.integer and at and names[at - 1].bracket and _pair(shape, at - 1):
        return True
    if not column.integer or name.evaluation or (name.sure and not name.bracket):
        return False
    if column.kind == FRACTION:
        return True
    if name.bracket:
        closed = shape.literals[at + 1].lstrip()[:1]
        return closed == b"]" or (closed == b")" and not at) or _pair(shape, at)  # ``(1) 279 of 469``
    leads = all(c.kind == TIME for c in shape.columns[:at]) or (
        at == 1 and not shape.literals[1].strip() and _nameless(shape, names, 0)  # ``001  00704 | loss 0.5``: epoch and step
    )
    return (
        leads
        and column.kind == NUMBER
        and not name.text
        and column.strides * 2 > column.rises
        and not any(v.unit for v in column.values)
    )


def _place(shape: Shape, names: list[Name], at: int) -> bool:
    """True for ``[   64/60000]`` behind the metrics of a record, with no name of its own."""
    column, name = shape.columns[at], names[at]
    inside = shape.literals[at].rstrip()[-1:] == b"[" and shape.literals[at + 1].lstrip()[:1] == b"]"
    return column.kind == FRACTION and column.integer and inside and not name.text and not name.evaluation


def _by_place(shape: Shape, at: int) -> Counter:
    """Count by the place in a pass; one that does not count one by one may be of samples: it numbers no step."""
    found = _by_step(shape, at, None)
    return found if shape.columns[at].stride == 1 else replace(found, mode=UNNUMBERED)


def _pair(shape: Shape, at: int) -> bool:
    """True where ``at`` and the next column are ``[1, 2000]``, ``(1, 2000)`` or ``[1 : 2000]``: an epoch and a step of it."""
    behind = [text.strip() for text in shape.literals[at + 1 : at + 3]] if at >= 0 else []
    return len(behind) == 2 and behind[0] in (b",", b":") and behind[1][:1] in (b"]", b")", b">")


def _adjacent(shape: Shape, at: int) -> bool:
    """True where ``at`` and the next column are ``[1][20/500]``, or begin the record as ``(1) 20 of 500``: epoch and step."""
    if not at and [text.strip() for text in shape.literals[:2]] == [b"(", b")"]:
        return True
    return at >= 0 and shape.literals[at + 1].strip() == b"][" and shape.literals[at + 2].lstrip()[:1] == b"]"


def _by_epoch(shape: Shape, epoch: int | None, full: int | None, vocabulary: Vocabulary) -> Counter:
    if epoch is None:
        return Counter(ABSENT, full)
    column = shape.columns[epoch]
    once = column.rises >= vocabulary.rising * (column.count - 1) and column.rises >= 2
    if once and full is not None and epoch < full:
        return Counter(PER_EPOCH, full, epoch, first_epoch(column))
    begun = column.kind == FRACTION and column.one_total and shape.count < 3 and column.rises == shape.count - 1
    if begun and column.first in (0, 1):
        return Counter(EPOCHS, None, epoch, first_epoch(column), tentative=True)
    return Counter(EPOCHS if once else UNNUMBERED, None, epoch, first_epoch(column))


def first_epoch(column: Column) -> int:
    """Return the trainer's number of the first epoch, 0 or 1."""
    return 0 if column.first == 0 else 1


def _by_step(shape: Shape, step: int, epoch: int | None) -> Counter:
    """Distinguish a counter of the whole run from one that starts again every epoch, by the records where it goes back."""
    column = shape.columns[step]
    falls = shape.falls(step)
    if epoch is not None:
        counted = shape.columns[epoch]
        begun = [(b, a) for b, a in falls if not _resumed(column, b, a, step, epoch)]
        falls = begun if len(begun) > 1 else falls
        within = [(b, a) for b, a in falls if a.get(epoch, 0) > max(b.get(epoch, 0) - 1, counted.lowest)]
        falls = within if len(within) > 1 else falls  # the others begin a launch
        rose = [1 for b, a in falls if epoch in b and a.get(epoch, 0) > b[epoch]]
        at = [a[epoch] for _, a in falls if epoch in a]
        apart = column.kind == FRACTION and counted.rises >= AGREE * len(falls) and all(b > a for a, b in pairwise(at))
        often = column.one_total and 2 <= len(rose) > len(falls) / 2  # the others begin launches
        per_epoch = apart or often or len(rose) >= AGREE * len(falls) if falls else counted.rises == 0 and counted.first in (0, 1)
        if per_epoch and not falls and _may_be_of_run(column, counted):
            return Counter(GLOBAL, step, epoch, first_epoch(counted), of_epoch=True)
        if per_epoch and (falls or column.kind == FRACTION):
            launches = not column.bare and column.switches <= counted.drops  # each has its own length
            whole = column.kind == FRACTION and (column.one_total or launches)
            first = _first_pass(counted, column) if counted.lowest > 1 else first_epoch(counted)
            whole = whole and (first is not None or counted.last == counted.total)  # else the first may be 0 or 1
            return Counter(PER_EPOCH if whole else UNNUMBERED, step, epoch, first_epoch(counted) if first is None else first)
        if not falls and counted.rises == 0 and column.kind == FRACTION:
            return Counter(UNNUMBERED, step, epoch, first_epoch(counted))
        return Counter(GLOBAL, step, epoch, first_epoch(counted))
    if not falls:
        return Counter(GLOBAL, step)
    full = [b[step] for b, _ in falls]
    end = sorted(full)[len(full) // 2]
    alike = sum(abs(value - end) <= max(column.stride or 1, 0.02 * end) for value in full)
    same = len(falls) > 1 and alike >= (MOST * len(full) if len(full) >= FEW else len(full))
    if column.kind == FRACTION:  # a counter that begins again far from its total is that of another attempt
        ended = sum(value + (column.stride or 0) > AGREE * (column.total or 0) for value in full)
        same = column.one_total and ended >= max(MOST * len(full), min(2, len(full)))
    return Counter(UNNUMBERED if same else GLOBAL, step)


def _may_be_of_run(column: Column, epochs: Column) -> bool:
    """Return whether the total beside the only epoch may be that of all epochs: their number divides it."""
    return column.kind == epochs.kind == FRACTION and (epochs.total or 0) > 1 and (column.total or 0) % (epochs.total or 1) == 0


def _resumed(column: Column, before: dict[int, float], after: dict[int, float], step: int, epoch: int) -> bool:
    """True where the step goes back inside of an epoch, and not to its beginning: from a checkpoint."""
    same = epoch in before and before[epoch] == after.get(epoch)
    return same and after[step] > column.lowest + FEW * (column.stride or 1)


def _is_outer(column: Column, epochs: Column) -> bool:
    """Return whether the epochs begin again each time that a column rises: it counts tasks or runs."""
    return 0 < epochs.drops <= column.rises < epochs.rises and not column.drops


def _slower(shape: Shape, others: list[int], steps: list[int]) -> int | None:
    """Return the first counter in ``others`` that rises each time the step starts again: ``iteration 3 step 2/50``."""
    for at, other in product(others, sorted(steps, key=lambda place: -shape.columns[place].rises)):
        slow, fast = shape.columns[at], shape.columns[other]
        if at != other and slow.drops <= (1 - AGREE) * fast.drops:  # a launch may have resumed an epoch
            falls = shape.falls(other)
            rose = [1 for b, a in falls if a.get(at, 0) > b.get(at, 0)]
            each = slow.rises <= fast.drops or _first_pass(slow, fast) is not None
            if len(falls) >= 2 and len(rose) >= AGREE * len(falls) and each:
                return at
    return None


def _nested(shape: Shape, places: list[int]) -> tuple[int | None, list[int]]:
    """Return of whole numbers the first that starts again each time one before it rises, and that one, whatever their names:
    ``epoch_out: 0, epoch_in: 9``, ``Epoch and iter 28 99``."""
    inner = [at for at in places if shape.columns[at].integer and shape.columns[at].drops]
    pairs = ((_slower(shape, [slow for slow in places if slow < at and shape.columns[slow].integer], [at]), at) for at in inner)
    return next(((slow, [at]) for slow, at in pairs if slow is not None), (None, []))


def _first_pass(slow: Column, fast: Column) -> int | None:
    """Return the number of the first pass, 0 or 1, if the passes and the steps together rise by one stride from 0 on; else None.

    ``iteration:4 step:13/29``, ``iteration:7 step:26/29``: 3 x 29 + 13 is 100, and 6 x 29 + 26 is 200.
    """
    total = fast.total or 0
    if fast.kind != FRACTION or not fast.one_total or slow.drops or None in (*slow.numbers, *fast.numbers):
        return None
    places = [(a or 0) * total + (b or 0) for a, b in zip(slow.numbers, fast.numbers, strict=True)]
    strides = {after - before for before, after in pairwise(places)}
    if len(places) < FEW or len(strides) != 1:
        return None
    fitting = [first for first in (0, 1) if (places[0] - first * total) % min(strides) == 0]
    return fitting[0] if len(fitting) == 1 else None
