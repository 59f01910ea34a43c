"""For a person: all kinds of records with numbers in a log, and what the nearest lacked where nothing was learned of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from receipt_cli.learn.counting import ABSENT, EPOCHS, GLOBAL, UNNUMBERED
from receipt_cli.learn.evidence import Decision, reason
from receipt_cli.learn.names import LOSS, METRIC, PART, SCORE, TIMING
from receipt_cli.learn.reading import Reading
from receipt_cli.learn.series import read_shapes
from receipt_cli.learn.shapes import Miner
from receipt_cli.learn.tokens import FRACTION, NUMBER, RATE, form_of
from receipt_cli.learn.vocabulary import Vocabulary
from receipt_cli.problems import Lack


class _AnyWord(frozenset[bytes]):
    """Every word."""

    def isdisjoint(self, other: Iterable[object]) -> bool:
        """Return False: a record is looked at whatever its words are."""
        return False


def survey(blocks: Iterable[bytes], vocabulary: Vocabulary, like: bytes = b"") -> list[Reading]:
    """Return how each kind of record with a number is understood, those most like records of training first.

    ``like``: a record; then only those of its shape.
    """
    shapes = Miner(_AnyWord()).mine(blocks).shapes.values()
    readings = read_shapes(shapes, vocabulary)
    found = [reading for reading in readings if reading.shape.samples and reading.shape.columns]
    if like:
        found = [r for r in found if any(_key(sample) == _key(like) for sample in r.shape.samples)]
    return sorted(found, key=lambda r: (-nearness(r) - _moving(r), -r.shape.count, r.shape.first))


def _key(record: bytes) -> bytes:
    form = form_of(record)
    return form.key or form.key_of(record)


def _moving(reading: Reading) -> int:
    """Return 1 where a number that is not whole differs from record to record, else 0."""
    return int(any(c.kind == NUMBER and not c.integer and c.distinct > 2 for c in reading.shape.columns))


SHOWN = 3


def find_lacks(readings: Sequence[Reading], decision: Decision, vocabulary: Vocabulary) -> tuple[Lack, ...]:
    """Return the kinds of records that came nearest to records of training, the nearest first, each with what it lacked."""
    why = {
        id(reading): reason(weighed, decision, vocabulary)
        for weighed in decision.weighed
        if weighed.explanation.group is not None
        for reading in weighed.explanation.group.readings
    }
    told = [r for r in readings if r.shape.samples and _near(r)]
    told.sort(key=lambda r: (-nearness(r), -r.shape.count, r.shape.first))
    lines = [r.shape.samples[0].strip().decode("utf-8", "replace") for r in told]
    whys = [why.get(id(r), vocabulary.reasons["evaluation" if r.evaluation else "nothing"]) for r in told]
    lacks = [Lack(line, r.shape.count, said, _is_counted(r)) for line, said, r in zip(lines, whys, told, strict=True)]
    counted = [lack for lack in lacks[SHOWN:] if lack.counted]
    return (*lacks[:SHOWN], *counted[:1])


def _is_counted(reading: Reading) -> bool:
    """Return whether a counter stands beside a figure of the training, or of its evaluation: the record may be a step.

    One or two records with a rate or a time alone are settings, and so are more of them in which nothing rises or nothing
    else moves; what a bar says of its own speed is no figure of a training.
    """
    kinds = {role.kind for role in reading.roles.values()}
    counter, columns, places = reading.counter, reading.shape.columns, reading.counter.places
    if counter.heading is None and not places:
        return False
    if kinds - {METRIC, TIMING}:
        return True
    rises = counter.heading is not None or any(_rises(reading, at) for at in places)
    speed = {at for at, role in reading.roles.items() if role.kind in (METRIC, TIMING)} if reading.bar else set[int]()
    beside = (c for at, c in enumerate(columns) if c.kind == NUMBER and not c.integer and at not in (*places, *speed))
    return reading.shape.count >= FEWEST and rises and any(c.distinct > 1 for c in beside)


def _rises(reading: Reading, at: int) -> bool:
    """Return whether a column goes up; one without a name must seldom go back: it may be the number of a rank or device."""
    column = reading.shape.columns[at]
    told = bool(reading.names[at].words) or column.kind == FRACTION
    return column.rises > 0 and (told or column.drops * SELDOM <= column.count)


def may_be_figures(reading: Reading, vocabulary: Vocabulary) -> bool:
    """Return whether records may be steps of a program that nobody knows, or the figures of one: only if not, they prove that.

    A loss or a score, a counter that rises, any whole number that rises beside another number that moves, and two fractions that
    move are such.
    """
    kinds = {role.kind for role in reading.roles.values()}
    columns = reading.shape.columns
    rising = [at for at, column in enumerate(columns) if column.integer and column.rises]
    said = (word for sample in reading.shape.samples for word in _WORD.findall(sample.lower().decode("utf-8", "replace")))
    prepares = reading.bar and not vocabulary.prepares.isdisjoint(said)
    if kinds - {METRIC, TIMING} or (reading.evaluation and kinds):
        return True
    moving = [{token.value or 0.0 for token in c.values} for c in columns if c.kind in (NUMBER, RATE) and not c.integer]
    if prepares or not (rising or reading.evaluation or sum(len(values) > 2 for values in moving) > 1):
        return False
    counts = reading.bar or any(at in rising and reading.names[at].words for at in reading.counter.places)
    return counts or any(len(values) > 2 or any(value % 1 for value in values if len(values) > 1) for values in moving)


_WORD = re.compile("[a-z]+")
FEWEST = 3
"""Records of a kind with a figure of an unknown name that may be steps."""
SELDOM = 8
"""A counter of no name goes back at most once in so many records."""


def _near(reading: Reading) -> bool:
    return bool(reading.roles) or reading.evaluation or reading.counter.mode in (GLOBAL, EPOCHS, UNNUMBERED)


def nearness(reading: Reading) -> int:
    """Return how much a record looks like one of training; the higher, the more."""
    kinds = {role.kind for role in reading.roles.values()}
    counted = reading.counter.mode not in (ABSENT, UNNUMBERED)
    often = min(3, reading.shape.count) - 1
    return 4 * (LOSS in kinds) + 2 * bool(kinds & {METRIC, PART, SCORE}) + 2 * counted + often - 3 * reading.evaluation
