"""All kinds of records with numbers in a log, whatever their words are: for a person who writes a grammar."""

from __future__ import annotations

from collections.abc import Iterable

from receipt_cli.learn.counters import choose
from receipt_cli.learn.lacks import nearness
from receipt_cli.learn.masked_form import form_of
from receipt_cli.learn.readings import Reading
from receipt_cli.learn.shapes import Miner
from receipt_cli.learn.tokens import NUMBER
from receipt_cli.learn.vocabulary import Vocabulary


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
    _, readings = choose(shapes, vocabulary)
    found = [reading for reading in readings if reading.shape.samples and reading.shape.columns]
    if like:
        found = [r for r in found if any(_key(sample) == _key(like) for sample in r.shape.samples)]
    return sorted(found, key=lambda r: (-nearness(r) - _moving(r), -r.shape.count, r.shape.first))


def _key(record: bytes) -> bytes:
    form = form_of(record)
    return form.key or form.key_of(record)


def _moving(reading: Reading) -> int:
    """Return 1 where a number that is not whole differs from record to record, else 0."""
    values = [[token.value for token in c.values] for c in reading.shape.columns if c.kind == NUMBER and not c.integer]
    return int(any(len(set(found)) > 2 for found in values))
